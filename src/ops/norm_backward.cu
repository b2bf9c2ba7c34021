// Gradients of LayerNorm and RMSNorm over rows: a fixed number of blocks walk the rows, each thread summing the
// gradients of its own columns; a second kernel adds the blocks' sums in order.
#include "ops/column_sum.h"
#include "ops/norm_cuda.cuh"
#include "ops/row_ring.cuh"

namespace tera::ops::cuda {
namespace {

// Enough to fill any GPU; fixed, so that sums and scratch memory are the same on all. Narrow rows make small blocks.
constexpr std::int64_t backward_blocks(std::int64_t n) { return n <= 1024 ? 1056 : 396; }

constexpr int backward_threads = 512;             // at most
constexpr int narrow_rows = 2, rounds_ahead = 3;  // of norm_backward_narrow: rows a round, rounds on their way

template <class T, class A>
struct BackwardArgs {
    T* dx;
    const T *dy, *x, *w;
    const A *mean, *rstd;
    A* partial[3];  ///< [blocks, n] each: dw, db, column sums of dx as it came; null: not wanted
    std::int64_t rows;
    int n;
    Spec spec;
};

/// Sums of dot and sum over the block, on every thread; `between` runs behind the barrier.
template <int R, class A, class F>
__device__ inline void add_up(A (&dot)[R], A (&sum)[R], A (*places)[2 * R], int warps, const F& between) {
#pragma unroll
    for (int q = 0; q < R; ++q) {
        dot[q] = warp_sum(dot[q]);
        sum[q] = warp_sum(sum[q]);
        if ((threadIdx.x & 31) == 0) {
            places[threadIdx.x >> 5][2 * q] = dot[q];
            places[threadIdx.x >> 5][2 * q + 1] = sum[q];
        }
        dot[q] = sum[q] = 0;
    }
    __syncthreads();
    between();
    for (int w = 0; w < warps; ++w)
#pragma unroll
        for (int q = 0; q < R; ++q) {
            dot[q] += places[w][2 * q];
            sum[q] += places[w][2 * q + 1];
        }
}

/// Rows of at most a pack per thread. What the next rounds need is on its way into shared memory while this one is
/// worked on.
template <class T, class A, int registers>
__global__ void __maxnreg__(registers) norm_backward_narrow(BackwardArgs<T, A> io) {
    constexpr int step = Pack<T>::n, R = narrow_rows;
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ unsigned long long arrived[rounds_ahead];
    __shared__ A places[2][backward_threads / 32][2 * R];  // by turns, so that one barrier a round is enough
    const int i = static_cast<int>(threadIdx.x) * step, n = io.n, warps = static_cast<int>(blockDim.x) / 32;
    const std::int64_t hop = std::int64_t{gridDim.x} * R;
    const bool mine = i < n;
    A sums[3][step] = {}, scale[step] = {}, next_stat;
    // A round's means and rstds, each by a lane of its own: what all lanes load goes to uniform registers, which the
    // compiler waits for at once, not where it is used.
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const A* const of_lane = (lane < R ? io.mean : lane < 2 * R ? io.rstd : nullptr);
    const auto stat = [&](std::int64_t r0) {
        const std::int64_t r = r0 + lane % R;
        return of_lane && r < io.rows ? of_lane[r] : A(0);
    };
    RowRing<T, R, rounds_ahead> ring(memory, arrived, {io.dy, io.x, io.dx}, io.rows, n);
    std::int64_t r0 = std::int64_t{blockIdx.x} * R;
#pragma unroll
    for (int slot = 0; slot < rounds_ahead; ++slot) ring.fetch(r0 + slot * hop, slot);
    next_stat = stat(r0);
    if (mine) {
        const Raw<T> weight = load_raw(io.w + i);
#pragma unroll
        for (int k = 0; k < step; ++k) scale[k] = static_cast<A>(io.spec.one_plus) + weight[k];
    }
    const A share = A(1) / static_cast<A>(n);
    int slot = 0;
    unsigned uses = 0;
    for (int turn = 0; r0 < io.rows; r0 += hop, turn ^= 1) {
        A mean[R], rstd[R], dot[R], sum[R];
#pragma unroll
        for (int q = 0; q < R; ++q) {
            mean[q] = __shfl_sync(0xffffffffu, next_stat, q);
            rstd[q] = __shfl_sync(0xffffffffu, next_stat, R + q);
        }
        next_stat = stat(r0 + hop);
        ring.wait(slot, uses);
        Raw<T> dy[R], x[R], dx[R];
#pragma unroll
        for (int q = 0; q < R; ++q) {
            dot[q] = sum[q] = 0;
            if (r0 + q >= io.rows || !mine) continue;
            dy[q] = ring.pack(slot, 0, q);
            x[q] = ring.pack(slot, 1, q);
            dx[q] = ring.pack(slot, 2, q);
#pragma unroll
            for (int k = 0; k < step; ++k) {
                A d = dy[q][k], xhat = (x[q][k] - mean[q]) * rstd[q], scaled = d * scale[k];
                dot[q] += scaled * xhat;
                sum[q] += scaled;
                sums[0][k] += d * xhat;
                sums[1][k] += d;
                sums[2][k] += dx[q][k];
            }
        }
        add_up<R>(dot, sum, places[turn], warps, [&] { ring.fetch(r0 + rounds_ahead * hop, slot); });
        if (++slot == rounds_ahead) {
            slot = 0;
            ++uses;
        }
#pragma unroll
        for (int q = 0; q < R; ++q) {
            if (r0 + q >= io.rows || !mine) continue;
            const A slope = dot[q] * share, shift = io.spec.rms ? A(0) : sum[q] * share;
            A out[step];
#pragma unroll
            for (int k = 0; k < step; ++k) {
                A xhat = (x[q][k] - mean[q]) * rstd[q];
                out[k] = dx[q][k] + rstd[q] * (dy[q][k] * scale[k] - shift - xhat * slope);
            }
            store_few(io.dx + (r0 + q) * n + i, narrow_few<T>(out));
        }
    }
    if (!mine) return;
#pragma unroll
    for (int which = 0; which < 3; ++which)
        if (A* to = io.partial[which])
#pragma unroll
            for (int k = 0; k < step; ++k) to[blockIdx.x * std::int64_t{n} + i + k] = sums[which][k];
}

/// Rows that a block works on at once: enough bytes on their way to keep the memory busy while sums are waited for.
template <class T, int step, int groups>
constexpr int rows_at_once = sizeof(T) <= 4 && step > 1 && groups == 2 ? 2 : 1;

/// `rows_at_once` neighbouring rows, then those a grid's width further on. A thread owns `groups` groups of `step`
/// columns, a block's width apart.
template <class T, class A, int step, int groups>
__global__ void __maxnreg__(128) norm_backward_rows(BackwardArgs<T, A> io) {
    constexpr int R = rows_at_once<T, step, groups>;
    using Held = decltype(load_held<step>(io.x));
    static_assert(step == 1 || step == Raw<T>::n);
    __shared__ A places[2][backward_threads / 32][2 * R];  // by turns, so that one barrier a round is enough
    const int first = static_cast<int>(threadIdx.x) * step, stride = static_cast<int>(blockDim.x) * step, n = io.n;
    const int warps = static_cast<int>(blockDim.x) / 32;
    A sums[3][groups][step] = {};
    Held weight[groups];
#pragma unroll
    for (int g = 0; g < groups; ++g)
        if (int i = first + g * stride; i < n) weight[g] = load_held<step>(io.w + i);
    const A one_plus = static_cast<A>(io.spec.one_plus), share = A(1) / static_cast<A>(n);
    int turn = 0;
    for (std::int64_t r0 = std::int64_t{blockIdx.x} * R; r0 < io.rows; r0 += std::int64_t{gridDim.x} * R, turn ^= 1) {
        Held dy[R][groups], x[R][groups], dx[R][groups];
        A mean[R], rstd[R], dot[R], sum[R];
#pragma unroll
        for (int q = 0; q < R; ++q) {
            const std::int64_t r = r0 + q < io.rows ? r0 + q : r0;  // a row too many is read and not used
#pragma unroll
            for (int g = 0; g < groups; ++g)
                if (int i = first + g * stride; i < n) {
                    dy[q][g] = load_held<step>(io.dy + r * n + i);
                    x[q][g] = load_held<step>(io.x + r * n + i);
                    dx[q][g] = load_held<step>(io.dx + r * n + i);
                }
            mean[q] = io.mean ? io.mean[r] : A(0);
            rstd[q] = io.rstd[r];
        }
#pragma unroll
        for (int q = 0; q < R; ++q) {
            dot[q] = sum[q] = 0;
            if (r0 + q >= io.rows) continue;
#pragma unroll
            for (int g = 0; g < groups; ++g)
                if (first + g * stride < n)
#pragma unroll
                    for (int k = 0; k < step; ++k) {
                        A d = dy[q][g][k], xhat = (x[q][g][k] - mean[q]) * rstd[q];
                        A scaled = d * (one_plus + weight[g][k]);
                        dot[q] += scaled * xhat;
                        sum[q] += scaled;
                        sums[0][g][k] += d * xhat;
                        sums[1][g][k] += d;
                        sums[2][g][k] += dx[q][g][k];
                    }
        }
        add_up<R>(dot, sum, places[turn], warps, [] {});
#pragma unroll
        for (int q = 0; q < R; ++q) {
            if (r0 + q >= io.rows) continue;
            const A slope = dot[q] * share, shift = io.spec.rms ? A(0) : sum[q] * share;
#pragma unroll
            for (int g = 0; g < groups; ++g) {
                int i = first + g * stride;
                if (i >= n) continue;
                A out[step];
#pragma unroll
                for (int k = 0; k < step; ++k) {
                    A d = dy[q][g][k], xhat = (x[q][g][k] - mean[q]) * rstd[q];
                    A change = rstd[q] * (d * (one_plus + weight[g][k]) - shift - xhat * slope);
                    out[k] = dx[q][g][k] + change;
                }
                store_few(io.dx + (r0 + q) * n + i, narrow_few<T>(out));
            }
        }
    }
#pragma unroll
    for (int which = 0; which < 3; ++which)
        if (A* to = io.partial[which])
#pragma unroll
            for (int g = 0; g < groups; ++g)
                if (int i = first + g * stride; i < n)
#pragma unroll
                    for (int k = 0; k < step; ++k) to[blockIdx.x * std::int64_t{n} + i + k] = sums[which][g][k];
}

/// As many blocks as run at once, if there are rows for them: a second wave would find most of the GPU idle.
template <class Kernel, class T, class A>
std::int64_t launch_resident(const Exec& exec, Kernel* kernel, const BackwardArgs<T, A>& args, std::int64_t threads,
                             std::size_t shared_bytes, std::int64_t rows_at_once) {
    const int whole_warps = static_cast<int>((threads + 31) / 32 * 32);
    if (shared_bytes > 0)
        TERA_CUDA(
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)));
    int per_multiprocessor = 0;
    TERA_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, kernel, whole_warps, shared_bytes));
    const std::int64_t blocks = std::min({(args.rows + rows_at_once - 1) / rows_at_once, backward_blocks(args.n),
                                          std::int64_t{per_multiprocessor} * exec.gpu->multiprocessors});
    kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(whole_warps), shared_bytes, exec.gpu->stream>>>(args);
    return blocks;
}

