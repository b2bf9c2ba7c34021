// One block per token. The row is used twice: once for its maximum and sum (together, rescaling as the maximum grows),
// once to write the gradient in its place. What fits of it stays in shared memory in between.
#include "ops/cross_entropy.h"
#include "ops/cuda_types.cuh"

namespace tera::ops::cuda {
namespace {

constexpr double log2_of_e = 1.4426950408889634, ln2 = 0.6931471805599453;

/// Σ 2^(log2(e) z - top), where top is log2(e) times the largest z so far: one multiply-add before each power of two.
template <class A>
struct MaxSum {
    A top, sum;
    __device__ void raise(A to) {
        sum *= exp2_of(top - to);
        top = to;
    }
};

template <class A>
__device__ MaxSum<A> reduce_max_sum(MaxSum<A> x) {
    A top = block_reduce(x.top, Max{});
    A sum = block_reduce(x.sum * exp2_of(x.top - top), Sum{});
    return {top, sum};
}

constexpr int ahead = 4;

/// Packs of a row of logits as a block's threads see them: thread t has t, t + threads, ... The first `held` are kept.
template <class T, int step>
struct Row {
    using Held = decltype(load_held<step>(static_cast<const T*>(nullptr)));
    T* z;
    Held* kept;
    int packs, held;

    /// Calls f(pack, its index), several packs asked for before the first is used.
    template <bool again, class F>
    __device__ void each(const F& f) const {
        const int threads = static_cast<int>(blockDim.x);
        for (int i = static_cast<int>(threadIdx.x); i < packs; i += ahead * threads) {
            Held v[ahead];
#pragma unroll
            for (int n = 0; n < ahead; ++n)
                if (int at = i + n * threads; at < packs)
                    v[n] = again && at < held ? kept[at] : load_held<step>(z + std::int64_t{at} * step);
#pragma unroll
            for (int n = 0; n < ahead; ++n)
                if (int at = i + n * threads; at < packs) {
                    if (!again && at < held) kept[at] = v[n];
                    f(v[n], at);
                }
        }
    }
};

template <class T, class A, int step>
__global__ void __launch_bounds__(1024) cross_entropy_kernel(A* loss, T* logits, const std::int32_t* labels,
                                                             const float* mask, A scale, std::int64_t V, int held) {
    extern __shared__ __align__(16) unsigned char memory[];
    T* z = logits + blockIdx.x * V;
    using Packs = Row<T, step>;
    const Packs packs{z, reinterpret_cast<typename Packs::Held*>(memory), static_cast<int>(V / step), held};
    constexpr A unit = static_cast<A>(log2_of_e);
    MaxSum<A> mine{A(-3.0e38), A(0)};
    packs.template each<false>([&](const auto& v, int) {
        A top = v[0];
#pragma unroll
        for (int k = 1; k < step; ++k) top = v[k] > top ? v[k] : top;
        if (top * unit > mine.top) mine.raise(top * unit);
#pragma unroll
        for (int k = 0; k < step; ++k) mine.sum += exp2_of(v[k] * unit - mine.top);
    });
    const MaxSum<A> row = reduce_max_sum(mine);
    const std::int32_t label = labels[blockIdx.x];
    if (threadIdx.x == 0)
        loss[blockIdx.x] = static_cast<A>(ln2) * (static_cast<A>(log2(row.sum)) + (row.top - widen(z[label]) * unit));
    if (!mask) return;
    __syncthreads();
    const A weight = scale * static_cast<A>(mask[blockIdx.x]), factor = weight / row.sum;
    packs.template each<true>([&](const auto& v, int i) {
        A d[step];
#pragma unroll
        for (int k = 0; k < step; ++k) d[k] = exp2_of(v[k] * unit - row.top) * factor;
        if (i == label / step) {
#pragma unroll
            for (int k = 0; k < step; ++k) d[k] -= k == label % step ? weight : A(0);
        }
        store_few(z + std::int64_t{i} * step, narrow_few<T>(d));
    });
}

/// Two blocks share a multiprocessor's memory where two whole rows fit, so that one reads while the other computes;
/// of a longer row as much as fits is kept.
template <class T, class A, int step>
void launch(const Exec& exec, A* loss, T* logits, const std::int32_t* labels, const float* mask, A scale,
            std::int64_t rows, std::int64_t V) {
    constexpr std::int64_t pack_bytes = step * sizeof(T), most = 220 << 10;
    const std::int64_t packs = V / step;
    const bool two = packs * pack_bytes <= most / 2;
    const std::int64_t held = mask ? std::min(packs, most / pack_bytes) : 0;
    auto* kernel = cross_entropy_kernel<T, A, step>;
    const int bytes = static_cast<int>(held * pack_bytes);
    TERA_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    kernel<<<static_cast<unsigned>(rows), two ? 512 : 1024, static_cast<std::size_t>(bytes), exec.gpu->stream>>>(
        loss, logits, labels, mask, scale, V, static_cast<int>(held));
}

}  // namespace

void cross_entropy(const Exec& exec, Tensor loss, Tensor logits, const std::int32_t* labels, const float* mask,
                   double scale) {
    dispatch_float(logits.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        constexpr int pack = Pack<device_t<T>>::n;
        auto run = [&](auto step) {
            launch<device_t<T>, A, decltype(step)::value>(exec, loss.ptr<A>(), dptr<T>(logits), labels, mask,
                                                          static_cast<A>(scale), logits.rows(), logits.cols());
        };
        if (logits.cols() % pack == 0)
            run(std::integral_constant<int, pack>{});
        else
            run(std::integral_constant<int, 1>{});
    });
    TERA_LAUNCHED();
}

}  // namespace tera::ops::cuda
