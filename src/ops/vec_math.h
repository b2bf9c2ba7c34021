// exp, sigmoid, erf in forms the compiler turns into vector code. float: polynomials good to about 1 ulp (erfc 1.2e-7
// relative); double: the C library, for the reference runs.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tera::ops {

/// e^x. Flushes to 0 below -87.3; saturates near 3.4e38 above 88.7.
inline float fast_exp(float x) {
    x = x < -87.33654f ? -87.33654f : x;
    x = x > 88.72283f ? 88.72283f : x;
    constexpr float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer in the low bits
    float shifted = x * 1.44269504f + magic;
    float n = shifted - magic;
    float r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    auto half = std::bit_cast<std::int32_t>(shifted) - 0x4b400000;
    // Two steps, so that n = 128 does not run out of the exponent's range.
    auto first = half / 2, second = half - first;
    return p * std::bit_cast<float>((first + 127) << 23) * std::bit_cast<float>((second + 127) << 23);
}
inline double fast_exp(double x) { return std::exp(x); }

template <class A>
A sigmoid(A x) {
    return A(1) / (A(1) + fast_exp(-x));
}

/// erfc by a rational Chebyshev fit (relative error below 1.2e-7 everywhere); double: the C library.
inline float fast_erfc(float x) {
    float z = std::fabs(x), t = 1.0f / (1.0f + 0.5f * z);
    float p = 0.17087277f;
    p = p * t - 0.82215223f;
    p = p * t + 1.48851587f;
    p = p * t - 1.13520398f;
    p = p * t + 0.27886807f;
    p = p * t - 0.18628806f;
    p = p * t + 0.09678418f;
    p = p * t + 0.37409196f;
    p = p * t + 1.00002368f;
    p = p * t - 1.26551223f;
    float tail = t * fast_exp(p - z * z);
    return x >= 0 ? tail : 2.0f - tail;
}
inline double fast_erfc(double x) { return std::erfc(x); }

}  // namespace tera::ops
