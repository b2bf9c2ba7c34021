#include "ops/convert.h"

#include <cstring>

#include "ops/dispatch.h"

namespace tera::ops {

TERA_BACKENDS(void convert(const Exec& exec, Tensor out, ConstTensor x))
TERA_BACKENDS(void add_to(const Exec& exec, Tensor y, ConstTensor x))
TERA_BACKENDS(void fill_zero(const Exec& exec, Tensor x))
TERA_BACKENDS(void copy(const Exec& exec, Tensor out, ConstTensor x))
TERA_BACKENDS(void copy_columns(const Exec& exec, Tensor out, ConstTensor x, std::int64_t first))
TERA_BACKENDS(void put_columns(const Exec& exec, Tensor out, std::int64_t first, ConstTensor x))

namespace cpu {

void convert(const Exec& exec, Tensor out, ConstTensor x) {
    dispatch_float(out.dtype, [&](auto to) {
        dispatch_float(x.dtype, [&](auto from) {
            using To = decltype(to);
            using From = decltype(from);
            To* o = out.ptr<To>();
            const From* in = x.ptr<From>();
            parallel_for(exec, x.numel(), 1 << 16,
                         [&](std::int64_t b, std::int64_t e) { convert_row(o + b, in + b, e - b); });
        });
    });
}

void add_to(const Exec& exec, Tensor y, ConstTensor x) {
    dispatch_float(y.dtype, [&](auto to) {
        dispatch_float(x.dtype, [&](auto from) {
            using T = decltype(to);
            using A = acc_t<T>;
            T* py = y.ptr<T>();
            const auto* px = x.ptr<decltype(from)>();
            parallel_for(exec, x.numel(), 1 << 16, [&](std::int64_t b, std::int64_t e) {
                for (std::int64_t i = b; i < e; ++i)
                    py[i] = T(A(py[i]) + static_cast<A>(static_cast<acc_t<decltype(from)>>(px[i])));
            });
        });
    });
}

void fill_zero(const Exec& exec, Tensor x) {
    parallel_for(exec, static_cast<std::int64_t>(x.bytes()), 1 << 20,
                 [&](std::int64_t b, std::int64_t e) { std::memset(x.data + b, 0, static_cast<std::size_t>(e - b)); });
}

void copy(const Exec& exec, Tensor out, ConstTensor x) {
    parallel_for(exec, static_cast<std::int64_t>(x.bytes()), 1 << 20, [&](std::int64_t b, std::int64_t e) {
        std::memcpy(out.data + b, x.data + b, static_cast<std::size_t>(e - b));
    });
}

void copy_columns(const Exec& exec, Tensor out, ConstTensor x, std::int64_t first) {
    std::size_t item = size_of(x.dtype), bytes = static_cast<std::size_t>(out.cols()) * item;
    parallel_for(exec, out.rows(), grain_rows(out.cols()), [&](std::int64_t r0, std::int64_t r1) {
        for (std::int64_t r = r0; r < r1; ++r)
            std::memcpy(out.data + static_cast<std::size_t>(r) * bytes,
                        x.data + static_cast<std::size_t>(r * x.cols() + first) * item, bytes);
    });
}

void put_columns(const Exec& exec, Tensor out, std::int64_t first, ConstTensor x) {
    std::size_t item = size_of(x.dtype), bytes = static_cast<std::size_t>(x.cols()) * item;
    parallel_for(exec, x.rows(), grain_rows(x.cols()), [&](std::int64_t r0, std::int64_t r1) {
        for (std::int64_t r = r0; r < r1; ++r)
            std::memcpy(out.data + static_cast<std::size_t>(r * out.cols() + first) * item,
                        x.data + static_cast<std::size_t>(r) * bytes, bytes);
    });
}

}  // namespace cpu

void convert(const Exec& exec, Tensor out, ConstTensor x) {
    TERA_CHECK(out.shape == x.shape, out.shape, " and ", x.shape);
    TERA_DISPATCH(exec, convert(exec, out, x));
}

ConstTensor as_dtype(const Exec& exec, ConstTensor x, DType dtype) {
    if (x.dtype == dtype) return x;
    Tensor out = exec.tensor(dtype, x.shape);
    convert(exec, out, x);
    return out;
}

void add_to(const Exec& exec, Tensor y, ConstTensor x) {
    TERA_CHECK(y.shape == x.shape, y.shape, " and ", x.shape);
    TERA_DISPATCH(exec, add_to(exec, y, x));
}

void fill_zero(const Exec& exec, Tensor x) { TERA_DISPATCH(exec, fill_zero(exec, x)); }

void copy(const Exec& exec, Tensor out, ConstTensor x) {
    TERA_CHECK(out.dtype == x.dtype && out.shape == x.shape, out.shape, " and ", x.shape);
    TERA_DISPATCH(exec, copy(exec, out, x));
}

void copy_columns(const Exec& exec, Tensor out, ConstTensor x, std::int64_t first) {
    TERA_CHECK(out.dtype == x.dtype && out.rows() == x.rows() && first >= 0 && first + out.cols() <= x.cols(),
               out.shape, " from column ", first, " of ", x.shape);
    TERA_DISPATCH(exec, copy_columns(exec, out, x, first));
}

void put_columns(const Exec& exec, Tensor out, std::int64_t first, ConstTensor x) {
    TERA_CHECK(out.dtype == x.dtype && out.rows() == x.rows() && first >= 0 && first + x.cols() <= out.cols(), x.shape,
               " to column ", first, " of ", out.shape);
    TERA_DISPATCH(exec, put_columns(exec, out, first, x));
}

}  // namespace tera::ops
