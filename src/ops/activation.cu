#include "ops/activation_backends.h"
#include "ops/activation_functions.cuh"
#include "ops/column_sum.h"

namespace tera::ops::cuda {
namespace {

/// Elements are handled in groups of `step` (a pack, or one), so that the same code serves odd sizes.
template <class F, class T, int step>
__global__ void plain(T* out, const T* h, unsigned groups) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= groups) return;
    auto x = load_few<step>(h + std::int64_t{i} * step);
#pragma unroll
    for (int k = 0; k < step; ++k) x.v[k] = narrow<T>(F::value(widen(x.v[k])));
    store_few(out + std::int64_t{i} * step, x);
}

/// A row of h is [gate, up], each of `row` groups.
template <class F, class T, int step>
__global__ void gated(T* out, const T* h, unsigned groups, unsigned row) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= groups) return;
    std::int64_t at = (std::int64_t{i} + i / row * std::int64_t{row}) * step, width = std::int64_t{row} * step;
    auto g = load_few<step>(h + at), u = load_few<step>(h + at + width);
#pragma unroll
    for (int k = 0; k < step; ++k) u.v[k] = narrow<T>(F::value(widen(g.v[k])) * widen(u.v[k]));
    store_few(out + std::int64_t{i} * step, u);
}

/// What activation_backward reads of one row, as it comes from memory.
template <bool gate, class T, int step>
struct RowInputs {
    using Held = decltype(load_held<step>(static_cast<const T*>(nullptr)));
    Held g, u, d;  ///< u only with a gate
    __device__ void load(const T* h, const T* da, std::int64_t width) {
        g = load_held<step>(h);
        d = load_held<step>(da);
        if constexpr (gate) u = load_held<step>(h + width);
    }
};

template <class T, class A>
struct BackwardArgs {
    T *dh, *rebuilt;  ///< rebuilt [rows,n]: receives the output, over da; null: not wanted
    const T *da, *h;
    A* partial;  ///< [pieces, columns of h]: column sums of dh; null: not wanted
    std::int64_t rows, n, piece_rows;
};

/// Gradient by the gate and the other half.
template <class F, bool gate, class T, int step, class A>
__device__ inline void backward_at(T* dh, T* rebuilt, std::int64_t width, const RowInputs<gate, T, step>& in,
                                   A (&sums)[(gate ? 2 : 1) * step]) {
    A dg[step], du[step], a[step];
#pragma unroll
    for (int k = 0; k < step; ++k) {
        const A d = in.d[k];
        const ValueAndSlope<A> f = F::both(A(in.g[k]));
        if constexpr (gate) {
            const A up = in.u[k];
            a[k] = f.value * up;
            dg[k] = d * up * f.slope;
            du[k] = d * f.value;
            sums[k] += dg[k];
            sums[step + k] += du[k];
        } else {
            a[k] = f.value;
            dg[k] = d * f.slope;
            sums[k] += dg[k];
        }
    }
    store_few(dh, narrow_few<T>(dg));
    if constexpr (gate) store_few(dh + width, narrow_few<T>(du));
    if (rebuilt != nullptr) store_few(rebuilt, narrow_few<T>(a));
}

constexpr int lanes = 32, teams = 8, most_pieces = 128;

/// A block has one piece of rows of lanes·step columns; its teams take rows in turn, `ahead` of them asked for before
/// the first is used.
template <class F, bool gate, class T, class A, int step>
__global__ void __launch_bounds__(lanes* teams, 3) activation_backward_kernel(BackwardArgs<T, A> io) {
    constexpr int halves = gate ? 2 : 1, ahead = gate ? 2 : 4;
    int lane = threadIdx.x % lanes, team = threadIdx.x / lanes;
    const std::int64_t n = io.n, col = (blockIdx.x * std::int64_t{lanes} + lane) * step;
    const std::int64_t begin = blockIdx.y * io.piece_rows;
    const std::int64_t end = begin + io.piece_rows < io.rows ? begin + io.piece_rows : io.rows;
    A sums[halves * step] = {};
    if (col < n) {
        for (std::int64_t r0 = begin + team; r0 < end; r0 += ahead * teams) {
            RowInputs<gate, T, step> in[ahead];
#pragma unroll
            for (int q = 0; q < ahead; ++q)
                if (std::int64_t r = r0 + q * teams; r < end)
                    in[q].load(io.h + r * halves * n + col, io.da + r * n + col, n);
#pragma unroll
            for (int q = 0; q < ahead; ++q)
                if (std::int64_t r = r0 + q * teams; r < end)
                    backward_at<F>(io.dh + r * halves * n + col, io.rebuilt ? io.rebuilt + r * n + col : nullptr, n,
                                   in[q], sums);
        }
    }
    if (io.partial == nullptr) return;
    __shared__ A shared[teams][step][lanes];
#pragma unroll
    for (int half = 0; half < halves; ++half) {
        __syncthreads();
#pragma unroll
        for (int k = 0; k < step; ++k) shared[team][k][lane] = sums[half * step + k];
        __syncthreads();
        for (int i = threadIdx.x; i < lanes * step; i += lanes * teams) {
            std::int64_t c = blockIdx.x * std::int64_t{lanes * step} + i;
            if (c >= n) continue;
            A all = 0;
#pragma unroll
            for (int t = 0; t < teams; ++t) all += shared[t][i % step][i / step];
            io.partial[(blockIdx.y * std::int64_t{halves} + half) * n + c] = all;
        }
    }
}

