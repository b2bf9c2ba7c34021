#include "token/sentencepiece_bpe.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "core/error.h"

namespace tera {

namespace {

constexpr std::size_t longest_bpe_piece = 1024;  // bytes; all cuts of a piece in two are looked up
constexpr std::size_t short_word = 48;           // symbols; above, queues are quicker than looking through all pairs
constexpr std::size_t large_word = 1 << 20;      // symbols; above, the scratch memory is given back
constexpr std::uint32_t none = 0xFFFFFFFF;

std::uint32_t packed(std::string_view bytes) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
}

std::size_t hash_char(std::uint32_t bytes) { return bytes * 0x9E3779B9u >> 7; }

}  // namespace

PieceMerges::PieceMerges(const SentencePieceModel& model, const std::string& file) {
    std::vector<float> scores;
    std::size_t pairs = 0;
    for (const auto& [text, id] : model.text_ids) {
        if (model.piece(id).type == PieceType::unused)
            usage_error(file, ": piece ", id, " is marked unused, which is not supported in BPE models");
        if (text.size() > longest_bpe_piece)
            usage_error(file, ": piece ", id, " has ", text.size(), " bytes; at most ", longest_bpe_piece,
                        " are supported");
        scores.push_back(model.piece(id).score);
        pairs += text.size();
    }
    std::sort(scores.begin(), scores.end(), std::greater<>());
    scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
    rank_count_ = static_cast<std::uint32_t>(scores.size());

    index_characters(model);
    const std::size_t capacity = std::bit_ceil(pairs * 2 + 2);
    slots_.resize(capacity);
    mask_ = capacity - 1;
    shift_ = 64 - std::countr_zero(capacity);
    for (const auto& [text, id] : model.text_ids) {
        const auto at = std::lower_bound(scores.begin(), scores.end(), model.piece(id).score, std::greater<>());
        add_pairs(model, id, static_cast<std::uint32_t>(at - scores.begin()));
    }
    find_cut(model);
}

/// Gives a number to every character that is a piece or part of one.
void PieceMerges::index_characters(const SentencePieceModel& model) {
    std::vector<std::string_view> characters;
    for (const auto& [text, id] : model.text_ids) {
        for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(char_length(rest)))
            characters.push_back(rest.substr(0, char_length(rest)));
    }
    std::sort(characters.begin(), characters.end());
    characters.erase(std::unique(characters.begin(), characters.end()), characters.end());
    chars_.resize(std::bit_ceil(characters.size() * 2 + 2));
    char_mask_ = chars_.size() - 1;
    for (std::int32_t id = 0; id < model.size(); ++id) id_of_symbol_.push_back(model.id_of(model.piece(id).text));
    for (const std::string_view character : characters) {
        const auto found = model.text_ids.find(character);
        auto symbol = static_cast<std::uint32_t>(id_of_symbol_.size());
        if (found != model.text_ids.end())
            symbol = static_cast<std::uint32_t>(found->second);
        else
            id_of_symbol_.push_back(model.id_of(character));
        std::size_t at = hash_char(packed(character)) & char_mask_;
        while (chars_[at].bytes != 0) at = (at + 1) & char_mask_;
        chars_[at] = {packed(character), symbol};
    }
    unknown_symbol_ = static_cast<std::uint32_t>(id_of_symbol_.size());
    id_of_symbol_.push_back(model.unk_id);
}

std::uint32_t PieceMerges::symbol_of(std::string_view bytes) const {
    const std::uint32_t wanted = packed(bytes);
    for (std::size_t at = hash_char(wanted) & char_mask_; chars_[at].bytes != 0; at = (at + 1) & char_mask_)
        if (chars_[at].bytes == wanted) return chars_[at].symbol;
    return unknown_symbol_;
}

/// Every way to cut the piece into two symbols is a pair that merges to it.
void PieceMerges::add_pairs(const SentencePieceModel& model, std::int32_t id, std::uint32_t rank) {
    const std::string_view text = model.piece(id).text;
    const auto symbol = [&](std::string_view part) {
        if (char_length(part) == part.size()) return symbol_of(part);
        const auto found = model.text_ids.find(part);
        return found == model.text_ids.end() ? none : static_cast<std::uint32_t>(found->second);
    };
    for (std::size_t at = char_length(text); at < text.size(); at += char_length(text.substr(at))) {
        const std::uint32_t left = symbol(text.substr(0, at)), right = symbol(text.substr(at));
        if (left != none && right != none) insert(left, right, {rank, static_cast<std::uint32_t>(id)});
    }
}

