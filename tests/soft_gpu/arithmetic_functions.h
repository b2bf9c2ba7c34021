// What instructions of arithmetic do to a lane's operands.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace soft_gpu {

using Flag = std::uint8_t;  // a predicate: 0 or 1

template <class T>
using Unsigned = std::make_unsigned_t<T>;

/// The same bits however it overflows.
template <class T, class F>
T wrapped(T a, T b, F f) {
    if constexpr (std::is_floating_point_v<T>)
        return f(a, b);
    else
        return static_cast<T>(f(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
}
struct Add {
    template <class T>
    T operator()(T a, T b) const {
        return wrapped(a, b, [](auto x, auto y) { return x + y; });
    }
};
struct Sub {
    template <class T>
    T operator()(T a, T b) const {
        return wrapped(a, b, [](auto x, auto y) { return x - y; });
    }
};
struct Mul {
    template <class T>
    T operator()(T a, T b) const {
        return wrapped(a, b, [](auto x, auto y) { return x * y; });
    }
};
template <class T>
struct WiderOf {};
template <>
struct WiderOf<std::int16_t> {
    using type = std::int32_t;
};
template <>
struct WiderOf<std::uint16_t> {
    using type = std::uint32_t;
};
template <>
struct WiderOf<std::int32_t> {
    using type = std::int64_t;
};
template <>
struct WiderOf<std::uint32_t> {
    using type = std::uint64_t;
};
template <>
struct WiderOf<std::int64_t> {
    using type = __int128;
};
template <>
struct WiderOf<std::uint64_t> {
    using type = unsigned __int128;
};
template <class T>
using Wider = typename WiderOf<T>::type;

struct MulHigh {
    template <class T>
    T operator()(T a, T b) const {
        return static_cast<T>((Wider<T>{a} * Wider<T>{b}) >> (8 * sizeof(T)));
    }
};
struct MulWide {
    template <class T>
    Wider<T> operator()(T a, T b) const {
        return Wider<T>{a} * Wider<T>{b};
    }
};
struct MadLow {
    template <class T>
    T operator()(T a, T b, T c) const {
        return Add{}(Mul{}(a, b), c);
    }
};
struct MadWide {
    template <class T>
    Wider<T> operator()(T a, T b, Wider<T> c) const {
        return Add{}(MulWide{}(a, b), c);
    }
};
struct Fma {
    template <class T>
    T operator()(T a, T b, T c) const {
        return std::fma(a, b, c);
    }
};
struct Div {
    template <class T>
    T operator()(T a, T b) const {
        if constexpr (std::is_floating_point_v<T>)
            return a / b;
        else if (b == 0)
            return static_cast<T>(-1);  // as the GPU; no trap
        else if (std::is_signed_v<T> && b == static_cast<T>(-1))
            return Sub{}(T{0}, a);
        else
            return static_cast<T>(a / b);
    }
};
struct Rem {
    template <class T>
    T operator()(T a, T b) const {
        if (b == 0) return a;
        if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
        return static_cast<T>(a % b);
    }
};
/// Of reals: a number, if one of the two is; -0 is less than 0.
template <class T>
T least(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(a) || std::isnan(b))
            return !std::isnan(a) ? a : !std::isnan(b) ? b : std::numeric_limits<T>::quiet_NaN();
        if (a == b) return std::signbit(a) ? a : b;
    }
    return a < b ? a : b;
}
struct Min {
    template <class T>
    T operator()(T a, T b) const {
        return least(a, b);
    }
};
struct Max {
    template <class T>
    T operator()(T a, T b) const {
        if constexpr (std::is_floating_point_v<T>)
            return -least(-a, -b);
        else
            return a > b ? a : b;
    }
};
struct Abs {
    template <class T>
    T operator()(T a) const {
        if constexpr (std::is_floating_point_v<T>)
            return std::fabs(a);
        else
            return a < 0 ? Sub{}(T{0}, a) : a;
    }
};
struct Neg {
    template <class T>
    T operator()(T a) const {
        if constexpr (std::is_floating_point_v<T>)
            return -a;
        else
            return Sub{}(T{0}, a);
    }
};
struct CopySign {  // copysign.f32 d, a, b: b with the sign of a
    template <class T>
    T operator()(T a, T b) const {
        return std::copysign(b, a);
    }
};
struct And {
    template <class T>
    T operator()(T a, T b) const {
        return static_cast<T>(a & b);
    }
};
struct Or {
    template <class T>
    T operator()(T a, T b) const {
        return static_cast<T>(a | b);
    }
};
struct Xor {
    template <class T>
    T operator()(T a, T b) const {
        return static_cast<T>(a ^ b);
    }
};
struct Not {
    template <class T>
    T operator()(T a) const {
        return static_cast<T>(~a);
    }
};
struct NotFlag {
    Flag operator()(Flag a) const { return (a & 1) ^ 1; }
};
struct Shl {
    template <class T>
    T operator()(T a, std::uint32_t n) const {
        return n >= 8 * sizeof(T) ? T{0} : static_cast<T>(static_cast<std::uint64_t>(a) << n);
    }
};
struct Shr {
    template <class T>
    T operator()(T a, std::uint32_t n) const {
        constexpr std::uint32_t bits = 8 * sizeof(T);
        if (std::is_signed_v<T>) return static_cast<T>(a >> (n >= bits ? bits - 1 : n));
        return n >= bits ? T{0} : static_cast<T>(a >> n);
    }
};
struct Select {
    template <class T>
    T operator()(T a, T b, Flag p) const {
        return p & 1 ? a : b;
    }
};
struct PopCount {
    std::uint32_t operator()(std::uint32_t a) const { return static_cast<std::uint32_t>(std::popcount(a)); }
};
struct Reverse {
    std::uint32_t operator()(std::uint32_t a) const {
        std::uint32_t r = 0;
        for (int i = 0; i < 32; ++i) r |= (a >> i & 1) << (31 - i);
        return r;
    }
};
/// bfind.shiftamt: how far the highest bit that is set must be moved to be the highest.
struct FindShift {
    std::uint32_t operator()(std::uint32_t a) const {
        return a == 0 ? ~0u : static_cast<std::uint32_t>(std::countl_zero(a));
    }
};

