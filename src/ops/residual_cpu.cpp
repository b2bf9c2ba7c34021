#include "ops/residual.h"

namespace tera::ops::cpu {

void dropout_add(const Exec& exec, Tensor out, ConstTensor x, ConstTensor y, ConstTensor bias, const Dropout& dropout);

namespace {

/// factor[i] = 0 or 1/(1-p) for the D elements of one row.
template <class A>
void mask_row(A* factor, std::int64_t D, std::int64_t row, const Dropout& dropout) {
    std::uint32_t threshold = dropout_threshold(dropout.p);
    A keep = static_cast<A>(1.0 / (1.0 - dropout.p));
    std::int64_t sample = dropout.sample[row % dropout.B], element = dropout.piece.at(row / dropout.B) * D,
                 end = element + D;
    for (std::int64_t i = 0; element < end;) {
        U32x4 words = dropout_words(dropout.site, sample, static_cast<std::uint64_t>(element / 4));
        for (std::int64_t lane = element % 4; lane < 4 && element < end; ++lane, ++element)
            factor[i++] = words.v[lane] < threshold ? A(0) : keep;
    }
}

}  // namespace

void dropout_add(const Exec& exec, Tensor out, ConstTensor x, ConstTensor y, ConstTensor bias, const Dropout& dropout) {
    dispatch_float(y.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        std::int64_t D = y.cols();
        const T *px = x ? x.ptr<T>() : nullptr, *py = y.ptr<T>(), *pb = bias ? bias.ptr<T>() : nullptr;
        T* po = out.ptr<T>();
        parallel_for(exec, y.rows(), grain_rows(D), [&](std::int64_t r0, std::int64_t r1) {
            std::vector<A> factor(dropout.p > 0 ? static_cast<std::size_t>(D) : 0);
            for (std::int64_t r = r0; r < r1; ++r) {
                const T *xr = px ? px + r * D : nullptr, *yr = py + r * D;
                T* o = po + r * D;
                if (dropout.p > 0) mask_row(factor.data(), D, r, dropout);
                for (std::int64_t i = 0; i < D; ++i) {
                    A v = A(yr[i]);
                    if (pb) v += A(pb[i]);
                    if (dropout.p > 0) v *= factor[static_cast<std::size_t>(i)];
                    if (xr) v += A(xr[i]);
                    o[i] = T(v);
                }
            }
        });
    });
}

}  // namespace tera::ops::cpu