/// Returns how many blocks ran, each of which left its partial sums.
template <class T>
std::int64_t launch_backward(const Exec& exec, const BackwardArgs<device_t<T>, acc_t<T>>& args) {
    using D = device_t<T>;
    using A = acc_t<T>;
    constexpr int pack = Pack<D>::n;
    if (packs<D>(args.n) && args.n <= pack * backward_threads) {
        const std::int64_t threads = args.n / pack;
        const std::size_t bytes = RowRing<D, narrow_rows, rounds_ahead>::bytes(args.n);
        // Small blocks have registers to spare.
        return threads <= 192
                   ? launch_resident(exec, norm_backward_narrow<D, A, 96>, args, threads, bytes, narrow_rows)
                   : launch_resident(exec, norm_backward_narrow<D, A, 80>, args, threads, bytes, narrow_rows);
    }
    std::int64_t blocks = 0;
    auto launch = [&](auto step, auto groups) {
        constexpr int width = decltype(step)::value, count = decltype(groups)::value;
        const std::int64_t threads = ((args.n + width - 1) / width + count - 1) / count;
        blocks = launch_resident(exec, norm_backward_rows<D, A, width, count>, args, threads, 0,
                                 rows_at_once<D, width, count>);
    };
    std::int64_t rounds = (args.n + backward_threads - 1) / backward_threads;
    if (packs<D>(args.n) && with_least<2, 4, 16>((rounds + pack - 1) / pack, [&](auto groups) {
            launch(std::integral_constant<int, pack>{}, groups);
        }))
        return blocks;
    bool fits = with_least<2, 8, 32>(rounds, [&](auto groups) { launch(std::integral_constant<int, 1>{}, groups); });
    TERA_CHECK(fits, "norm over too wide a row: ", args.n);
    return blocks;
}

}  // namespace

