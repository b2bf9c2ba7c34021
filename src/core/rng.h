// Random numbers as a function: philox(seed, what, index). No state, so nothing depends on the layout, the order of
// evaluation or the number of threads, and there is nothing to save in a checkpoint.
//
//   weights   normal(seed, hash of the parameter's global name, index in the global tensor)
//   dropout   keep(seed, layer and place, global sample number, element within the sample)
//
// The normal is made of fma, multiply, add and sqrt only, each of which IEEE fixes to the last bit, so a CPU and a GPU
// produce the same weights.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>

#if defined(__CUDACC__)
#define TERA_HOST_DEVICE __host__ __device__
#else
#define TERA_HOST_DEVICE
#endif

namespace tera {

struct U32x4 {
    std::uint32_t v[4];
};

/// Philox4x32 with ten rounds (Salmon et al., SC'11).
TERA_HOST_DEVICE inline U32x4 philox(std::uint32_t key0, std::uint32_t key1, U32x4 counter) {
    std::uint32_t a = counter.v[0], b = counter.v[1], c = counter.v[2], d = counter.v[3];
    for (int round = 0; round < 10; ++round) {
        std::uint64_t p0 = std::uint64_t{0xD2511F53u} * a, p1 = std::uint64_t{0xCD9E8D57u} * c;
        std::uint32_t na = static_cast<std::uint32_t>(p1 >> 32) ^ b ^ key0;
        std::uint32_t nc = static_cast<std::uint32_t>(p0 >> 32) ^ d ^ key1;
        b = static_cast<std::uint32_t>(p1);
        d = static_cast<std::uint32_t>(p0);
        a = na;
        c = nc;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return {{a, b, c, d}};
}

namespace rng_detail {

TERA_HOST_DEVICE inline float bits_to_float(std::uint32_t u) {
#if defined(__CUDA_ARCH__)
    return __uint_as_float(u);
#else
    return std::bit_cast<float>(u);
#endif
}
TERA_HOST_DEVICE inline std::uint32_t float_to_bits(float x) {
#if defined(__CUDA_ARCH__)
    return __float_as_uint(x);
#else
    return std::bit_cast<std::uint32_t>(x);
#endif
}

/// ln x for 2^-33 <= x <= 1: x = m 2^e with m in [sqrt(1/2), sqrt(2)), ln m = 2 atanh((m-1)/(m+1)).
TERA_HOST_DEVICE inline float log_unit(float x) {
    std::uint32_t u = float_to_bits(x);
    int e = static_cast<int>(u >> 23) - 127;
    float m = bits_to_float((u & 0x007fffffu) | 0x3f800000u);
    if (m > 1.41421356f) {
        m = m * 0.5f;
        e = e + 1;
    }
    float t = (m - 1.0f) / (m + 1.0f), t2 = t * t;
    float p = fmaf(t2, fmaf(t2, fmaf(t2, 0.22222222f, 0.28571429f), 0.4f), 0.66666667f);
    float ln_m = fmaf(t2 * t, p, 2.0f * t);
    return fmaf(static_cast<float>(e), 0.69314718f, ln_m);
}

/// sin and cos of 2 pi v for v in [0, 1]: quadrant, then polynomials in half a quadrant either side of zero.
TERA_HOST_DEVICE inline void sincos_turn(float v, float& s, float& c) {
    float q = v * 4.0f;
    int quadrant = static_cast<int>(q + 0.5f);
    float x = (q - static_cast<float>(quadrant)) * 1.57079633f, x2 = x * x;
    float sp = fmaf(x2, fmaf(x2, fmaf(x2, -1.9515296e-4f, 8.3321609e-3f), -1.6666655e-1f), 0.0f);
    float sx = fmaf(sp, x, x);
    float cp = fmaf(x2, fmaf(x2, fmaf(x2, 2.4433157e-5f, -1.3887316e-3f), 4.1666646e-2f), -0.5f);
    float cx = fmaf(cp, x2, 1.0f);
    switch (quadrant & 3) {
        case 0:
            s = sx, c = cx;
            break;
        case 1:
            s = cx, c = -sx;
            break;
        case 2:
            s = -sx, c = -cx;
            break;
        default:
            s = -cx, c = sx;
            break;
    }
}

}  // namespace rng_detail

struct F32x4 {
    float v[4];
};

/// Four standard normals from four random words (Box-Muller).
TERA_HOST_DEVICE inline F32x4 normals(U32x4 r) {
    F32x4 out;
    for (int i = 0; i < 4; i += 2) {
        float u = fmaf(static_cast<float>(r.v[i]), 0x1p-32f, 0x1p-33f);
        float v = static_cast<float>(r.v[i + 1]) * 0x1p-32f;
        float radius = sqrtf(-2.0f * rng_detail::log_unit(u));
        float s, c;
        rng_detail::sincos_turn(v, s, c);
        out.v[i] = radius * c;
        out.v[i + 1] = radius * s;
    }
    return out;
}

/// FNV-1a; names a parameter's stream of random numbers.
inline std::uint64_t hash_name(std::string_view name) {
    std::uint64_t h = 0xcbf29ce484222325u;
    for (char ch : name) h = (h ^ static_cast<unsigned char>(ch)) * 0x100000001b3u;
    return h;
}

/// Random words for elements 4*group .. 4*group+3 of the tensor with this name hash.
TERA_HOST_DEVICE inline U32x4 weight_words(std::uint64_t seed, std::uint64_t name_hash, std::uint64_t group) {
    return philox(static_cast<std::uint32_t>(seed), 0xffffffffu,
                  {{static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(group >> 32),
                    static_cast<std::uint32_t>(name_hash), static_cast<std::uint32_t>(name_hash >> 32)}});
}

/// Which dropout this is: `place` within layer number `layer`.
struct DropoutSite {
    std::uint64_t seed = 0;
    std::uint32_t layer = 0, place = 0;
};

/// Random words for elements 4*group .. 4*group+3 of one sample at one site.
TERA_HOST_DEVICE inline U32x4 dropout_words(const DropoutSite& site, std::int64_t sample, std::uint64_t group) {
    return philox(static_cast<std::uint32_t>(site.seed), site.layer * 16u + site.place,
                  {{static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(group >> 32),
                    static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(sample >> 32)}});
}

/// An element is dropped if its word is below this.
TERA_HOST_DEVICE inline std::uint32_t dropout_threshold(double p) {
    double t = p * 4294967296.0;
    return t >= 4294967295.0 ? 0xffffffffu : static_cast<std::uint32_t>(t);
}

}  // namespace tera
