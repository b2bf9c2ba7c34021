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

BpeModel::BpeModel(const BpeVocab& vocab, const BpeMerges& merges, const BpeOptions& options) : BpeModel() {
    std::unordered_map<std::string, std::uint32_t> symbol_of;
    symbol_of.reserve(merges.pairs.size() * 2 + 256);
    const auto number_of = [&symbol_of](const std::string& text) {
        return symbol_of.try_emplace(text, static_cast<std::uint32_t>(symbol_of.size())).first->second;
    };
    for (int byte = 0; byte < 256; ++byte) {
        const char c = static_cast<char>(byte);
        number_of(to_printable({&c, 1}));
    }
    reserve(merges.pairs.size());
    rank_count_ = static_cast<std::uint32_t>(merges.pairs.size());
    for (std::uint32_t rank = 0; rank < rank_count_; ++rank) {
        const auto& [left, right] = merges.pairs[rank];
        insert(number_of(left), number_of(right), {rank, number_of(left + right)});
    }
    id_of_symbol_.resize(symbol_of.size());
    dropped_.fill(options.drop_unknown);
    for (std::size_t id = 0; id < vocab.token_of_id.size(); ++id) {
        const std::string& token = vocab.token_of_id[id];
        const auto found = symbol_of.find(token);
        if (found != symbol_of.end()) {
            id_of_symbol_[found->second] = static_cast<std::int32_t>(id);
            if (found->second < 256) dropped_[found->second] = false;
        }
        if (options.whole_piece_first && !token.empty() && is_printable(token))
            whole_pieces_.try_emplace(from_printable(token), static_cast<std::int32_t>(id));
    }
    drops_any_ = std::find(dropped_.begin(), dropped_.end(), true) != dropped_.end();
    needs_leftmost_ = options.order == BpeOptions::Order::leftmost && outranks_its_halves();
}

BpeModel BpeModel::from_ranks(const std::vector<std::string>& tokens, std::int32_t first_id) {
    BpeModel model;
    model.rank_count_ = static_cast<std::uint32_t>(tokens.size());
    std::unordered_map<std::string_view, std::uint32_t> rank_of;
    rank_of.reserve(tokens.size());
    for (std::uint32_t rank = 0; rank < model.rank_count_; ++rank) rank_of.try_emplace(tokens[rank], rank);
    // Symbols: the bytes, then the tokens of two bytes and more in the order of their ranks.
    std::vector<std::uint32_t> symbol_of(tokens.size());
    model.id_of_symbol_.assign(256, -1);
    for (std::uint32_t rank = 0; rank < model.rank_count_; ++rank) {
        const std::string& token = tokens[rank];
        const std::int32_t id = first_id + static_cast<std::int32_t>(rank);
        if (token.size() == 1) {
            symbol_of[rank] = static_cast<unsigned char>(token[0]);
            model.id_of_symbol_[symbol_of[rank]] = id;
        } else {
            symbol_of[rank] = static_cast<std::uint32_t>(model.id_of_symbol_.size());
            model.id_of_symbol_.push_back(id);
        }
        model.whole_pieces_.try_emplace(token, id);
    }
    for (int byte = 0; byte < 256; ++byte)
        TERA_CHECK(model.id_of_symbol_[static_cast<std::size_t>(byte)] >= 0, "no token for byte ", byte);
    struct Pair {
        std::uint32_t left, right, rank;
    };
    std::vector<Pair> pairs;
    for (std::uint32_t rank = 0; rank < model.rank_count_; ++rank) {
        const std::string_view token = tokens[rank];
        for (std::size_t cut = 1; cut < token.size(); ++cut) {
            const auto left = rank_of.find(token.substr(0, cut)), right = rank_of.find(token.substr(cut));
            if (left != rank_of.end() && right != rank_of.end())
                pairs.push_back({symbol_of[left->second], symbol_of[right->second], rank});
        }
    }
    model.reserve(pairs.size());
    for (const Pair& pair : pairs) model.insert(pair.left, pair.right, {pair.rank, symbol_of[pair.rank]});
    model.needs_leftmost_ = model.outranks_its_halves();
    return model;
}

void BpeModel::reserve(std::size_t pairs) {
    const std::size_t capacity = std::bit_ceil(pairs * 2 + 2);
    slots_.resize(capacity);
    mask_ = capacity - 1;
    shift_ = 64 - std::countr_zero(capacity);
}

