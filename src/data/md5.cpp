#include "data/md5.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace tera {
namespace {

constexpr std::size_t block_size = 64;
using State = std::array<std::uint32_t, 4>;

/// floor(2^32 · |sin(i + 1)|), the constants of the standard.
const std::array<std::uint32_t, 64>& sines() {
    static const auto table = [] {
        std::array<std::uint32_t, 64> t{};
        for (std::size_t i = 0; i < t.size(); ++i)
            t[i] = static_cast<std::uint32_t>(std::floor(std::abs(std::sin(static_cast<double>(i + 1))) * 0x1p32));
        return t;
    }();
    return table;
}

void add_block(State& state, const char* bytes) {
    constexpr int rotations[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    std::array<std::uint32_t, 16> words;
    std::memcpy(words.data(), bytes, block_size);
    auto [a, b, c, d] = state;
    for (std::uint32_t i = 0; i < 64; ++i) {
        std::uint32_t mix = 0, word = 0;
        switch (i / 16) {
            case 0:
                mix = (b & c) | (~b & d), word = i;
                break;
            case 1:
                mix = (d & b) | (~d & c), word = (5 * i + 1) % 16;
                break;
            case 2:
                mix = b ^ c ^ d, word = (3 * i + 5) % 16;
                break;
            default:
                mix = c ^ (b | ~d), word = (7 * i) % 16;
                break;
        }
        const std::uint32_t sum = a + mix + sines()[i] + words[word];
        a = d;
        d = c;
        c = b;
        b += std::rotl(sum, rotations[i / 16][i % 4]);
    }
    state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
}

}  // namespace

std::string md5_hex(std::string_view text) {
    State state{0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u};
    std::size_t at = 0;
    for (; text.size() - at >= block_size; at += block_size) add_block(state, text.data() + at);
    std::string tail(text.substr(at));
    tail += '\x80';
    tail.resize((tail.size() + 8 + block_size - 1) / block_size * block_size - 8);
    const std::uint64_t bits = std::uint64_t{text.size()} * 8;
    tail.append(reinterpret_cast<const char*>(&bits), 8);
    for (std::size_t i = 0; i < tail.size(); i += block_size) add_block(state, tail.data() + i);

    constexpr const char* digits = "0123456789abcdef";
    std::string hex;
    for (const std::uint32_t word : state)
        for (int shift = 0; shift < 32; shift += 8) {
            hex += digits[word >> (shift + 4) & 15];
            hex += digits[word >> shift & 15];
        }
    return hex;
}

}  // namespace tera
