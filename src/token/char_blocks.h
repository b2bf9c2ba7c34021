// The classes of 64 bytes of text at a time, as bit masks: bit i speaks of byte i. All bytes of a character carry the
// class of the character, so that a run of one class is a run of ones.
//
// ASCII is classified by vector instructions where the build has them (AVX-512 or AVX2; else a table), other characters
// one by one. What is rare and hard ends the block before it (`limit`): spaces beyond ASCII and invalid UTF-8.
#pragma once

#include <cstdint>
#include <cstring>

#include "token/unicode.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace tera {

struct CharBlock {
    static constexpr unsigned size = 64;
    std::uint64_t upper = 0, lower = 0, caseless = 0, mark = 0, number = 0;
    std::uint64_t space = 0;  // ASCII only
    std::uint64_t line_end = 0, blank = 0, apostrophe = 0;
    std::uint64_t multi = 0;  // bytes of characters beyond ASCII
    std::uint64_t lead = 0;   // first bytes of characters
    unsigned limit = 0;       // so many bytes are classified; no bit is set from there on

    std::uint64_t letter() const { return upper | lower | caseless; }
    std::uint64_t known() const { return limit == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << limit) - 1; }
    std::uint64_t other() const { return known() & ~(letter() | mark | number | space); }
    /// Forgets what is at `new_limit` and behind.
    void cut(unsigned new_limit);
};

namespace char_blocks {

/// What ASCII characters are, one bit each; 0 is none of these.
enum AsciiBits : std::uint8_t { is_upper = 1, is_lower = 2, is_number = 4, is_space = 8, is_line = 16, is_quote = 32 };

constexpr std::uint8_t ascii_bits(int c) {
    if (c >= 'A' && c <= 'Z') return is_upper;
    if (c >= 'a' && c <= 'z') return is_lower;
    if (c >= '0' && c <= '9') return is_number;
    if (c == '\n' || c == '\r') return is_space | is_line;
    if (c == ' ' || (c >= 9 && c <= 13)) return is_space;
    return c == '\'' ? is_quote : 0;
}

/// Bytes >= 0x80 by what they begin.
struct Utf8Masks {
    std::uint64_t continuation, three, four;  // three: leads of 3 bytes and more; four: of 4
};

#if defined(__AVX512BW__) && defined(__AVX512VBMI__)

struct Table {
    alignas(64) std::uint8_t bits[128];
    constexpr Table() : bits() {
        for (int c = 0; c < 128; ++c) bits[c] = ascii_bits(c);
    }
};
inline constexpr Table table;

inline void classify_ascii(const char* p, CharBlock& block) {
    const __m512i text = _mm512_loadu_si512(p);
    const __m512i bits =
        _mm512_permutex2var_epi8(_mm512_load_si512(table.bits), text, _mm512_load_si512(table.bits + 64));
    block.multi = _mm512_movepi8_mask(text);
    const auto has = [&](AsciiBits bit) {
        return _mm512_mask_test_epi8_mask(~block.multi, bits, _mm512_set1_epi8(static_cast<char>(bit)));
    };
    block.upper = has(is_upper);
    block.lower = has(is_lower);
    block.number = has(is_number);
    block.space = has(is_space);
    block.line_end = has(is_line);
    block.apostrophe = has(is_quote);
    block.blank = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8(' '));
}

inline Utf8Masks utf8_masks(const char* p) {
    const __m512i text = _mm512_loadu_si512(p);
    return {_mm512_cmplt_epi8_mask(text, _mm512_set1_epi8(static_cast<char>(0xC0))),
            _mm512_cmpge_epu8_mask(text, _mm512_set1_epi8(static_cast<char>(0xE0))),
            _mm512_cmpge_epu8_mask(text, _mm512_set1_epi8(static_cast<char>(0xF0)))};
}

#elif defined(__AVX2__)

/// A mask of 64 bytes from a test of 32.
template <class Test>
inline std::uint64_t mask_of(__m256i low, __m256i high, const Test& test) {
    const auto bits = [](__m256i v) {
        return static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm256_movemask_epi8(v)));
    };
    return bits(test(low)) | bits(test(high)) << 32;
}
inline __m256i load32(const char* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
/// first <= byte <= last, as signed numbers.
inline __m256i within(__m256i v, char first, char last) {
    return _mm256_and_si256(_mm256_cmpgt_epi8(v, _mm256_set1_epi8(static_cast<char>(first - 1))),
                            _mm256_cmpgt_epi8(_mm256_set1_epi8(static_cast<char>(last + 1)), v));
}
inline __m256i equal(__m256i v, char c) { return _mm256_cmpeq_epi8(v, _mm256_set1_epi8(c)); }

inline void classify_ascii(const char* p, CharBlock& block) {
    const __m256i low = load32(p), high = load32(p + 32);
    block.multi = mask_of(low, high, [](__m256i v) { return v; });
    block.upper = mask_of(low, high, [](__m256i v) { return within(v, 'A', 'Z'); });
    block.lower = mask_of(low, high, [](__m256i v) { return within(v, 'a', 'z'); });
    block.number = mask_of(low, high, [](__m256i v) { return within(v, '0', '9'); });
    block.blank = mask_of(low, high, [](__m256i v) { return equal(v, ' '); });
    block.space = block.blank | mask_of(low, high, [](__m256i v) { return within(v, 9, 13); });
    block.line_end = mask_of(low, high, [](__m256i v) { return _mm256_or_si256(equal(v, '\n'), equal(v, '\r')); });
    block.apostrophe = mask_of(low, high, [](__m256i v) { return equal(v, '\''); });
}

inline Utf8Masks utf8_masks(const char* p) {
    const __m256i low = load32(p), high = load32(p + 32);
    const auto from = [&](int first) {
        return mask_of(low, high, [first](__m256i v) { return within(v, static_cast<char>(first), -1); });
    };
    return {mask_of(low, high, [](__m256i v) { return _mm256_cmpgt_epi8(_mm256_set1_epi8(-64), v); }), from(0xE0),
            from(0xF0)};
}

#else

inline void classify_ascii(const char* p, CharBlock& block) {
    for (unsigned i = 0; i < CharBlock::size; ++i) {
        const auto byte = static_cast<unsigned char>(p[i]);
        const std::uint64_t bits = byte < 0x80 ? ascii_bits(byte) : 0;
        block.multi |= static_cast<std::uint64_t>(byte >> 7) << i;
        block.upper |= (bits & 1) << i;
        block.lower |= (bits >> 1 & 1) << i;
        block.number |= (bits >> 2 & 1) << i;
        block.space |= (bits >> 3 & 1) << i;
        block.line_end |= (bits >> 4 & 1) << i;
        block.apostrophe |= (bits >> 5 & 1) << i;
        block.blank |= std::uint64_t{byte == ' '} << i;
    }
}

inline Utf8Masks utf8_masks(const char* p) {
    Utf8Masks masks{};
    for (unsigned i = 0; i < CharBlock::size; ++i) {
        const auto byte = static_cast<unsigned char>(p[i]);
        masks.continuation |= std::uint64_t{(byte & 0xC0) == 0x80} << i;
        masks.three |= std::uint64_t{byte >= 0xE0} << i;
        masks.four |= std::uint64_t{byte >= 0xF0} << i;
    }
    return masks;
}

#endif

}  // namespace char_blocks

/// Classifies the characters at p, of which `size` bytes (1 to 64) are text; 64 bytes can be read.
void classify_block(const char* p, unsigned size, CharBlock& block);

}  // namespace tera
