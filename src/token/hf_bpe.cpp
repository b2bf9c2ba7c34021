#include "token/hf_bpe.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "core/error.h"
#include "token/unigram.h"
#include "token/utf8.h"

namespace tera {

namespace {

constexpr std::string_view mark = "\u2581";
constexpr std::size_t short_word = 48;       // symbols; below, rescanning an array is quicker than a heap
constexpr std::size_t large_word = 1 << 20;  // symbols; above, the scratch memory is given back
constexpr std::uint32_t none = 0xFFFFFFFF;

}  // namespace

HfBpeModel::HfBpeModel(Vocab vocab, const std::vector<std::pair<std::string, std::string>>& merges,
                       HfBpeOptions options)
    : vocab_(std::move(vocab)), options_(options) {
    const std::size_t capacity = std::bit_ceil(merges.size() * 2 + 2);
    slots_.resize(capacity);
    mask_ = capacity - 1;
    shift_ = 64 - std::countr_zero(capacity);
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
        const auto& [left, right] = merges[rank];
        insert(vocab_.at(left), vocab_.at(right), {static_cast<std::uint32_t>(rank), vocab_.at(left + right)});
    }
    rank_count_ = merges.size();
    index_chars();
    find_safe_cuts(merges);
}

void HfBpeModel::insert(std::int32_t left, std::int32_t right, Merge merge) {
    const std::uint64_t key = key_of(left, right);
    std::size_t at = key * 0x9E3779B97F4A7C15 >> shift_;
    while (slots_[at].merge.rank != no_rank && slots_[at].key != key) at = (at + 1) & mask_;
    slots_[at] = {key, merge};
}

void HfBpeModel::index_chars() {
    block_of_.assign(0x110000 / 256, 0);
    char_ids_.assign(256, -1);  // block 0: nothing is known
    byte_ids_.resize(256);
    for (unsigned byte = 0; byte < 256; ++byte)
        byte_ids_[byte] = id_of(byte_fallback_token(static_cast<unsigned char>(byte)));
    for (const auto& [token, id] : vocab_) {
        if (token.empty()) continue;
        const CodePoint c = decode_utf8(token.data(), token.data() + token.size());
        if (c.bytes != token.size() || c.value == CodePoint::invalid) continue;
        std::uint16_t& block = block_of_[c.value >> 8];
        if (block == 0) {
            block = static_cast<std::uint16_t>(char_ids_.size() / 256);
            char_ids_.resize(char_ids_.size() + 256, -1);
        }
        char_ids_[block * 256u + (c.value & 255)] = id;
    }
}

/// A merge that crosses the border between a character y and a mark makes a token that holds y and the mark side by
/// side, as long as every symbol is the text it stands for. Symbols that are not (bytes, unknown) must then not merge,
/// and nothing may vanish, which would make others neighbours.
void HfBpeModel::find_safe_cuts(const std::vector<std::pair<std::string, std::string>>& merges) {
    const bool has_all_bytes = std::all_of(byte_ids_.begin(), byte_ids_.end(), [](std::int32_t id) { return id >= 0; });
    may_cut_ = id_of(std::string(mark)) >= 0 && (options_.unknown >= 0 || (options_.byte_fallback && has_all_bytes));
    std::unordered_set<std::int32_t> no_text(byte_ids_.begin(), byte_ids_.end());
    no_text.insert(options_.unknown);
    for (const auto& [left, right] : merges) {
        if (no_text.count(vocab_.at(left)) + no_text.count(vocab_.at(right)) > 0) may_cut_ = false;
        const std::string whole = left + right;
        for (std::size_t at = whole.find(mark, 1); at != std::string::npos; at = whole.find(mark, at + 1)) {
            std::size_t before = at - 1;
            while (before > 0 && (whole[before] & 0xC0) == 0x80) --before;
            joins_mark_.insert(decode_utf8(whole.data() + before, whole.data() + whole.size()).value);
        }
    }
}