void PieceMerges::insert(std::uint32_t left, std::uint32_t right, Merge merge) {
    std::size_t at = slot_of(left, right);
    while (slots_[at].merge.rank != no_rank) at = (at + 1) & mask_;
    slots_[at] = {left, right, merge};
}

void PieceMerges::find_cut(const SentencePieceModel& model) {
    bool space_behind_other = false, other_behind_space = false;
    for (const auto& [text, id] : model.text_ids) {
        bool after_space = false;
        for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(char_length(rest))) {
            const bool is_space = rest.substr(0, char_length(rest)) == sentencepiece_space;
            if (rest.size() < text.size() && is_space && !after_space) space_behind_other = true;
            if (rest.size() < text.size() && !is_space && after_space) other_behind_space = true;
            after_space = is_space;
        }
    }
    if (!space_behind_other)
        cut_ = Cut::before_spaces;
    else if (!other_behind_space)
        cut_ = Cut::behind_spaces;
}

PieceMerger::PieceMerger(const SentencePieceModel& model, const SentencePieceNormalizer& normalizer,
                         const PieceMerges& merges)
    : model_(model), normalizer_(normalizer), merges_(merges), writer_(model), word_writer_(model) {}

void PieceMerger::encode(std::string_view text, std::vector<std::int32_t>& ids) {
    writer_.begin();
    if (normalizer_.user_defined().empty()) {
        encode_cut(text, ids);
        return;
    }
    // User-defined pieces never merge with their neighbours.
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
        PieceTrie::Match match;
        if (normalizer_.begins_user_defined(text[at])) match = normalizer_.user_defined().longest(text.substr(at));
        if (match.value < 0) {
            at += char_length(text.substr(at));
            continue;
        }
        encode_cut(text.substr(begin, at - begin), ids);
        const std::string_view piece = text.substr(at, match.length);
        writer_.add(model_.id_of(piece), piece, ids);
        begin = at += match.length;
    }
    encode_cut(text.substr(begin), ids);
}

/// Encodes words one by one if the model allows it.
void PieceMerger::encode_cut(std::string_view text, std::vector<std::int32_t>& ids) {
    const PieceMerges::Cut cut = merges_.cut();
    std::size_t begin = 0;
    bool after_space = true;  // nothing to cut at the very beginning
    for (std::size_t at = 0; cut != PieceMerges::Cut::nowhere && at < text.size();) {
        const auto* found =
            static_cast<const char*>(std::memchr(text.data() + at, sentencepiece_space[0], text.size() - at));
        if (!found) break;
        const auto space = static_cast<std::size_t>(found - text.data());
        if (!text.substr(space).starts_with(sentencepiece_space)) {
            after_space = false;
            at = space + 1;
            continue;
        }
        if (space > at) after_space = false;
        at = space + sentencepiece_space.size();
        if (cut == PieceMerges::Cut::before_spaces && !after_space) {
            encode_word(text.substr(begin, space - begin), ids);
            begin = space;
        } else if (cut == PieceMerges::Cut::behind_spaces && !text.substr(at).starts_with(sentencepiece_space)) {
            encode_word(text.substr(begin, at - begin), ids);
            begin = at;
        }
        after_space = true;
    }
    encode_word(text.substr(begin), ids);
}

void PieceMerger::encode_word(std::string_view word, std::vector<std::int32_t>& ids) {
    const auto cached = [&](auto& cache) {
        using Cache = std::remove_reference_t<decltype(cache)>;
        std::array<std::int32_t, Cache::most_ids> known;
        const auto key = Cache::key_of(word);
        if (const std::size_t count = cache.find(key, known.data())) {
            writer_.add_written(std::span(known).first(count), ids);
            return;
        }
        merge(word);
        cache.insert(key, word_ids_);
        writer_.add_written(word_ids_, ids);
    };
    if (word.empty()) return;
    if (word.size() <= ShortCache::max_bytes) {
        cached(short_cache_);
    } else if (word.size() <= LongCache::max_bytes) {
        cached(long_cache_);
    } else {
        merge(word);
        writer_.add_written(word_ids_, ids);
    }
}

