#include <algorithm>
#include <functional>

#include "core/error.h"
#include "token/bpe.h"

namespace tera {

namespace {

constexpr std::size_t large_piece = 1 << 20;  // bytes; above, the scratch memory is given back
constexpr std::uint32_t none = 0xFFFFFFFF;

}  // namespace

void BpeMerger::encode(std::string_view piece, std::vector<std::int32_t>& ids) {
    TERA_CHECK(piece.size() < none, "a piece of ", piece.size(), " bytes");
    if (const std::int32_t whole = model_.whole_piece(piece); whole >= 0) {
        ids.push_back(whole);
    } else if (piece.size() <= most_short &&
               (model_.order() == BpeOptions::Order::leftmost || !model_.is_unordered())) {
        const std::size_t first = ids.size(), count = merge_short(piece).symbols;
        ids.resize(first + count);
        for (std::size_t i = 0, at = 1; i < count; ++i, at = short_next_[at])
            ids[first + i] = model_.id_of(short_symbols_[at]);
    } else {
        load(piece);
        merge_long();
        for (const std::uint32_t symbol : symbols_) ids.push_back(model_.id_of(symbol));
    }
}

namespace {

/// The keys of the pairs of a short piece, in memory.
class KeysInMemory {
  public:
    KeysInMemory(std::uint32_t* keys, std::uint32_t size) : keys_(keys), size_((size + 15) / 16 * 16) {}
    std::uint32_t least() const {
        std::uint32_t best = none;
#pragma omp simd reduction(min : best)
        for (std::uint32_t i = 0; i < size_; ++i) best = std::min(best, keys_[i]);
        return best;
    }
    void set(std::uint32_t at, std::uint32_t key) { keys_[at] = key; }

  private:
    std::uint32_t* keys_;
    std::uint32_t size_;
};

#if defined(__AVX512F__)
/// The same of up to 16 * vectors pairs in registers: a key that was written can be compared at once, while memory
/// written in small pieces and read in a large one makes the processor wait.
template <int vectors>
class KeysInRegisters {
  public:
    explicit KeysInRegisters(const std::uint32_t* keys) {
        for (int v = 0; v < vectors; ++v) keys_[v] = _mm512_load_si512(keys + 16 * v);
    }
    std::uint32_t least() const {
        __m512i all = keys_[0];
        for (int v = 1; v < vectors; ++v) all = _mm512_maskz_min_epu32(0xFFFF, all, keys_[v]);
        __m256i half = _mm256_min_epu32(_mm512_maskz_extracti64x4_epi64(0xF, all, 0),
                                        _mm512_maskz_extracti64x4_epi64(0xF, all, 1));
        __m128i rest = _mm_min_epu32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
        rest = _mm_min_epu32(rest, _mm_shuffle_epi32(rest, 0x4E));
        rest = _mm_min_epu32(rest, _mm_shuffle_epi32(rest, 0xB1));
        return static_cast<std::uint32_t>(_mm_cvtsi128_si32(rest));
    }
    void set(std::uint32_t at, std::uint32_t key) {
        const std::uint64_t bit = std::uint64_t{1} << at;
        for (int v = 0; v < vectors; ++v)
            keys_[v] = _mm512_mask_set1_epi32(keys_[v], static_cast<__mmask16>(bit >> 16 * v), static_cast<int>(key));
    }

