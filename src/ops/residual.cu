#include "ops/cuda_types.cuh"
#include "ops/residual.h"

namespace tera::ops::cuda {
namespace {

struct Drop {
    std::uint32_t threshold;
    double keep;  ///< 1/(1-p)
    DropoutSite site;
    std::int64_t B;
    const std::int64_t* sample;
    SequencePiece piece;
};

template <class T, int step>
__global__ void dropout_add_kernel(T* out, const T* x, const T* y, const T* bias, std::int64_t groups, std::int64_t D,
                                   bool dropping, Drop drop) {
    using A = decltype(widen(T{}));
    std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
    if (i >= groups) return;
    std::int64_t at = i * step, row = at / D, col = at % D;
    A v[step];
    auto branch = load_few<step>(y + at);
#pragma unroll
    for (int k = 0; k < step; ++k) v[k] = widen(branch.v[k]);
    if (bias) {
        auto few = load_few<step>(bias + col);
#pragma unroll
        for (int k = 0; k < step; ++k) v[k] += widen(few.v[k]);
    }
    if (dropping) {
        std::uint64_t element = static_cast<std::uint64_t>(drop.piece.at(row / drop.B) * D + col);
        std::int64_t sample = drop.sample[row % drop.B];
        U32x4 words = dropout_words(drop.site, sample, element / 4);
#pragma unroll
        for (int k = 0; k < step; ++k) {
            if (k > 0 && (element + k) % 4 == 0) words = dropout_words(drop.site, sample, (element + k) / 4);
            v[k] *= words.v[(element + k) % 4] < drop.threshold ? A(0) : static_cast<A>(drop.keep);
        }
    }
    if (x) {
        auto few = load_few<step>(x + at);
#pragma unroll
        for (int k = 0; k < step; ++k) v[k] += widen(few.v[k]);
    }
    Few<T, step> sum;
#pragma unroll
    for (int k = 0; k < step; ++k) sum.v[k] = narrow<T>(v[k]);
    store_few(out + at, sum);
}

}  // namespace

void dropout_add(const Exec& exec, Tensor out, ConstTensor x, ConstTensor y, ConstTensor bias, const Dropout& dropout) {
    dispatch_float(y.dtype, [&](auto zero) {
        using T = decltype(zero);
        const device_t<T>*px = x ? dptr<T>(x) : nullptr, *pb = bias ? dptr<T>(bias) : nullptr;
        Drop drop{dropout_threshold(dropout.p),
                  1.0 / (1.0 - dropout.p),
                  dropout.site,
                  dropout.B,
                  dropout.sample,
                  dropout.piece};
        auto launch = [&](auto width) {
            constexpr int step = decltype(width)::value;
            std::int64_t groups = y.numel() / step;
            dropout_add_kernel<device_t<T>, step><<<blocks_for(groups, 256, INT32_MAX), 256, 0, exec.gpu->stream>>>(
                dptr<T>(out), px, dptr<T>(y), pb, groups, y.cols(), dropout.p > 0, drop);
        };
        constexpr int pack = Pack<device_t<T>>::n;
        if (y.cols() % pack == 0)
            launch(std::integral_constant<int, pack>{});
        else
            launch(std::integral_constant<int, 1>{});
    });
    TERA_LAUNCHED();
}

}  // namespace tera::ops::cuda
