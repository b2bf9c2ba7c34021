// Main weights in fp32 beside values in bf16, without keeping anything twice. The value is the upper half of the main
// weight's bits, rounded; what is kept beside it is the lower half, signed:
//
//   bits(main) = (bits(value) << 16) + rest        -32768 <= rest < 32768
//
// So a value stands for exactly 65536 main weights: it is the nearest to each of them, and where two are as near, the
// one further from zero. (Nearest-even, by which everything else is rounded, gives even values one more and odd ones
// one less, which do not fit 16 bits.) Two bytes for each weight instead of four.
#pragma once

#include <cstdint>

#include "core/rng.h"
#include "core/tensor.h"

namespace tera {

struct SplitWeight {
    std::uint16_t value;  ///< bits of bf16
    std::int16_t rest;
};

TERA_HOST_DEVICE inline float joined(SplitWeight s) {
    return rng_detail::bits_to_float((std::uint32_t{s.value} << 16) + static_cast<std::uint32_t>(std::int32_t{s.rest}));
}

TERA_HOST_DEVICE inline SplitWeight split(float main) {
    const std::uint32_t bits = rng_detail::float_to_bits(main);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>(bits >> 16 | 0x40u), 0};  // stays NaN
    return {static_cast<std::uint16_t>((bits + 0x8000u) >> 16), static_cast<std::int16_t>(bits & 0xffffu)};
}

/// The rest that makes the main weight come nearest to `main` where the value must stay as it is. That is `main` itself
/// but for what another way of rounding gave another value.
TERA_HOST_DEVICE inline std::int16_t rest_beside(std::uint16_t value, float main) {
    const std::uint32_t bits = rng_detail::float_to_bits(main);
    const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
    if (!finite || bits >> 31 != std::uint32_t{value} >> 15) return 0;  // beyond a change of sign there are NaNs
    const std::int64_t rest = std::int64_t{bits} - (std::int64_t{value} << 16);
    return static_cast<std::int16_t>(rest < -32768 ? -32768 : rest > 32767 ? 32767 : rest);
}

/// A tensor as it is in memory or, if there is a rest, the fp32 numbers that it makes of values in bf16.
struct SplitTensor {
    Tensor tensor;
    Tensor rest;  ///< u16, the bits of SplitWeight::rest

    SplitTensor(Tensor t = {}, Tensor r = {}) : tensor(t), rest(r) {}
    bool is_split() const { return rest.dtype == DType::u16; }
    DType dtype() const { return is_split() ? DType::f32 : tensor.dtype; }
    const Shape& shape() const { return tensor.shape; }
    std::int64_t numel() const { return tensor.numel(); }
    /// Of memory that is not the value's.
    std::size_t own_bytes() const { return is_split() ? rest.bytes() : tensor.bytes(); }
    SplitTensor reshape(Shape s) const { return {tensor.reshape(s), is_split() ? rest.reshape(s) : Tensor()}; }
    /// Elements, in a row.
    SplitTensor part(std::int64_t first, std::int64_t count) const {
        const auto of = [&](const Tensor& t) { return t.reshape({t.numel()}).slice(first, count); };
        return {of(tensor), is_split() ? of(rest) : Tensor()};
    }
};

/// The halves on the host, from element `begin` on.
class Halves {
  public:
    explicit Halves(const SplitTensor& t, std::int64_t begin = 0)
        : value_(t.tensor.ptr<bf16_t>() + begin), rest_(t.rest.ptr<std::uint16_t>() + begin) {}
    float get(std::int64_t i) const { return joined({value_[i].bits, static_cast<std::int16_t>(rest_[i])}); }
    void set(std::int64_t i, float main) const {
        const SplitWeight s = split(main);
        value_[i].bits = s.value;
        rest_[i] = static_cast<std::uint16_t>(s.rest);
    }
    void keep_rest(std::int64_t i, float main) const {
        rest_[i] = static_cast<std::uint16_t>(rest_beside(value_[i].bits, main));
    }

  private:
    bf16_t* value_;
    std::uint16_t* rest_;
};

}  // namespace tera