template <class F>
void with_kind(ActivationKind kind, const F& f) {
    switch (kind) {
        case ActivationKind::gelu_tanh:
            return f(GeluTanh{}, std::false_type{});
        case ActivationKind::gelu_erf:
            return f(GeluErf{}, std::false_type{});
        case ActivationKind::squared_relu:
            return f(SquaredRelu{}, std::false_type{});
        case ActivationKind::swiglu:
            return f(Silu{}, std::true_type{});
        case ActivationKind::geglu:
            return f(GeluTanh{}, std::true_type{});
    }
}

/// Calls f with the width of a step: a pack where the rows allow it.
template <class T, class F>
void with_step(std::int64_t cols, const F& f) {
    if (packs<device_t<T>>(cols))
        f(std::integral_constant<int, Pack<device_t<T>>::n>{});
    else
        f(std::integral_constant<int, 1>{});
}

struct Launch {
    unsigned groups, row, blocks;
};
Launch launch_of(const ConstTensor& a, int width) {
    std::int64_t groups = a.numel() / width;
    TERA_CHECK(groups <= INT32_MAX, "activation of ", a.shape);
    return {static_cast<unsigned>(groups), static_cast<unsigned>(a.cols() / width), blocks_for(groups, 256, INT32_MAX)};
}

}  // namespace

void activation(const Exec& exec, ActivationKind kind, Tensor a, ConstTensor h) {
    dispatch_float(h.dtype, [&](auto zero) {
        using T = decltype(zero);
        with_step<T>(a.cols(), [&](auto step) {
            constexpr int width = decltype(step)::value;
            auto [groups, row, blocks] = launch_of(a, width);
            with_kind(kind, [&](auto f, auto is_gated_kind) {
                using F = decltype(f);
                if constexpr (decltype(is_gated_kind)::value)
                    gated<F, device_t<T>, width>
                        <<<blocks, 256, 0, exec.gpu->stream>>>(dptr<T>(a), dptr<T>(h), groups, row);
                else
                    plain<F, device_t<T>, width><<<blocks, 256, 0, exec.gpu->stream>>>(dptr<T>(a), dptr<T>(h), groups);
            });
        });
    });
    TERA_LAUNCHED();
}

void activation_backward(const Exec& exec, ActivationKind kind, const ActivationGrads& to, ConstTensor da,
                         ConstTensor h) {
    dispatch_float(h.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        ArenaScope scope(*exec.arena);
        const std::int64_t n = da.cols(), rows = h.rows();
        const std::int64_t piece_rows = std::max<std::int64_t>(32, (rows + most_pieces - 1) / most_pieces);
        const std::int64_t pieces = (rows + piece_rows - 1) / piece_rows;
        Tensor partial = to.db ? exec.tensor(dtype_of<A>, {pieces, h.cols()}) : Tensor{};
        if (exec.counts() || rows == 0) return;
        with_step<T>(n, [&](auto step) {
            constexpr int width = decltype(step)::value;
            const dim3 grid(blocks_for(n, lanes * width), static_cast<unsigned>(pieces));
            const BackwardArgs<device_t<T>, A> args{dptr<T>(to.dh),
                                                    to.rebuilt ? dptr<T>(to.rebuilt) : nullptr,
                                                    dptr<T>(da),
                                                    dptr<T>(h),
                                                    to.db ? partial.ptr<A>() : nullptr,
                                                    rows,
                                                    n,
                                                    piece_rows};
            with_kind(kind, [&](auto f, auto is_gated_kind) {
                activation_backward_kernel<decltype(f), decltype(is_gated_kind)::value, device_t<T>, A, width>
                    <<<grid, lanes * teams, 0, exec.gpu->stream>>>(args);
            });
        });
        TERA_LAUNCHED();
        if (to.db) add_column_sums(exec, {{to.db, partial}});
    });
}

}  // namespace tera::ops::cuda
