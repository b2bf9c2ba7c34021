// Element types. bf16 and f16 are storage only: every computation converts to float (CPU) or to the hardware's own
// arithmetic (CUDA).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/error.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace tera {

enum class DType : std::uint8_t { f64, f32, bf16, f16, i64, i32, u16, u8 };

inline std::size_t size_of(DType t) {
    switch (t) {
        case DType::f64:
        case DType::i64:
            return 8;
        case DType::f32:
        case DType::i32:
            return 4;
        case DType::bf16:
        case DType::f16:
        case DType::u16:
            return 2;
        case DType::u8:
            return 1;
    }
    return 0;
}

inline const char* name_of(DType t) {
    constexpr const char* names[] = {"f64", "f32", "bf16", "f16", "i64", "i32", "u16", "u8"};
    return names[static_cast<int>(t)];
}

/// Upper half of a float; conversion rounds to nearest even and keeps NaN a NaN.
struct bf16_t {
    std::uint16_t bits = 0;
    bf16_t() = default;
    explicit bf16_t(float x) {
        auto u = std::bit_cast<std::uint32_t>(x);
        auto rounded = static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
        bits = (u & 0x7fffffffu) > 0x7f800000u ? static_cast<std::uint16_t>((u >> 16) | 0x40u) : rounded;
    }
    explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

/// IEEE half precision; conversion rounds to nearest even, overflows to infinity.
struct f16_t {
    std::uint16_t bits = 0;
    f16_t() = default;
    explicit f16_t(float x);
    explicit operator float() const;
};

#if defined(__F16C__)
inline f16_t::f16_t(float x) : bits(static_cast<std::uint16_t>(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT))) {}
inline f16_t::operator float() const { return _cvtsh_ss(bits); }
#else
inline f16_t::f16_t(float x) {
    auto u = std::bit_cast<std::uint32_t>(x);
    std::uint32_t sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        bits = static_cast<std::uint16_t>(sign | 0x7e00u);
    } else if (magnitude >= 0x477ff000u) {  // rounds to 65536 or more
        bits = static_cast<std::uint16_t>(sign | 0x7c00u);
    } else if (magnitude < 0x38800000u) {  // subnormal half: let the float adder do the rounding
        float shifted = std::bit_cast<float>(magnitude) + 0.5f;
        bits = static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
    } else {
        std::uint32_t odd = (magnitude >> 13) & 1u;
        bits = static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
    }
}
inline f16_t::operator float() const {
    std::uint32_t sign = (bits & 0x8000u) << 16, rest = bits & 0x7fffu;
    if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
    if (rest >= 0x400u) return std::bit_cast<float>(sign | ((rest << 13) + 0x38000000u));
    float small = static_cast<float>(rest) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(small));
}
#endif

template <class T>
struct dtype_of_t;
template <>
struct dtype_of_t<double> {
    static constexpr DType value = DType::f64;
};
template <>
struct dtype_of_t<float> {
    static constexpr DType value = DType::f32;
};
template <>
struct dtype_of_t<bf16_t> {
    static constexpr DType value = DType::bf16;
};
template <>
struct dtype_of_t<f16_t> {
    static constexpr DType value = DType::f16;
};
template <>
struct dtype_of_t<std::int64_t> {
    static constexpr DType value = DType::i64;
};
template <>
struct dtype_of_t<std::int32_t> {
    static constexpr DType value = DType::i32;
};
template <>
struct dtype_of_t<std::uint16_t> {
    static constexpr DType value = DType::u16;
};
template <>
struct dtype_of_t<std::uint8_t> {
    static constexpr DType value = DType::u8;
};
template <class T>
inline constexpr DType dtype_of = dtype_of_t<T>::value;

/// The type in which values stored as T are computed and summed.
template <class T>
struct acc_of {
    using type = float;
};
template <>
struct acc_of<double> {
    using type = double;
};
template <class T>
using acc_t = typename acc_of<T>::type;

inline DType acc_dtype(DType t) { return t == DType::f64 ? DType::f64 : DType::f32; }

/// Calls f with a value of the C++ type behind a floating-point dtype: dispatch_float(t, [&](auto zero) {...}).
template <class F>
decltype(auto) dispatch_float(DType t, F&& f) {
    switch (t) {
        case DType::f64:
            return f(double{});
        case DType::f32:
            return f(float{});
        case DType::bf16:
            return f(bf16_t{});
        case DType::f16:
            return f(f16_t{});
        default:
            break;
    }
    throw Error(cat("expected a floating-point dtype, got ", name_of(t)));
}

}  // namespace tera