std::size_t HfBpeModel::word_end(std::string_view text, std::size_t from) const {
    if (!may_cut_) return text.size();
    for (std::size_t at = text.find(mark, from + 1); at != std::string_view::npos; at = text.find(mark, at + 1)) {
        std::size_t before = at - 1;
        while (before > from && (text[before] & 0xC0) == 0x80) --before;
        const std::uint32_t c = decode_utf8(text.data() + before, text.data() + text.size()).value;
        if (joins_mark_.count(c) == 0) return at;
    }
    return text.size();
}

void HfBpeEncoder::encode(std::string_view piece, std::vector<std::int32_t>& ids) {
    if (model_.options().whole_piece_first) {
        const std::int32_t id = model_.id_of(std::string(piece));
        if (id >= 0) {
            ids.push_back(id);
            return;
        }
    }
    using Cache = decltype(cache_);
    for (std::size_t begin = 0; begin < piece.size();) {
        const std::size_t end = model_.word_end(piece, begin);
        const std::string_view word = piece.substr(begin, end - begin);
        begin = end;
        if (word.size() > Cache::max_bytes) {
            encode_word(word, ids);
            continue;
        }
        const auto key = Cache::key_of(word);
        const std::size_t before = ids.size();
        ids.resize(before + Cache::most_ids);
        const std::size_t count = cache_.find(key, ids.data() + before);
        ids.resize(before + count);
        if (count > 0) continue;
        encode_word(word, ids);
        cache_.insert(key, std::span(ids).subspan(before));
    }
}

void HfBpeEncoder::encode_word(std::string_view word, std::vector<std::int32_t>& ids) {
    load(word);
    if (symbols_.size() <= short_word)
        merge_short();
    else
        merge_long();
    ids.insert(ids.end(), symbols_.begin(), symbols_.end());
}

/// The characters' ids. An unknown one waits until the next known one; bytes go before it (as in the original).
void HfBpeEncoder::load(std::string_view word) {
    const HfBpeOptions& options = model_.options();
    symbols_.clear();
    bool waits = false;
    const auto add_waiting = [&] {
        if (waits) symbols_.push_back(options.unknown);
        waits = false;
    };
    for (std::size_t at = 0; at < word.size();) {
        const CodePoint c = decode_utf8(word.data() + at, word.data() + word.size());
        const std::string_view bytes = word.substr(at, c.bytes);
        at += c.bytes;
        const std::int32_t id = model_.id_of_char(c.value);
        const auto has_token = [this](char b) { return model_.id_of_byte(static_cast<unsigned char>(b)) >= 0; };
        if (id >= 0) {
            add_waiting();
            symbols_.push_back(id);
        } else if (options.byte_fallback && std::all_of(bytes.begin(), bytes.end(), has_token)) {
            for (const char b : bytes) symbols_.push_back(model_.id_of_byte(static_cast<unsigned char>(b)));
        } else if (options.unknown >= 0) {
            if (!options.fuse_unknown) add_waiting();
            waits = true;
        }
    }
    add_waiting();
}

