#include "data/python_random.h"

#include <algorithm>
#include <array>
#include <bit>

namespace tera {
namespace {

constexpr std::size_t words = 624;

/// Hands std::mt19937 the state that init_by_array({seed}) of the MT19937 authors makes.
struct ArraySeed {
    using result_type = std::uint32_t;
    std::uint32_t seed;

    template <class Iterator>
    void generate(Iterator begin, Iterator end) {
        std::array<std::uint32_t, words> state;
        const auto mixed = [&state](std::size_t i) { return state[i - 1] ^ (state[i - 1] >> 30); };
        state[0] = 19650218u;
        for (std::size_t i = 1; i < words; ++i) state[i] = 1812433253u * mixed(i) + static_cast<std::uint32_t>(i);
        std::size_t i = 1;
        const auto step = [&] {
            if (++i < words) return;
            state[0] = state[words - 1];
            i = 1;
        };
        for (std::size_t n = 0; n < words; ++n, step()) state[i] = (state[i] ^ (mixed(i) * 1664525u)) + seed;
        for (std::size_t n = 1; n < words; ++n, step())
            state[i] = (state[i] ^ (mixed(i) * 1566083941u)) - static_cast<std::uint32_t>(i);
        state[0] = 0x80000000u;
        std::copy_n(state.begin(), std::min<std::size_t>(words, static_cast<std::size_t>(end - begin)), begin);
    }
};

std::mt19937 seeded(std::uint32_t seed) {
    ArraySeed sequence{seed};
    return std::mt19937(sequence);
}

}  // namespace

PythonRandom::PythonRandom(std::uint32_t seed) : engine_(seeded(seed)) {}

std::uint32_t PythonRandom::below(std::uint32_t n) {
    const int bits = std::bit_width(n);
    std::uint32_t drawn;
    do drawn = static_cast<std::uint32_t>(engine_()) >> (32 - bits);
    while (drawn >= n);
    return drawn;
}

}  // namespace tera
