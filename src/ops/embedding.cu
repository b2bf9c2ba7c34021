#include "ops/cuda_types.cuh"
#include "ops/embedding.h"

namespace tera::ops::cuda {
namespace {

template <class T, int step>
__global__ void embedding_kernel(T* x, const T* word, const T* position, const std::int32_t* tokens,
                                 const std::int32_t* positions, std::int64_t groups, std::int64_t D) {
    std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
    if (i >= groups) return;
    std::int64_t t = i * step / D, col = i * step % D;
    const T* w = word + std::int64_t{tokens[t]} * D + col;
    T* o = x + i * step;
    if (!position) {
#pragma unroll
        for (int k = 0; k < step; ++k) o[k] = w[k];
        return;
    }
    const T* p = position + std::int64_t{positions[t]} * D + col;
#pragma unroll
    for (int k = 0; k < step; ++k) o[k] = narrow<T>(widen(w[k]) + widen(p[k]));
}

/// The first token with a given index adds up all of them, in order: no atomics, always the same bits.
template <class T, class A>
__global__ void embedding_backward_kernel(A* table, const T* dx, const std::int32_t* indices, std::int64_t T_count,
                                          std::int64_t D) {
    std::int64_t t = blockIdx.x;
    std::int32_t index = indices[t];
    __shared__ int seen_before;
    if (threadIdx.x == 0) seen_before = 0;
    __syncthreads();
    for (std::int64_t u = threadIdx.x; u < t; u += blockDim.x)
        if (indices[u] == index) seen_before = 1;
    __syncthreads();
    if (seen_before) return;
    __shared__ std::int32_t window[1024];
    for (std::int64_t col = threadIdx.x; col < (D + blockDim.x - 1) / blockDim.x * blockDim.x; col += blockDim.x) {
        A sum = 0;
        for (std::int64_t base = t; base < T_count; base += 1024) {
            __syncthreads();
            for (std::int64_t u = threadIdx.x; u < 1024 && base + u < T_count; u += blockDim.x)
                window[u] = indices[base + u];
            __syncthreads();
            std::int64_t end = T_count - base < 1024 ? T_count - base : 1024;
            if (col < D)
                for (std::int64_t u = 0; u < end; ++u)
                    if (window[u] == index) sum += widen(dx[(base + u) * D + col]);
        }
        if (col < D) table[std::int64_t{index} * D + col] += sum;
    }
}

}  // namespace

void embedding(const Exec& exec, Tensor x, ConstTensor word, ConstTensor position, const std::int32_t* tokens,
               const std::int32_t* positions) {
    dispatch_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        const device_t<T>* pp = position ? dptr<T>(position) : nullptr;
        auto launch = [&](auto width) {
            constexpr int step = decltype(width)::value;
            std::int64_t groups = x.numel() / step;
            embedding_kernel<device_t<T>, step><<<blocks_for(groups, 256, INT32_MAX), 256, 0, exec.gpu->stream>>>(
                dptr<T>(x), dptr<T>(word), pp, tokens, positions, groups, x.cols());
        };
        constexpr int pack = Pack<device_t<T>>::n;
        if (x.cols() % pack == 0)
            launch(std::integral_constant<int, pack>{});
        else
            launch(std::integral_constant<int, 1>{});
    });
    TERA_LAUNCHED();
}

void embedding_backward(const Exec& exec, Tensor table_grad, ConstTensor dx, const std::int32_t* indices) {
    dispatch_float(dx.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        embedding_backward_kernel<device_t<T>, A><<<static_cast<unsigned>(dx.rows()), 256, 0, exec.gpu->stream>>>(
            table_grad.ptr<A>(), dptr<T>(dx), indices, dx.rows(), dx.cols());
    });
    TERA_LAUNCHED();
}

}  // namespace tera::ops::cuda