void norm_backward(const Exec& exec, const NormSpec& spec, const NormGrads& grads, ConstTensor dy, ConstTensor x,
                   ConstTensor w, const NormStats& stats) {
    dispatch_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        ArenaScope scope(*exec.arena);
        std::int64_t n = x.cols();
        const Tensor outs[3] = {grads.dw, grads.db, grads.dx_sum};
        Tensor partial[3];
        for (int k = 0; k < 3; ++k)
            if (outs[k]) partial[k] = exec.tensor(dtype_of<A>, {backward_blocks(n), n});
        if (exec.counts() || x.rows() == 0) return;
        const std::int64_t blocks =
            launch_backward<T>(exec, {dptr<T>(grads.dx),
                                      dptr<T>(dy),
                                      dptr<T>(x),
                                      dptr<T>(w),
                                      optional<A>(stats.mean),
                                      stats.rstd.ptr<A>(),
                                      {optional<A>(partial[0]), optional<A>(partial[1]), optional<A>(partial[2])},
                                      x.rows(),
                                      static_cast<int>(n),
                                      spec_of(spec)});
        const auto sums = [&](int k) {
            return outs[k] ? ColumnSums{outs[k], partial[k].slice(0, blocks)} : ColumnSums{};
        };
        add_column_sums(exec, {sums(0), sums(1), sums(2)});
        TERA_LAUNCHED();
    });
}

}  // namespace tera::ops::cuda
