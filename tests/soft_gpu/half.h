// Sixteen-bit reals, by their bits; rounded to the nearest, a tie to the even one.
#pragma once

#ifdef __F16C__
#include <immintrin.h>
#endif

#include <bit>
#include <cmath>
#include <cstdint>

namespace soft_gpu {

inline float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

/// Of five bits of exponent and ten of fraction.
inline float from_f16(std::uint16_t bits) {
#ifdef __F16C__
    return _cvtsh_ss(bits);
#else
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float x = exponent == 31  ? (fraction ? NAN : INFINITY)
              : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                              : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
    return bits >> 15 ? -x : x;
#endif
}

inline std::uint16_t bf16_of(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const auto rounded = static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    return std::isnan(x) ? std::uint16_t{0x7fff} : rounded;
}
/// By way of a float that is odd wherever something was cut off, so that nothing is rounded twice.
inline std::uint16_t bf16_of(double x) {
    float f = static_cast<float>(x);
    if (std::isfinite(f) && static_cast<double>(f) != x) {
        if (std::fabs(static_cast<double>(f)) > std::fabs(x)) f = std::nextafterf(f, 0.0f);
        f = std::bit_cast<float>(std::bit_cast<std::uint32_t>(f) | 1);
    }
    return bf16_of(f);
}

inline std::uint16_t f16_of(double x) {
    if (std::isnan(x)) return 0x7fff;
    const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    const double size = std::fabs(x);
    if (size >= 65520) return static_cast<std::uint16_t>(sign | 0x7c00);
    // In units of the last place, which a number below 2^-14 shares with those up to it.
    const int exponent = size < 0x1p-14 ? -14 : std::ilogb(size);
    const auto units = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));
    return static_cast<std::uint16_t>(sign | (units + (size < 0x1p-14 ? 0 : (exponent + 14) * 1024)));
}
inline std::uint16_t f16_of(float x) {
#ifdef __F16C__
    return std::isnan(x) ? std::uint16_t{0x7fff} : static_cast<std::uint16_t>(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT));
#else
    return f16_of(static_cast<double>(x));
#endif
}

}  // namespace soft_gpu
