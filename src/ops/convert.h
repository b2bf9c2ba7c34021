// Conversion between floating-point types, and other passes over whole tensors.
#pragma once

#include "core/exec.h"

namespace tera::ops {

/// out = x, element by element, in out's dtype.
void convert(const Exec& exec, Tensor out, ConstTensor x);
/// x, in `dtype`; x itself if it already is.
ConstTensor as_dtype(const Exec& exec, ConstTensor x, DType dtype);
/// y += x, of the same shape, in y's dtype.
void add_to(const Exec& exec, Tensor y, ConstTensor x);
void fill_zero(const Exec& exec, Tensor x);
/// out = x, byte for byte.
void copy(const Exec& exec, Tensor out, ConstTensor x);
/// out [T,n] = columns [first, first + n) of x [T,m].
void copy_columns(const Exec& exec, Tensor out, ConstTensor x, std::int64_t first);
/// Columns [first, first + n) of out [T,m] = x [T,n].
void put_columns(const Exec& exec, Tensor out, std::int64_t first, ConstTensor x);

namespace cpu {

/// Element conversion on the calling thread.
template <class To, class From>
void convert_row(To* out, const From* in, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
        if constexpr (std::is_same_v<To, From>)
            out[i] = in[i];
        else if constexpr (std::is_same_v<From, double>)
            out[i] = To(static_cast<float>(in[i]));
        else
            out[i] = static_cast<To>(static_cast<float>(in[i]));
    }
}
template <>
inline void convert_row<float, double>(float* out, const double* in, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(in[i]);
}

}  // namespace cpu
}  // namespace tera::ops
