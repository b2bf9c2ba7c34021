// A row of logits is used twice: once for its maximum and sum (together, rescaling as the maximum grows), once to write
// the gradient in its place.
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

__device__ inline float larger(float a, float b) { return fmaxf(a, b); }
__device__ inline double larger(double a, double b) { return fmax(a, b); }

/// Adds a pack of logits.
template <class A, class Held>
__device__ void take_in(MaxSum<A>& mine, const Held& v) {
    constexpr A unit = static_cast<A>(log2_of_e);
    A top = v[0];
#pragma unroll
    for (int k = 1; k < Held::n; ++k) top = larger(top, v[k]);
    if (top * unit > mine.top) mine.raise(top * unit);
#pragma unroll
    for (int k = 0; k < Held::n; ++k) mine.sum += exp2_of(v[k] * unit - mine.top);
}

template <class A>
__device__ A loss_of(const MaxSum<A>& row, A at_label) {
    return static_cast<A>(ln2) * (static_cast<A>(log2(row.sum)) + (row.top - at_label * static_cast<A>(log2_of_e)));
}

/// Thread t has the packs t, t + threads, ... of the row; several are asked for before the first is used.
template <class T, class A, int step>
__global__ void __launch_bounds__(512)
    cross_entropy_loss_kernel(A* loss, const T* logits, const std::int32_t* labels, std::int64_t V) {
    constexpr int ahead = 4;
    const T* z = logits + blockIdx.x * V;
    const int packs = static_cast<int>(V / step), threads = static_cast<int>(blockDim.x);
    MaxSum<A> mine{A(-3.0e38), A(0)};
    for (int i = static_cast<int>(threadIdx.x); i < packs; i += ahead * threads) {
        decltype(load_held<step>(z)) v[ahead];
#pragma unroll
        for (int n = 0; n < ahead; ++n)
            if (int at = i + n * threads; at < packs) v[n] = load_held<step>(z + std::int64_t{at} * step);
#pragma unroll
        for (int n = 0; n < ahead; ++n)
            if (i + n * threads < packs) take_in(mine, v[n]);
    }
    const MaxSum<A> row = reduce_max_sum(mine);
    if (threadIdx.x == 0) loss[blockIdx.x] = loss_of(row, static_cast<A>(widen(z[labels[blockIdx.x]])));
}

/// Sixteen bytes are on their way until copies_are_here(); anything else is copied at once.
template <class Held, class T>
__device__ void copy_ahead(Held* to, const T* from) {
    if constexpr (sizeof(Held) == 16) {
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
            "l"(from)
            : "memory");
    } else {
        *to = Held{*from};
    }
}
__device__ void end_of_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Of this thread's groups of copies all but the last `open` are here.
template <int open>
__device__ void copies_are_here() {
    asm volatile("cp.async.wait_group %0;" ::"n"(open) : "memory");
}