void HfBpeEncoder::merge_short() {
    std::size_t n = symbols_.size();
    ranks_.resize(n);  // ranks_[i] is that of the pair (i, i+1)
    for (std::size_t i = 0; i + 1 < n; ++i) ranks_[i] = model_.find(symbols_[i], symbols_[i + 1]).rank;
    while (n > 1) {
        const auto best = std::min_element(ranks_.begin(), ranks_.begin() + static_cast<std::ptrdiff_t>(n) - 1);
        if (*best == HfBpeModel::no_rank) break;
        const auto at = static_cast<std::size_t>(best - ranks_.begin());
        symbols_[at] = model_.find(symbols_[at], symbols_[at + 1]).id;
        std::copy(symbols_.begin() + static_cast<std::ptrdiff_t>(at) + 2,
                  symbols_.begin() + static_cast<std::ptrdiff_t>(n),
                  symbols_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
        std::copy(ranks_.begin() + static_cast<std::ptrdiff_t>(at) + 2, ranks_.begin() + static_cast<std::ptrdiff_t>(n),
                  ranks_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
        --n;
        if (at > 0) ranks_[at - 1] = model_.find(symbols_[at - 1], symbols_[at]).rank;
        if (at + 1 < n) ranks_[at] = model_.find(symbols_[at], symbols_[at + 1]).rank;
    }
    symbols_.resize(n);
}

void HfBpeEncoder::queue_pair(std::uint32_t at) {
    if (next_[at] == none) return;
    const std::uint32_t rank = model_.find(symbols_[at], symbols_[next_[at]]).rank;
    if (rank == HfBpeModel::no_rank) return;
    Bucket& bucket = buckets_[rank];
    if (bucket.empty()) {
        open_ranks_.push_back(rank);
        std::push_heap(open_ranks_.begin(), open_ranks_.end(), std::greater<>());
        bucket.places.clear();
        bucket.next = 0;
    }
    if (bucket.next == 0) {
        bucket.places.push_back(at);
        bucket.is_sorted = false;
    } else {
        bucket.late.push_back(at);
        std::push_heap(bucket.late.begin(), bucket.late.end(), std::greater<>());
    }
}

std::uint32_t HfBpeEncoder::take(Bucket& bucket) {
    if (!bucket.is_sorted && !std::is_sorted(bucket.places.begin(), bucket.places.end()))
        std::sort(bucket.places.begin(), bucket.places.end());
    bucket.is_sorted = true;
    const bool is_late = !bucket.late.empty() &&
                         (bucket.next == bucket.places.size() || bucket.late.front() < bucket.places[bucket.next]);
    if (!is_late) return bucket.places[bucket.next++];
    std::pop_heap(bucket.late.begin(), bucket.late.end(), std::greater<>());
    const std::uint32_t at = bucket.late.back();
    bucket.late.pop_back();
    return at;
}

void HfBpeEncoder::merge_at(std::uint32_t at, std::uint32_t rank) {
    if (symbols_[at] < 0 || next_[at] == none) return;
    const std::uint32_t right = next_[at];
    const HfBpeModel::Merge merge = model_.find(symbols_[at], symbols_[right]);
    if (merge.rank != rank) return;  // a neighbour has merged since the pair was seen here
    symbols_[at] = merge.id;
    symbols_[right] = -1;
    next_[at] = next_[right];
    if (next_[right] != none) previous_[next_[right]] = at;
    if (previous_[at] != none) queue_pair(previous_[at]);
    queue_pair(at);
}

void HfBpeEncoder::merge_long() {
    TERA_CHECK(symbols_.size() < none, "a piece of ", symbols_.size(), " characters");
    const auto n = static_cast<std::uint32_t>(symbols_.size());
    next_.resize(n);
    previous_.resize(n);
    buckets_.resize(model_.rank_count());
    for (std::uint32_t i = 0; i < n; ++i) {
        next_[i] = i + 1 < n ? i + 1 : none;
        previous_[i] = i > 0 ? i - 1 : none;
    }
    for (std::uint32_t i = 0; i + 1 < n; ++i) queue_pair(i);
    while (!open_ranks_.empty()) {
        const std::uint32_t rank = open_ranks_.front();
        std::pop_heap(open_ranks_.begin(), open_ranks_.end(), std::greater<>());
        open_ranks_.pop_back();
        Bucket& bucket = buckets_[rank];
        // A merge may make a pair of a better rank, which then goes first.
        while (!bucket.empty() && (open_ranks_.empty() || open_ranks_.front() > rank)) merge_at(take(bucket), rank);
        if (bucket.empty()) continue;
        open_ranks_.push_back(rank);
        std::push_heap(open_ranks_.begin(), open_ranks_.end(), std::greater<>());
    }
    std::erase_if(symbols_, [](std::int32_t id) { return id < 0; });
    if (n > large_word) {
        next_ = previous_ = {};
        buckets_ = {};
    }
}

}  // namespace tera