/// prmt: of eight bytes, b's above a's, the four that c names; with its eighth a nibble gives a byte's sign.
struct Permute {
    std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
        const std::uint64_t both = std::uint64_t{b} << 32 | a;
        std::uint32_t out = 0;
        for (int i = 0; i < 4; ++i) {
            const std::uint32_t which = c >> (4 * i) & 15;
            auto byte = static_cast<std::uint32_t>(both >> (8 * (which & 7)) & 255);
            if (which & 8) byte = byte & 128 ? 255 : 0;
            out |= byte << (8 * i);
        }
        return out;
    }
};

inline float flushed(float x) { return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x; }

struct Exp2Approx {
    float operator()(float a) const { return flushed(std::exp2(flushed(a))); }
};
struct RcpApprox {
    float operator()(float a) const { return flushed(1.0f / flushed(a)); }
};
/// rcp.approx.ftz.f64 gives the upper half of a double: twenty bits of the fraction.
struct RcpRough {
    double operator()(double a) const {
        return std::bit_cast<double>(std::bit_cast<std::uint64_t>(1.0 / a) & 0xffffffff00000000u);
    }
};
struct Rcp {
    template <class T>
    T operator()(T a) const {
        return T{1} / a;
    }
};
struct Sqrt {
    template <class T>
    T operator()(T a) const {
        return std::sqrt(a);
    }
};

// Comparisons: of numbers; with "u", also true where one is none.
template <class C, bool unordered>
struct Compare {
    template <class T>
    Flag operator()(T a, T b) const {
        if constexpr (std::is_floating_point_v<T>)
            if (std::isnan(a) || std::isnan(b)) return unordered;
        return C{}(a, b);
    }
};
struct Equal {
    template <class T>
    bool operator()(T a, T b) const {
        return a == b;
    }
};
struct Unequal {
    template <class T>
    bool operator()(T a, T b) const {
        return a != b;
    }
};
struct Less {
    template <class T>
    bool operator()(T a, T b) const {
        return a < b;
    }
};
struct LessEqual {
    template <class T>
    bool operator()(T a, T b) const {
        return a <= b;
    }
};
struct Greater {
    template <class T>
    bool operator()(T a, T b) const {
        return a > b;
    }
};
struct GreaterEqual {
    template <class T>
    bool operator()(T a, T b) const {
        return a >= b;
    }
};

}  // namespace soft_gpu
