// One block per token. A row that fits into the registers of a block is read once; a longer one twice: for its maximum
// and sum (together, rescaling as the maximum grows), and to write the gradient in its place.
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

constexpr int threads = 1024;

/// Rows of at most per_thread · threads packs.
template <class T, class A, int per_thread>
__global__ void __launch_bounds__(threads) cross_entropy_in_registers(A* loss, T* logits, const std::int32_t* labels,
                                                                      const float* mask, A scale, std::int64_t V) {
    constexpr int step = Pack<T>::n;
    T* z = logits + blockIdx.x * V;
    const int packs_in_row = static_cast<int>(V / step);
    Pack<T> held[per_thread];
    A top = A(-3.0e38);
#pragma unroll
    for (int n = 0; n < per_thread; ++n) {
        const int i = static_cast<int>(threadIdx.x) + n * threads;
        if (i >= packs_in_row) break;
        held[n] = load_pack(z + std::int64_t{i} * step);
    }
#pragma unroll
    for (int n = 0; n < per_thread; ++n) {
        if (static_cast<int>(threadIdx.x) + n * threads >= packs_in_row) break;
#pragma unroll
        for (int k = 0; k < step; ++k) {
            A v = widen(held[n].v[k]);
            top = v > top ? v : top;
        }
    }
    const std::int32_t label = labels[blockIdx.x];
    const A at_label = threadIdx.x == 0 ? static_cast<A>(widen(z[label])) : A(0);
    top = block_reduce(top, Max{});
    A sum = 0;
#pragma unroll
    for (int n = 0; n < per_thread; ++n) {
        if (static_cast<int>(threadIdx.x) + n * threads >= packs_in_row) break;
#pragma unroll
        for (int k = 0; k < step; ++k) sum += exp_of(widen(held[n].v[k]) - top);
    }
    sum = block_reduce(sum, Sum{});
    if (threadIdx.x == 0) loss[blockIdx.x] = static_cast<A>(log(sum)) + (top - at_label);
    if (!mask) return;
    const A weight = scale * static_cast<A>(mask[blockIdx.x]), factor = weight / sum;
#pragma unroll
    for (int n = 0; n < per_thread; ++n) {
        const int i = static_cast<int>(threadIdx.x) + n * threads;
        if (i >= packs_in_row) break;
        Pack<T> d;
#pragma unroll
        for (int k = 0; k < step; ++k)
            d.v[k] = narrow<T>(exp_of(widen(held[n].v[k]) - top) * factor - (i * step + k == label ? weight : A(0)));
        store_pack(z + std::int64_t{i} * step, d);
    }
}

}  // namespace

void cross_entropy(const Exec& exec, Tensor loss, Tensor logits, const std::int32_t* labels, const float* mask,
                   double scale) {
    dispatch_float(logits.dtype, [&](auto zero) {
        using T = decltype(zero);
        using D = device_t<T>;
        using A = acc_t<T>;
        const std::int64_t V = logits.cols();
        constexpr int pack = Pack<D>::n;
        const auto rows = static_cast<unsigned>(logits.rows());
        const auto run = [&](auto kernel) {
            kernel<<<rows, threads, 0, exec.gpu->stream>>>(loss.ptr<A>(), dptr<T>(logits), labels, mask,
                                                           static_cast<A>(scale), V);
        };
        // Sixteen-bit types only: of wider ones a pack holds too little to fill the registers with.
        constexpr bool small = sizeof(T) == 2;
        const std::int64_t per_thread = (V / pack + threads - 1) / threads;
        if (V % pack != 0)
            run(cross_entropy_kernel<D, A, 1>);
        else if (small && per_thread <= 2)
            run(cross_entropy_in_registers<D, A, 2>);
        else if (small && per_thread <= 4)
            run(cross_entropy_in_registers<D, A, 4>);
        else if (small && per_thread <= 7)
            run(cross_entropy_in_registers<D, A, 7>);
        else
            run(cross_entropy_kernel<D, A, pack>);
    });
    TERA_LAUNCHED();
}

}  // namespace tera::ops::cuda