/// A block takes row after row. In between its two uses a row stays on the chip: the first `held` packs in shared
/// memory, `kept` of each thread in registers; only what is beyond is read again. While the gradient of a row goes out
/// the next row comes in, each pack to the place that was just emptied, and is taken in `lag` packs later. No thread
/// touches another's packs.
template <class T, class A, int step, int kept>
__global__ void __launch_bounds__(1024)
    cross_entropy_kernel(A* loss, T* logits, const std::int32_t* labels, const float* mask, A scale, std::int64_t rows,
                         std::int64_t V, int held) {
    using Held = decltype(load_held<step>(static_cast<const T*>(nullptr)));
    constexpr int lag = 4;
    extern __shared__ __align__(16) unsigned char memory[];
    auto* const slots = reinterpret_cast<Held*>(memory);
    const int packs = static_cast<int>(V / step), threads = static_cast<int>(blockDim.x),
              first = static_cast<int>(threadIdx.x), first_kept = held + first, beyond = first_kept + kept * threads;
    Held registers[kept > 0 ? kept : 1];
    T* z = logits + blockIdx.x * V;
#pragma unroll
    for (int n = 0; n < kept; ++n)
        if (int at = first_kept + n * threads; at < packs) registers[n] = load_held<step>(z + std::int64_t{at} * step);
    for (int at = first; at < held; at += threads) copy_ahead(&slots[at], z + std::int64_t{at} * step);
    end_of_copies();
    MaxSum<A> mine{A(-3.0e38), A(0)};
    int seen = first;
    std::int32_t label = labels[blockIdx.x];
    float share = mask[blockIdx.x];
    for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const A weight = scale * static_cast<A>(share);
        const A at_label = first == 0 ? static_cast<A>(widen(z[label])) : A(0);  // before anybody writes there
#pragma unroll
        for (int n = 0; n < kept; ++n)
            if (first_kept + n * threads < packs) take_in(mine, registers[n]);
        for (int at = beyond; at < packs; at += threads) take_in(mine, load_held<step>(z + std::int64_t{at} * step));
        copies_are_here<0>();
        for (; seen < held; seen += threads) take_in(mine, slots[seen]);
        const MaxSum<A> sums = reduce_max_sum(mine);
        mine = {A(-3.0e38), A(0)};
        seen = first;
        if (first == 0) loss[row] = loss_of(sums, at_label);
        const A factor = weight / sums.sum;
        const int label_pack = label / step, label_place = label % step;
        const auto write = [&](const Held& v, int at) {
            A d[step];
#pragma unroll
            for (int k = 0; k < step; ++k) d[k] = exp2_of(v[k] * static_cast<A>(log2_of_e) - sums.top) * factor;
            if (at == label_pack) {
#pragma unroll
                for (int k = 0; k < step; ++k) d[k] -= k == label_place ? weight : A(0);
            }
            store_few(z + std::int64_t{at} * step, narrow_few<T>(d));
        };
        T* const next = z + gridDim.x * V;
        const bool more = row + gridDim.x < rows;
#pragma unroll
        for (int n = 0; n < kept; ++n)
            if (int at = first_kept + n * threads; at < packs) {
                write(registers[n], at);
                if (more) registers[n] = load_held<step>(next + std::int64_t{at} * step);
            }
        if (more) {
            label = labels[row + gridDim.x];
            share = mask[row + gridDim.x];
        }
        for (int at = first; at < held; at += threads) {
            write(Held(slots[at]), at);
            if (!more) continue;
            copy_ahead(&slots[at], next + std::int64_t{at} * step);
            end_of_copies();
            if (at - seen == lag * threads) {
                copies_are_here<lag>();
                take_in(mine, slots[seen]);
                seen += threads;
            }
        }
        for (int at = beyond; at < packs; at += threads) write(load_held<step>(z + std::int64_t{at} * step), at);
        z = next;
    }
}

/// Two blocks share a multiprocessor's memory where two whole rows fit: then one reads while the other computes.
template <class T, class A, int step>
void launch(const Exec& exec, A* loss, T* logits, const std::int32_t* labels, const float* mask, A scale,
            std::int64_t rows, std::int64_t V) {
    if (!mask) {
        cross_entropy_loss_kernel<T, A, step>
            <<<static_cast<unsigned>(rows), 512, 0, exec.gpu->stream>>>(loss, logits, labels, V);
        return;
    }
    constexpr std::int64_t pack_bytes = step * sizeof(T), most = (220 << 10) / pack_bytes;
    const std::int64_t packs = V / step, held = std::min(packs, most);
    const bool two = packs <= most / 2;
    const int threads = two ? 512 : 1024, bytes = static_cast<int>(held * pack_bytes);
    const std::int64_t blocks = std::min<std::int64_t>(rows, exec.gpu->multiprocessors * (two ? 2 : 1));
    const auto run = [&](auto* kernel) {
        TERA_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
        kernel<<<static_cast<unsigned>(blocks), threads, static_cast<std::size_t>(bytes), exec.gpu->stream>>>(
            loss, logits, labels, mask, scale, rows, V, static_cast<int>(held));
    };
    // As many packs of a thread as its registers take beside the rest: 64 for a thread of 1024.
    const std::int64_t left = (packs - held + threads - 1) / threads;
    if (left == 0)
        run(cross_entropy_kernel<T, A, step, 0>);
    else if (left <= 3)
        run(cross_entropy_kernel<T, A, step, 3>);
    else
        run(cross_entropy_kernel<T, A, step, 5>);
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