/// Puts the ids of the word into word_ids_.
void PieceMerger::merge(std::string_view word) {
    TERA_CHECK(word.size() < none, "a text of ", word.size(), " bytes");
    symbols_.clear();
    starts_.clear();
    for (std::size_t at = 0; at < word.size();) {
        const std::size_t length = char_length(word.substr(at));
        symbols_.push_back(merges_.symbol_of(word.substr(at, length)));
        starts_.push_back(static_cast<std::uint32_t>(at));
        at += length;
    }
    if (symbols_.size() <= short_word)
        merge_short();
    else
        merge_long();
    word_ids_.clear();
    word_writer_.begin();
    for (std::size_t i = 0; i < symbols_.size(); ++i) {
        const std::size_t end = i + 1 < symbols_.size() ? starts_[i + 1] : word.size();
        word_writer_.add(merges_.id_of(symbols_[i]), word.substr(starts_[i], end - starts_[i]), word_ids_);
    }
}

void PieceMerger::merge_short() {
    std::size_t n = symbols_.size();
    ranks_.resize(n);
    const auto rank_at = [&](std::size_t i) {
        return i + 1 < n ? merges_.find(symbols_[i], symbols_[i + 1]).rank : PieceMerges::no_rank;
    };
    for (std::size_t i = 0; i < n; ++i) ranks_[i] = rank_at(i);
    while (n > 1) {
        const auto best = std::min_element(ranks_.begin(), ranks_.begin() + static_cast<std::ptrdiff_t>(n));
        if (*best == PieceMerges::no_rank) break;
        const auto at = static_cast<std::size_t>(best - ranks_.begin());
        symbols_[at] = merges_.find(symbols_[at], symbols_[at + 1]).symbol;
        const auto behind = static_cast<std::ptrdiff_t>(at + 1);
        symbols_.erase(symbols_.begin() + behind);
        starts_.erase(starts_.begin() + behind);
        ranks_.erase(ranks_.begin() + behind);
        --n;
        ranks_[at] = rank_at(at);
        if (at > 0) ranks_[at - 1] = rank_at(at - 1);
    }
}

void PieceMerger::Places::push(std::uint32_t place) {
    if (rising.empty() || place > rising.back()) {
        rising.push_back(place);
    } else {
        heap.push_back(place);
        std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
}

std::uint32_t PieceMerger::Places::pop() {
    std::uint32_t place = none;
    if (!heap.empty() && (next == rising.size() || heap.front() < rising[next])) {
        place = heap.front();
        std::pop_heap(heap.begin(), heap.end(), std::greater<>());
        heap.pop_back();
    } else {
        place = rising[next++];
    }
    if (next == rising.size()) {
        rising.clear();
        next = 0;
    }
    return place;
}

void PieceMerger::merge_long() {
    const auto n = static_cast<std::uint32_t>(symbols_.size());
    next_.resize(n);
    previous_.resize(n);
    ranks_.assign(n, PieceMerges::no_rank);
    places_of_.resize(merges_.rank_count());
    for (std::uint32_t i = 0; i < n; ++i) {
        next_[i] = i + 1 < n ? i + 1 : none;
        previous_[i] = i > 0 ? i - 1 : none;
    }
    for (std::uint32_t i = 0; i + 1 < n; ++i) queue_pair(i);
    while (!open_ranks_.empty()) {
        const std::uint32_t rank = open_ranks_.front();
        Places& places = places_of_[rank];
        const std::uint32_t at = places.pop();
        if (places.empty()) {
            std::pop_heap(open_ranks_.begin(), open_ranks_.end(), std::greater<>());
            open_ranks_.pop_back();
        }
        if (ranks_[at] != rank) continue;  // what stood here has merged since
        const std::uint32_t right = next_[at];
        symbols_[at] = merges_.find(symbols_[at], symbols_[right]).symbol;
        symbols_[right] = none;
        ranks_[right] = PieceMerges::no_rank;
        next_[at] = next_[right];
        if (next_[at] != none) previous_[next_[at]] = at;
        if (previous_[at] != none) queue_pair(previous_[at]);
        queue_pair(at);
    }
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
        if (symbols_[i] == none) continue;
        symbols_[kept] = symbols_[i];
        starts_[kept++] = starts_[i];
    }
    symbols_.resize(kept);
    starts_.resize(kept);
    if (n > large_word) {
        next_ = previous_ = ranks_ = {};
        places_of_.clear();
    }
}

void PieceMerger::queue_pair(std::uint32_t at) {
    ranks_[at] = next_[at] == none ? PieceMerges::no_rank : merges_.find(symbols_[at], symbols_[next_[at]]).rank;
    if (ranks_[at] == PieceMerges::no_rank) return;
    Places& places = places_of_[ranks_[at]];
    if (places.empty()) {
        open_ranks_.push_back(ranks_[at]);
        std::push_heap(open_ranks_.begin(), open_ranks_.end(), std::greater<>());
    }
    places.push(at);
}

}  // namespace tera
