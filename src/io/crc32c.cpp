#include "io/crc32c.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#endif

namespace tera {
namespace {

constexpr std::uint32_t polynomial = 0x82F63B78u;  // bit-reversed: bit 31 is x^0

#if !defined(__SSE4_2__)
// table[k][b]: the checksum of byte b followed by k zero bytes.
constexpr auto make_tables() {
    std::array<std::array<std::uint32_t, 256>, 8> table{};
    for (std::uint32_t b = 0; b < 256; ++b) {
        std::uint32_t c = b;
        for (int i = 0; i < 8; ++i) c = (c >> 1) ^ ((c & 1u) ? polynomial : 0u);
        table[0][b] = c;
    }
    for (std::size_t k = 1; k < 8; ++k) {
        for (std::size_t b = 0; b < 256; ++b) table[k][b] = (table[k - 1][b] >> 8) ^ table[0][table[k - 1][b] & 0xffu];
    }
    return table;
}
constexpr auto tables = make_tables();

std::uint32_t step8(std::uint32_t crc, std::uint64_t word) {
    word ^= crc;  // little-endian, as everything in our files
    std::uint32_t out = 0;
    for (std::size_t i = 0; i < 8; ++i) out ^= tables[7 - i][(word >> (8 * i)) & 0xffu];
    return out;
}
std::uint32_t step1(std::uint32_t crc, std::uint8_t byte) { return (crc >> 8) ^ tables[0][(crc ^ byte) & 0xffu]; }
#else
std::uint32_t step8(std::uint32_t crc, std::uint64_t word) {
    return static_cast<std::uint32_t>(_mm_crc32_u64(crc, word));
}
std::uint32_t step1(std::uint32_t crc, std::uint8_t byte) { return _mm_crc32_u8(crc, byte); }
#endif

/// a * b modulo the polynomial.
std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
    std::uint32_t product = 0;
    for (std::uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
        if (a & bit) product ^= b;
        b = (b >> 1) ^ ((b & 1u) ? polynomial : 0u);
    }
    return product;
}

/// x^(8 n): what n zero bytes multiply a checksum by.
std::uint32_t power_of_bytes(std::uint64_t n) {
    std::uint32_t result = 1u << 31, square = 1u << 23;  // 1 and x^8
    for (; n != 0; n >>= 1) {
        if (n & 1u) result = multiply(square, result);
        square = multiply(square, square);
    }
    return result;
}

}  // namespace

std::uint32_t crc32c(std::uint32_t before, std::span<const std::byte> data) {
    std::uint32_t crc = ~before;
    const std::byte* p = data.data();
    std::size_t left = data.size();
    for (; left >= 8; left -= 8, p += 8) {
        std::uint64_t word;
        std::memcpy(&word, p, 8);
        crc = step8(crc, word);
    }
    for (; left > 0; --left, ++p) crc = step1(crc, static_cast<std::uint8_t>(*p));
    return ~crc;
}

std::uint32_t crc32c_combine(std::uint32_t a, std::uint32_t b, std::uint64_t length_of_b) {
    return multiply(power_of_bytes(length_of_b), a) ^ b;
}

std::string crc32c_text(std::uint32_t value) {
    char text[16];
    std::snprintf(text, sizeof text, "%08x", value);
    return text;
}

void RangeChecksum::add(std::uint64_t offset, std::span<const std::byte> data) {
    if (!ranges_.empty() && ranges_.back().offset + ranges_.back().length == offset) {
        ranges_.back().crc = crc32c(ranges_.back().crc, data);
        ranges_.back().length += data.size();
    } else {
        add(offset, data.size(), crc32c(0, data));
    }
}

void RangeChecksum::add(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) {
    if (length > 0) ranges_.push_back({offset, length, crc});
}

std::vector<RangeChecksum::Range> RangeChecksum::in_order() const {
    std::vector<Range> sorted = ranges_;
    std::sort(sorted.begin(), sorted.end(), [](const Range& a, const Range& b) { return a.offset < b.offset; });
    return sorted;
}

bool RangeChecksum::covers(std::uint64_t size) const {
    std::uint64_t end = 0;
    for (const Range& r : in_order()) {
        if (r.offset != end) return false;
        end += r.length;
    }
    return end == size;
}

std::uint32_t RangeChecksum::value() const {
    std::uint32_t crc = 0;
    for (const Range& r : in_order()) crc = crc32c_combine(crc, r.crc, r.length);
    return crc;
}

}  // namespace tera