  private:
    __m512i keys_[vectors];
};
#endif

}  // namespace

/// Symbols into their list from place 1 on, and the keys of their pairs; returns how many symbols.
std::uint32_t BpeMerger::load_short(std::string_view piece) {
    std::uint32_t n = 0;
    for (const char c : piece) {
        const auto byte = static_cast<unsigned char>(c);
        short_symbols_[n + 1] = byte;
        n += !model_.drops(byte);
    }
    short_symbols_[0] = short_symbols_[n + 1] = PairTable::most_symbols;
    for (std::uint32_t i = 1; i <= n; ++i) {
        short_next_[i] = static_cast<std::uint16_t>(i + 1);
        short_previous_[i] = static_cast<std::uint16_t>(i - 1);
    }
    const std::uint32_t lanes = n < 16 ? 16 : n < 32 ? 32 : n < 64 ? 64 : 256;
    for (std::uint32_t i = std::max(n, 1u); i < lanes; ++i) keys_[i] = none;
    keys_[0] = none;
    for (std::uint32_t i = 1; i < n; ++i) {
        const std::uint32_t rank = model_.rank_of_bytes(short_symbols_[i], short_symbols_[i + 1]);
        keys_[i] = rank == BpeModel::no_rank ? none : rank << 8 | i;
    }
    return n;
}

BpeMerger::LastMerge BpeMerger::merge_short(std::string_view piece) {
    const std::uint32_t n = load_short(piece);
#if defined(__AVX512F__)
    if (n < 16) return merge_loaded(n, KeysInRegisters<1>(keys_.data()));
    if (n < 32) return merge_loaded(n, KeysInRegisters<2>(keys_.data()));
    if (n < 64) return merge_loaded(n, KeysInRegisters<4>(keys_.data()));
#endif
    return merge_loaded(n, KeysInMemory(keys_.data(), n + 1));
}

/// The key of the pair that begins at a place is its rank and the place in one number, so that the least one is the
/// leftmost pair of the lowest rank. Nothing begins at place 0.
template <class Keys>
BpeMerger::LastMerge BpeMerger::merge_loaded(std::uint32_t size, Keys keys) {
    const auto key_of = [this](std::uint32_t at, std::uint32_t right) {
        const std::uint32_t rank = model_.rank_of(short_symbols_[at], short_symbols_[right]);
        return rank == BpeModel::no_rank ? none : rank << 8 | at;
    };
    LastMerge last;
    last.symbols = size;
    for (std::uint32_t best = keys.least(); best != none; best = keys.least()) {
        const std::uint32_t at = best & 0xFF, right = short_next_[at];
        const std::uint32_t before = short_previous_[at], behind = short_next_[right];
        last = {short_symbols_[at], short_symbols_[right], best >> 8, last.symbols - 1};
        short_symbols_[at] = model_.symbol_of(best >> 8);
        short_next_[at] = static_cast<std::uint16_t>(behind);
        short_previous_[behind] = static_cast<std::uint16_t>(at);
        keys.set(right, none);
        keys.set(at, key_of(at, behind));
        keys.set(before, key_of(before, at));
    }
    return last;
}

void BpeMerger::load(std::string_view piece) {
    symbols_.resize(piece.size());
    std::size_t kept = 0;
    for (const char c : piece) {
        const auto byte = static_cast<unsigned char>(c);
        symbols_[kept] = byte;
        kept += !model_.drops(byte);
    }
    symbols_.resize(kept);
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
    const bool look_again = model_.order() == BpeOptions::Order::leftmost && model_.is_unordered();
    while (!open_ranks_.empty()) {
        std::pop_heap(open_ranks_.begin(), open_ranks_.end(), std::greater<>());
        const std::uint32_t rank = open_ranks_.back();
        open_ranks_.pop_back();
        places_.clear();
        places_.swap(places_of_[rank]);
        if (!std::is_sorted(places_.begin(), places_.end())) std::sort(places_.begin(), places_.end());
        for (std::size_t i = 0; i < places_.size(); ++i) {
            merge_at(places_[i], rank);
            if (!look_again || open_ranks_.empty() || open_ranks_.front() > rank) continue;
            // A new pair ranks lower and goes first; the other places wait in their bucket. (No pair of this rank can
            // be new: what a merge makes is longer.)
            places_.erase(places_.begin(), places_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
            if (!places_.empty()) open_bucket(rank);
            places_of_[rank].swap(places_);
            break;
        }
    }
    std::erase(symbols_, none);
    if (n > large_piece) {
        next_ = previous_ = {};
        places_of_.clear();
    }
}

void BpeMerger::queue_pair(std::uint32_t at) {
    if (next_[at] == none) return;
    const std::uint32_t rank = model_.rank_of(symbols_[at], symbols_[next_[at]]);
    if (rank == BpeModel::no_rank) return;
    if (places_of_[rank].empty()) open_bucket(rank);
    places_of_[rank].push_back(at);
}

void BpeMerger::open_bucket(std::uint32_t rank) {
    open_ranks_.push_back(rank);
    std::push_heap(open_ranks_.begin(), open_ranks_.end(), std::greater<>());
}

void BpeMerger::merge_at(std::uint32_t at, std::uint32_t rank) {
    if (symbols_[at] == none || next_[at] == none) return;
    const std::uint32_t right = next_[at];
    if (model_.rank_of(symbols_[at], symbols_[right]) != rank) return;  // a neighbour has merged since
    symbols_[at] = model_.symbol_of(rank);
    symbols_[right] = none;
    next_[at] = next_[right];
    if (next_[right] != none) previous_[next_[right]] = at;
    if (previous_[at] != none) queue_pair(previous_[at]);
    queue_pair(at);
}

}  // namespace tera
