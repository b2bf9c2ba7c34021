// Numbers of pairs of numbers: the ranks at which two neighbouring symbols of BPE merge.
//
// Eight bytes a pair, eight pairs to a cache line, and all of a line compared at once: nearly every look-up reads one
// line and decides nothing on the way, which a processor could guess wrongly.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace tera {

class PairTable {
  public:
    static constexpr std::uint32_t none = 0xFFFFFFFF;
    static constexpr int symbol_bits = 21, value_bits = 22;
    /// Symbols are below; most_symbols itself is in no pair.
    static constexpr std::size_t most_symbols = (std::size_t{1} << symbol_bits) - 1;
    static constexpr std::size_t most_values = (std::size_t{1} << value_bits) - 1;

    PairTable() : PairTable(0) {}
    /// Room for so many pairs.
    explicit PairTable(std::size_t pairs) : lines_(std::bit_ceil(pairs / 4 + 2)) {
        slots_.reset(static_cast<std::uint64_t*>(std::aligned_alloc(64, lines_ * 64)));
        if (!slots_) throw std::bad_alloc();
        for (std::size_t i = 0; i < lines_ * 8; ++i) slots_[i] = free_slot;
        shift_ = 64 - std::countr_zero(lines_);
    }

    /// Replaces the value of a pair that is there.
    void insert(std::uint32_t left, std::uint32_t right, std::uint32_t value) {
        const std::uint64_t pair = pair_of(left, right);
        std::size_t at = line_of(pair) * 8;
        while (slots_[at] != free_slot && slots_[at] >> value_bits != pair) at = (at + 1) & (lines_ * 8 - 1);
        slots_[at] = pair << value_bits | value;
    }
    std::uint32_t find(std::uint32_t left, std::uint32_t right) const {
        const std::uint64_t pair = pair_of(left, right);
        for (std::size_t line = line_of(pair);; line = (line + 1) & (lines_ - 1)) {
            const std::uint64_t* slots = &slots_[line * 8];
            const std::uint64_t slot = find_in_line(slots, pair);
            // Lines fill from the front; a free last slot means that the pair is nowhere else.
            if (slots[7] == free_slot || slot != free_slot)
                return slot == free_slot ? none : static_cast<std::uint32_t>(slot & most_values);
        }
    }

  private:
    struct Free {
        void operator()(std::uint64_t* slots) const { std::free(slots); }
    };
    static constexpr std::uint64_t free_slot = ~std::uint64_t{0};
    static std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) {
        return static_cast<std::uint64_t>(left) << symbol_bits | right;
    }
    std::size_t line_of(std::uint64_t pair) const {
        return static_cast<std::size_t>(pair * 0x9E3779B97F4A7C15 >> shift_);
    }
    /// The slot that holds the pair, or free_slot.
    static std::uint64_t find_in_line(const std::uint64_t* slots, std::uint64_t pair) {
#if defined(__AVX512F__)
        const __m512i line = _mm512_load_si512(slots);
        const __mmask8 found = _mm512_cmpeq_epi64_mask(_mm512_maskz_srli_epi64(0xFF, line, value_bits),
                                                       _mm512_set1_epi64(static_cast<long long>(pair)));
        return found ? slots[std::countr_zero(static_cast<unsigned>(found))] : free_slot;
#else
        std::uint64_t slot = free_slot;
        for (int i = 0; i < 8; ++i) slot = slots[i] >> value_bits == pair ? slots[i] : slot;
        return slot;
#endif
    }

    std::size_t lines_;
    std::unique_ptr<std::uint64_t[], Free> slots_;
    int shift_ = 0;
};

}  // namespace tera
