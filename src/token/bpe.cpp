#include "token/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <string>
#include <unordered_map>

#include "core/error.h"
#include "token/byte_level.h"

namespace tera {

namespace {

constexpr std::size_t short_piece = 128;      // bytes; below, rescanning an array is quicker than buckets
constexpr std::size_t large_piece = 1 << 20;  // bytes; above, the scratch memory is given back
constexpr std::uint32_t none = 0xFFFFFFFF;

}  // namespace

BpeModel::BpeModel(const BpeVocab& vocab, const BpeMerges& merges) : byte_pairs_(1 << 16) {
    std::unordered_map<std::string, std::uint32_t> symbol_of;
    symbol_of.reserve(merges.pairs.size() * 2 + 256);
    const auto number_of = [&symbol_of](const std::string& text) {
        return symbol_of.try_emplace(text, static_cast<std::uint32_t>(symbol_of.size())).first->second;
    };
    for (int byte = 0; byte < 256; ++byte) {
        const char c = static_cast<char>(byte);
        number_of(to_printable({&c, 1}));
    }
    const std::size_t capacity = std::bit_ceil(merges.pairs.size() * 2 + 2);
    slots_.resize(capacity);
    mask_ = capacity - 1;
    shift_ = 64 - std::countr_zero(capacity);
    rank_count_ = static_cast<std::uint32_t>(merges.pairs.size());
    for (std::uint32_t rank = 0; rank < rank_count_; ++rank) {
        const auto& [left, right] = merges.pairs[rank];
        insert(number_of(left), number_of(right), {rank, number_of(left + right)});
    }
    id_of_symbol_.resize(symbol_of.size());
    for (std::size_t id = 0; id < vocab.token_of_id.size(); ++id) {
        const auto found = symbol_of.find(vocab.token_of_id[id]);
        if (found != symbol_of.end()) id_of_symbol_[found->second] = static_cast<std::int32_t>(id);
    }
}

void BpeModel::insert(std::uint32_t left, std::uint32_t right, Merge merge) {
    if ((left | right) < 256) {
        byte_pairs_[left << 8 | right] = merge;  // of a repeated pair the last rank counts
        return;
    }
    std::size_t at = slot_of(left, right);
    while (slots_[at].merge.rank != no_rank && (slots_[at].left != left || slots_[at].right != right))
        at = (at + 1) & mask_;
    slots_[at] = {left, right, merge};
}

void BpeMerger::encode(std::string_view piece, std::vector<std::int32_t>& ids) {
    TERA_CHECK(piece.size() < none, "a piece of ", piece.size(), " bytes");
    if (piece.size() <= short_piece)
        merge_short(piece);
    else
        merge_long(piece);
    for (const std::uint32_t symbol : symbols_) ids.push_back(model_.id_of(symbol));
}

void BpeMerger::merge_short(std::string_view piece) {
    constexpr std::uint32_t stale = BpeModel::no_rank - 1;
    std::size_t n = piece.size();
    symbols_.resize(n);
    ranks_.resize(n);  // ranks_[i] is that of the pair (i, i+1)
    for (std::size_t i = 0; i < n; ++i) symbols_[i] = static_cast<unsigned char>(piece[i]);
    std::uint32_t best = BpeModel::no_rank;
    for (std::size_t i = 0; i + 1 < n; ++i) {
        ranks_[i] = model_.find(symbols_[i], symbols_[i + 1]).rank;
        best = std::min(best, ranks_[i]);
    }
    while (best != BpeModel::no_rank) {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < n; ++kept) {
            if (i + 1 < n && ranks_[i] == best) {
                symbols_[kept] = model_.find(symbols_[i], symbols_[i + 1]).symbol;
                ranks_[kept] = stale;
                if (kept > 0) ranks_[kept - 1] = stale;
                i += 2;
            } else {
                symbols_[kept] = symbols_[i];
                ranks_[kept] = ranks_[i];
                ++i;
            }
        }
        n = kept;
        best = BpeModel::no_rank;
        for (std::size_t i = 0; i + 1 < n; ++i) {
            if (ranks_[i] == stale) ranks_[i] = model_.find(symbols_[i], symbols_[i + 1]).rank;
            best = std::min(best, ranks_[i]);
        }
    }
    symbols_.resize(n);
}

void BpeMerger::merge_long(std::string_view piece) {
    const auto n = static_cast<std::uint32_t>(piece.size());
    symbols_.resize(n);
    next_.resize(n);
    previous_.resize(n);
    places_of_.resize(model_.rank_count());
    for (std::uint32_t i = 0; i < n; ++i) {
        symbols_[i] = static_cast<unsigned char>(piece[i]);
        next_[i] = i + 1 < n ? i + 1 : none;
        previous_[i] = i > 0 ? i - 1 : none;
    }
    for (std::uint32_t i = 0; i + 1 < n; ++i) queue_pair(i);
    std::vector<std::uint32_t> places;
    while (!open_ranks_.empty()) {
        std::pop_heap(open_ranks_.begin(), open_ranks_.end(), std::greater<>());
        const std::uint32_t rank = open_ranks_.back();
        open_ranks_.pop_back();
        places.clear();
        places.swap(places_of_[rank]);
        if (!std::is_sorted(places.begin(), places.end())) std::sort(places.begin(), places.end());
        // All of this rank, even if a new pair ranks lower: that one waits in its bucket.
        for (const std::uint32_t at : places) merge_at(at, rank);
    }
    std::erase(symbols_, none);
    if (n > large_piece) {
        next_ = previous_ = {};
        places_of_.clear();
    }
}

void BpeMerger::queue_pair(std::uint32_t at) {
    if (next_[at] == none) return;
    const std::uint32_t rank = model_.find(symbols_[at], symbols_[next_[at]]).rank;
    if (rank == BpeModel::no_rank) return;
    if (places_of_[rank].empty()) {
        open_ranks_.push_back(rank);
        std::push_heap(open_ranks_.begin(), open_ranks_.end(), std::greater<>());
    }
    places_of_[rank].push_back(at);
}

void BpeMerger::merge_at(std::uint32_t at, std::uint32_t rank) {
    if (symbols_[at] == none || next_[at] == none) return;
    const std::uint32_t right = next_[at];
    const BpeModel::Merge merge = model_.find(symbols_[at], symbols_[right]);
    if (merge.rank != rank) return;  // a neighbour has merged since the pair was seen here
    symbols_[at] = merge.symbol;
    symbols_[right] = none;
    next_[at] = next_[right];
    if (next_[right] != none) previous_[next_[right]] = at;
    if (previous_[at] != none) queue_pair(previous_[at]);
    queue_pair(at);
}

}  // namespace tera
