// UTF-8, strictly: no overlong forms, no surrogates, nothing beyond U+10FFFF.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tera {

struct CodePoint {
    static constexpr std::uint32_t invalid = 0xFFFFFFFF;
    std::uint32_t value;  // `invalid` where the byte begins no valid sequence
    std::uint32_t bytes;  // 1 for an invalid byte
};

/// The code point at p; p < end.
inline CodePoint decode_utf8(const char* p, const char* end) {
    const auto byte = [p](int i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(p[i])); };
    const auto continues = [&](int i) { return p + i < end && (byte(i) & 0xC0) == 0x80; };
    const std::uint32_t first = byte(0);
    if (first < 0x80) return {first, 1};
    if (first < 0xC2 || first > 0xF4) return {CodePoint::invalid, 1};
    if (!continues(1)) return {CodePoint::invalid, 1};
    if (first < 0xE0) return {(first & 0x1F) << 6 | (byte(1) & 0x3F), 2};
    if (!continues(2)) return {CodePoint::invalid, 1};
    if (first < 0xF0) {
        const std::uint32_t value = (first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
        if (value < 0x800 || (value >= 0xD800 && value < 0xE000)) return {CodePoint::invalid, 1};
        return {value, 3};
    }
    if (!continues(3)) return {CodePoint::invalid, 1};
    const std::uint32_t value =
        (first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
    if (value < 0x10000 || value > 0x10FFFF) return {CodePoint::invalid, 1};
    return {value, 4};
}

/// Appends the UTF-8 form of `value`, also of a lone surrogate (three bytes, which strict readers refuse).
void append_utf8(std::string& out, std::uint32_t value);

/// Offset of the first byte that is not valid UTF-8, or npos.
std::size_t find_invalid_utf8(std::string_view text);

/// Number of code points, assuming valid UTF-8.
std::size_t count_utf8(std::string_view text);

/// The text with U+FFFD in place of each longest piece that could have begun a character, as Python's
/// errors="replace" and Rust's from_utf8_lossy do.
std::string replace_invalid_utf8(std::string_view text);

}  // namespace tera
