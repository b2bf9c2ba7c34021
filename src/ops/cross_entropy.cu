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

constexpr int threads = 512, ahead = 4;

/// Calls f(pack, its index) for this thread's packs of a row, several of them asked for before the first is used.
template <int step, class T, class F>
__device__ void each_pack(const T* z, int packs_in_row, const F& f) {
    for (int i = static_cast<int>(threadIdx.x); i < packs_in_row; i += ahead * threads) {
        decltype(load_held<step>(z)) held[ahead];
#pragma unroll
        for (int n = 0; n < ahead; ++n)
            if (i + n * threads < packs_in_row) held[n] = load_held<step>(z + std::int64_t{i + n * threads} * step);
#pragma unroll
        for (int n = 0; n < ahead; ++n)
            if (i + n * threads < packs_in_row) f(held[n], i + n * threads);
    }
}

template <class T, class A, int step>
__global__ void __launch_bounds__(threads)
    cross_entropy_kernel(A* loss, T* logits, const std::int32_t* labels, const float* mask, A scale, std::int64_t V) {
    T* z = logits + blockIdx.x * V;
    const int packs_in_row = static_cast<int>(V / step);
    MaxSum<A> mine{A(-3.0e38), A(0)};
    each_pack<step>(z, packs_in_row, [&](const auto& v, int) {
        A top = v[0];
#pragma unroll
        for (int k = 1; k < step; ++k) top = v[k] > top ? v[k] : top;
        if (top > mine.top) {
            mine.sum *= exp_of(mine.top - top);
            mine.top = top;
        }
#pragma unroll
        for (int k = 0; k < step; ++k) mine.sum += exp_of(v[k] - mine.top);
    });
    MaxSum<A> row = reduce_max_sum(mine);
    const std::int32_t label = labels[blockIdx.x];
    if (threadIdx.x == 0) loss[blockIdx.x] = static_cast<A>(log(row.sum)) + (row.top - widen(z[label]));
    if (!mask) return;
    __syncthreads();
    const A weight = scale * static_cast<A>(mask[blockIdx.x]), factor = weight / row.sum;
    each_pack<step>(z, packs_in_row, [&](const auto& v, int i) {
        Few<T, step> d;
#pragma unroll
        for (int k = 0; k < step; ++k)
            d.v[k] = narrow<T>(exp_of(v[k] - row.top) * factor - (i * step + k == label ? weight : A(0)));
        store_few(z + std::int64_t{i} * step, d);
    });
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
            cross_entropy_kernel<device_t<T>, A, pack><<<rows, threads, 0, exec.gpu->stream>>>(
                loss.ptr<A>(), dptr<T>(logits), labels, mask, static_cast<A>(scale), V);
        else
            cross_entropy_kernel<device_t<T>, A, 1><<<rows, threads, 0, exec.gpu->stream>>>(
                loss.ptr<A>(), dptr<T>(logits), labels, mask, static_cast<A>(scale), V);
    });
    TERA_LAUNCHED();
}

}  // namespace tera::ops::cuda
