// Merging of a short word: the pair of the lowest rank is looked for among all of them.
//
// The key of the pair that begins at a place is its rank and the place in one number, so that the least one is the
// leftmost pair of the lowest rank.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "token/merge_rules.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace tera {

namespace short_word {

#if defined(__AVX512F__)
inline std::uint32_t least_of(__m512i keys) {
    const __m256i half =
        _mm256_min_epu32(_mm512_maskz_extracti64x4_epi64(0xF, keys, 0), _mm512_maskz_extracti64x4_epi64(0xF, keys, 1));
    __m128i rest = _mm_min_epu32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    rest = _mm_min_epu32(rest, _mm_shuffle_epi32(rest, 0x4E));
    rest = _mm_min_epu32(rest, _mm_shuffle_epi32(rest, 0xB1));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(rest));
}
#endif

/// The keys in memory, 64 bytes at a time.
class KeysInMemory {
  public:
    KeysInMemory(std::uint32_t* keys, std::uint32_t size) : keys_(keys), size_((size + 15) / 16 * 16) {}
    std::uint32_t least() const {
#if defined(__AVX512F__)
        __m512i best = _mm512_load_si512(keys_);
        for (std::uint32_t i = 16; i < size_; i += 16)
            best = _mm512_maskz_min_epu32(0xFFFF, best, _mm512_load_si512(keys_ + i));
        return least_of(best);
#else
        std::uint32_t best = MergeRules::none;
#pragma omp simd reduction(min : best)
        for (std::uint32_t i = 0; i < size_; ++i) best = std::min(best, keys_[i]);
        return best;
#endif
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
        return least_of(all);
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

}  // namespace short_word

/// The symbols of a word of up to `most` have places from 1 on; before and behind them stands one that is in no pair.
class ShortWord {
  public:
    static constexpr std::uint32_t most = 254;

    /// The symbol at place i + 1. All are put there before merge().
    void put(std::uint32_t i, std::uint32_t symbol) { symbols_[i + 1] = symbol; }
    /// Merges the n symbols that were put, always the leftmost pair of the lowest rank, until none has a rank or only
    /// `fewest` are left. merge_of(left, right) gives the merge of two of the symbols that were put.
    template <class MergeOf>
    void merge(const MergeRules& rules, std::uint32_t n, const MergeOf& merge_of, std::uint32_t fewest = 1) {
        begin(rules, n, merge_of);
#if defined(__AVX512F__)
        using namespace short_word;
        if (n < 16) return merge_begun(rules, KeysInRegisters<1>(keys_.data()), fewest);
        if (n < 32) return merge_begun(rules, KeysInRegisters<2>(keys_.data()), fewest);
        if (n < 64) return merge_begun(rules, KeysInRegisters<4>(keys_.data()), fewest);
#endif
        merge_begun(rules, short_word::KeysInMemory(keys_.data(), n + 1), fewest);
    }

    /// What is left: how many, and f(symbol, place at which it began, from 0) for each.
    std::uint32_t count() const { return count_; }
    template <class F>
    void for_each(const F& f) const {
        for (std::uint32_t i = 0, at = 1; i < count_; ++i, at = next_[at]) f(symbols_[at], at - 1);
    }

  private:
    template <class MergeOf>
    void begin(const MergeRules& rules, std::uint32_t n, const MergeOf& merge_of) {
        symbols_[0] = symbols_[n + 1] = MergeRules::in_no_pair;
        for (std::uint32_t i = 1; i <= n; ++i) {
            next_[i] = static_cast<std::uint16_t>(i + 1);
            previous_[i] = static_cast<std::uint16_t>(i - 1);
        }
        const std::uint32_t lanes = n < 16 ? 16 : n < 32 ? 32 : n < 64 ? 64 : 256;
        for (std::uint32_t i = std::max(n, 1u); i < lanes; ++i) keys_[i] = MergeRules::none;
        keys_[0] = MergeRules::none;
        for (std::uint32_t i = 1; i < n; ++i) keys_[i] = key_of(rules, i, merge_of(symbols_[i], symbols_[i + 1]));
        count_ = n;
    }
    template <class Keys>
    void merge_begun(const MergeRules& rules, Keys keys, std::uint32_t fewest) {
        for (std::uint32_t best = keys.least(); best != MergeRules::none && count_ > fewest; best = keys.least()) {
            const std::uint32_t at = best & 0xFF, right = next_[at], before = previous_[at], behind = next_[right];
            const std::uint32_t symbol = rules.has_ties() ? made_[at] : rules.made_by(best >> 8);
            symbols_[at] = symbol;
            next_[at] = static_cast<std::uint16_t>(behind);
            previous_[behind] = static_cast<std::uint16_t>(at);
            keys.set(right, MergeRules::none);
            keys.set(at, key_of(rules, at, rules.find(symbol, symbols_[behind])));
            keys.set(before, key_of(rules, before, rules.find(symbols_[before], symbol)));
            --count_;
        }
    }
    std::uint32_t key_of(const MergeRules& rules, std::uint32_t at, std::uint32_t merge) {
        if (rules.has_ties() && merge != MergeRules::none) {
            made_[at] = rules.made_by(merge);
            merge = rules.rank_of(merge);
        }
        return merge == MergeRules::none ? MergeRules::none : merge << 8 | at;
    }

    alignas(64) std::array<std::uint32_t, most + 2> keys_;
    std::array<std::uint32_t, most + 2> symbols_, made_;   // made_: by the pair that begins there, where ranks tie
    std::array<std::uint16_t, most + 2> next_, previous_;  // of each living symbol
    std::uint32_t count_ = 0;
};

}  // namespace tera
