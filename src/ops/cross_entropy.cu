// One block per token. The row is read twice: once for its maximum and sum (together, rescaling as the maximum grows),
// once to write the gradient in its place.
#include "ops/cross_entropy.h"
#include "ops/cuda_types.cuh"

namespace tera::ops::cuda {
namespace {

template <class A>
struct MaxSum {
    A top, sum;
};

template <class A>
__device__ MaxSum<A> reduce_max_sum(MaxSum<A> x) {
    A top = block_reduce(x.top, Max{});
    A sum = block_reduce(x.sum * exp_of(x.top - top), Sum{});
    return {top, sum};
}

template <class T, class A, int step>
__global__ void cross_entropy_kernel(A* loss, T* logits, const std::int32_t* labels, const float* mask, A scale,
                                     std::int64_t V) {
    T* z = logits + blockIdx.x * V;
    std::int64_t packs_in_row = V / step;
    MaxSum<A> mine{A(-3.0e38), A(0)};
    for (std::int64_t i = threadIdx.x; i < packs_in_row; i += blockDim.x) {
        A v[step];
        if constexpr (step == 1)
            v[0] = widen(z[i]);
        else {
            Pack<T> x = load_pack(z + i * step);
#pragma unroll
            for (int k = 0; k < step; ++k) v[k] = widen(x.v[k]);
        }
        A top = v[0];
#pragma unroll
        for (int k = 1; k < step; ++k) top = v[k] > top ? v[k] : top;
        if (top > mine.top) {
            mine.sum *= exp_of(mine.top - top);
            mine.top = top;
        }
#pragma unroll
        for (int k = 0; k < step; ++k) mine.sum += exp_of(v[k] - mine.top);
    }
    MaxSum<A> row = reduce_max_sum(mine);
    std::int32_t label = labels[blockIdx.x];
    if (threadIdx.x == 0) loss[blockIdx.x] = static_cast<A>(log(row.sum)) + (row.top - widen(z[label]));
    if (!mask) return;
    __syncthreads();
    A weight = scale * static_cast<A>(mask[blockIdx.x]), factor = weight / row.sum;
    for (std::int64_t i = threadIdx.x; i < packs_in_row; i += blockDim.x) {
        if constexpr (step == 1) {
            z[i] = narrow<T>(exp_of(widen(z[i]) - row.top) * factor - (i == label ? weight : A(0)));
        } else {
            Pack<T> x = load_pack(z + i * step);
#pragma unroll
            for (int k = 0; k < step; ++k)
                x.v[k] = narrow<T>(exp_of(widen(x.v[k]) - row.top) * factor - (i * step + k == label ? weight : A(0)));
            store_pack(z + i * step, x);
        }
    }
}

}  // namespace

void cross_entropy(const Exec& exec, Tensor loss, Tensor logits, const std::int32_t* labels, const float* mask,
                   double scale) {
    dispatch_float(logits.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        std::int64_t V = logits.cols();
        constexpr int pack = Pack<device_t<T>>::n;
        auto rows = static_cast<unsigned>(logits.rows());
        if (V % pack == 0)
            cross_entropy_kernel<device_t<T>, A, pack><<<rows, 1024, 0, exec.gpu->stream>>>(
                loss.ptr<A>(), dptr<T>(logits), labels, mask, static_cast<A>(scale), V);
        else
            cross_entropy_kernel<device_t<T>, A, 1><<<rows, 1024, 0, exec.gpu->stream>>>(
                loss.ptr<A>(), dptr<T>(logits), labels, mask, static_cast<A>(scale), V);
    });
    TERA_LAUNCHED();
}

}  // namespace tera::ops::cuda
