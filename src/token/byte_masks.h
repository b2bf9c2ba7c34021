// Comparisons of 64 bytes at a time, as bit masks: bit i speaks of byte i. With AVX-512 or AVX2; has_byte_masks tells
// whether the build has either, for without them going byte by byte is quicker.
#pragma once

#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace tera {

#if defined(__AVX512BW__)

inline constexpr bool has_byte_masks = true;
class Bytes64 {
  public:
    explicit Bytes64(const char* p) : bytes_(_mm512_loadu_si512(p)) {}
    std::uint64_t equal(int c) const { return _mm512_cmpeq_epi8_mask(bytes_, _mm512_set1_epi8(static_cast<char>(c))); }
    /// Bytes as unsigned numbers.
    std::uint64_t at_least(int c) const {
        return _mm512_cmpge_epu8_mask(bytes_, _mm512_set1_epi8(static_cast<char>(c)));
    }

  private:
    __m512i bytes_;
};

#elif defined(__AVX2__)

inline constexpr bool has_byte_masks = true;
class Bytes64 {
  public:
    explicit Bytes64(const char* p)
        : low_(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))),
          high_(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))) {}
    std::uint64_t equal(int c) const {
        const __m256i wanted = _mm256_set1_epi8(static_cast<char>(c));
        return mask(_mm256_cmpeq_epi8(low_, wanted), _mm256_cmpeq_epi8(high_, wanted));
    }
    /// Bytes as unsigned numbers.
    std::uint64_t at_least(int c) const {
        const __m256i least = _mm256_set1_epi8(static_cast<char>(c));
        return mask(_mm256_cmpeq_epi8(_mm256_max_epu8(low_, least), low_),
                    _mm256_cmpeq_epi8(_mm256_max_epu8(high_, least), high_));
    }

  private:
    static std::uint64_t mask(__m256i low, __m256i high) {
        return static_cast<std::uint32_t>(_mm256_movemask_epi8(low)) |
               static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm256_movemask_epi8(high))) << 32;
    }
    __m256i low_, high_;
};

#else

inline constexpr bool has_byte_masks = false;
/// Only so that code behind has_byte_masks compiles.
class Bytes64 {
  public:
    explicit Bytes64(const char* p) : p_(p) {}
    std::uint64_t equal(int c) const {
        return made_of([c](int byte) { return byte == c; });
    }
    std::uint64_t at_least(int c) const {
        return made_of([c](int byte) { return byte >= c; });
    }

  private:
    template <class Test>
    std::uint64_t made_of(const Test& test) const {
        std::uint64_t mask = 0;
        for (unsigned i = 0; i < 64; ++i)
            mask |= static_cast<std::uint64_t>(test(static_cast<unsigned char>(p_[i]))) << i;
        return mask;
    }
    const char* p_;
};

#endif

}  // namespace tera