/// Whether some pair ranks before a merge that makes one of its halves.
bool BpeModel::outranks_its_halves() const {
    std::vector<std::uint32_t> made_at(id_of_symbol_.size());  // the last rank that makes each symbol, plus 1
    const auto for_each_pair = [this](const auto& visit) {
        for (std::uint32_t pair = 0; pair < byte_pairs_.size(); ++pair)
            if (byte_pairs_[pair].rank != no_rank) visit(pair >> 8, pair & 255, byte_pairs_[pair]);
        for (const Slot& slot : slots_)
            if (slot.merge.rank != no_rank) visit(slot.left, slot.right, slot.merge);
    };
    for_each_pair([&](std::uint32_t, std::uint32_t, const Merge& merge) {
        made_at[merge.symbol] = std::max(made_at[merge.symbol], merge.rank + 1);
    });
    bool found = false;
    for_each_pair([&](std::uint32_t left, std::uint32_t right, const Merge& merge) {
        found = found || merge.rank < made_at[left] || merge.rank < made_at[right];
    });
    return found;
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
    if (const std::int32_t whole = model_.whole_piece(piece); whole >= 0) {
        ids.push_back(whole);
        return;
    }
    load(piece);
    if (model_.needs_leftmost())
        merge_leftmost();
    else if (symbols_.size() <= short_piece)
        merge_short();
    else
        merge_long();
    for (const std::uint32_t symbol : symbols_) ids.push_back(model_.id_of(symbol));
}

void BpeMerger::load(std::string_view piece) {
    TERA_CHECK(piece.size() < none, "a piece of ", piece.size(), " bytes");
    symbols_.resize(piece.size());
    std::size_t kept = 0;
    for (const char c : piece) {
        const auto byte = static_cast<unsigned char>(c);
        symbols_[kept] = byte;
        kept += !model_.drops(byte);
    }
    symbols_.resize(kept);
}

void BpeMerger::merge_short() {
    constexpr std::uint32_t stale = BpeModel::no_rank - 1;
    std::size_t n = symbols_.size();
    ranks_.resize(n);  // ranks_[i] is that of the pair (i, i+1)
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

void BpeMerger::merge_long() {
    const auto n = static_cast<std::uint32_t>(symbols_.size());
    next_.resize(n);
    previous_.resize(n);
    places_of_.resize(model_.rank_count());
    for (std::uint32_t i = 0; i < n; ++i) {
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

/// By a heap of (rank, place): slower, for merges in an order that no training gives.
void BpeMerger::merge_leftmost() {
    const auto n = static_cast<std::uint32_t>(symbols_.size());
    next_.resize(n);
    previous_.resize(n);
    std::vector<std::uint64_t> heap;
    const auto queue = [&](std::uint32_t at) {
        if (next_[at] == none) return;
        const std::uint32_t rank = model_.find(symbols_[at], symbols_[next_[at]]).rank;
        if (rank == BpeModel::no_rank) return;
        heap.push_back(static_cast<std::uint64_t>(rank) << 32 | at);
        std::push_heap(heap.begin(), heap.end(), std::greater<>());
    };
    for (std::uint32_t i = 0; i < n; ++i) {
        next_[i] = i + 1 < n ? i + 1 : none;
        previous_[i] = i > 0 ? i - 1 : none;
    }
    for (std::uint32_t i = 0; i < n; ++i) queue(i);
    while (!heap.empty()) {
        std::pop_heap(heap.begin(), heap.end(), std::greater<>());
        const auto rank = static_cast<std::uint32_t>(heap.back() >> 32), at = static_cast<std::uint32_t>(heap.back());
        heap.pop_back();
        if (symbols_[at] == none || next_[at] == none) continue;
        const std::uint32_t right = next_[at];
        const BpeModel::Merge merge = model_.find(symbols_[at], symbols_[right]);
        if (merge.rank != rank) continue;
        symbols_[at] = merge.symbol;
        symbols_[right] = none;
        next_[at] = next_[right];
        if (next_[right] != none) previous_[next_[right]] = at;
        if (previous_[at] != none) queue(previous_[at]);
        queue(at);
    }
    std::erase(symbols_, none);
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
