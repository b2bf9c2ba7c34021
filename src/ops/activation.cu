#include "ops/activation.h"
#include "ops/column_sum.h"
#include "ops/cuda_types.cuh"

namespace tera::ops::cuda {
namespace {

template <class A>
__device__ inline A sigmoid(A x) {
    return A(1) / (A(1) + exp_of(-x));
}

constexpr double gelu_c = 0.7978845608028654;

template <class A>
struct ValueAndSlope {
    A value, slope;
};

struct GeluTanh {
    template <class A>
    __device__ static ValueAndSlope<A> both(A x) {
        A s = sigmoid(A(2 * gelu_c) * (x + A(0.044715) * x * x * x));
        return {x * s, s + x * s * (A(1) - s) * A(2 * gelu_c) * (A(1) + A(3 * 0.044715) * x * x)};
    }
    template <class A>
    __device__ static A value(A x) {
        return x * sigmoid(A(2 * gelu_c) * (x + A(0.044715) * x * x * x));
    }
    template <class A>
    __device__ static A slope(A x) {
        A s = sigmoid(A(2 * gelu_c) * (x + A(0.044715) * x * x * x));
        return s + x * s * (A(1) - s) * A(2 * gelu_c) * (A(1) + A(3 * 0.044715) * x * x);
    }
};
struct GeluErf {
    template <class A>
    __device__ static ValueAndSlope<A> both(A x) {
        A half = A(0.5) * erfc(x * A(-0.7071067811865476));
        return {x * half, half + x * A(0.3989422804014327) * exp_of(A(-0.5) * x * x)};
    }
    template <class A>
    __device__ static A value(A x) {
        return A(0.5) * x * erfc(x * A(-0.7071067811865476));
    }
    template <class A>
    __device__ static A slope(A x) {
        return A(0.5) * erfc(x * A(-0.7071067811865476)) + x * A(0.3989422804014327) * exp_of(A(-0.5) * x * x);
    }
};
struct SquaredRelu {
    template <class A>
    __device__ static ValueAndSlope<A> both(A x) {
        return {value(x), slope(x)};
    }
    template <class A>
    __device__ static A value(A x) {
        return x > 0 ? x * x : A(0);
    }
    template <class A>
    __device__ static A slope(A x) {
        return x > 0 ? 2 * x : A(0);
    }
};
struct Silu {
    template <class A>
    __device__ static ValueAndSlope<A> both(A x) {
        A s = sigmoid(x);
        return {x * s, s * (A(1) + x * (A(1) - s))};
    }
    template <class A>
    __device__ static A value(A x) {
        return x * sigmoid(x);
    }
    template <class A>
    __device__ static A slope(A x) {
        A s = sigmoid(x);
        return s * (A(1) + x * (A(1) - s));
    }
};

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

template <class F, class T, int step>
__global__ void plain_backward(T* dh, const T* da, const T* h, unsigned groups) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= groups) return;
    auto x = load_few<step>(h + std::int64_t{i} * step), d = load_few<step>(da + std::int64_t{i} * step);
#pragma unroll
    for (int k = 0; k < step; ++k) d.v[k] = narrow<T>(widen(d.v[k]) * F::slope(widen(x.v[k])));
    store_few(dh + std::int64_t{i} * step, d);
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

template <class F, class T, int step>
__global__ void gated_backward(T* dh, const T* da, const T* h, unsigned groups, unsigned row) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= groups) return;
    std::int64_t at = (std::int64_t{i} + i / row * std::int64_t{row}) * step, width = std::int64_t{row} * step;
    auto g = load_few<step>(h + at), u = load_few<step>(h + at + width),
         d = load_few<step>(da + std::int64_t{i} * step);
#pragma unroll
    for (int k = 0; k < step; ++k) {
        auto x = widen(g.v[k]), v = widen(d.v[k]);
        g.v[k] = narrow<T>(v * widen(u.v[k]) * F::slope(x));
        u.v[k] = narrow<T>(v * F::value(x));
    }
    store_few(dh + at, g);
    store_few(dh + at + width, u);
}

/// Gradient by the gate and the other half; the output goes over da.
template <class F, bool gate, class T, int step, class A>
__device__ inline void backward_again_at(T* dh, T* da, const T* h, std::int64_t width,
                                         Few<A, (gate ? 2 : 1) * step>& sums) {
    auto g = load_few<step>(h), d = load_few<step>(da);
    if constexpr (gate) {
        auto u = load_few<step>(h + width);
#pragma unroll
        for (int k = 0; k < step; ++k) {
            A v = widen(d.v[k]), up = widen(u.v[k]);
            ValueAndSlope<A> f = F::both(A(widen(g.v[k])));
            A dg = v * up * f.slope, du = v * f.value;
            d.v[k] = narrow<T>(f.value * up);
            g.v[k] = narrow<T>(dg);
            u.v[k] = narrow<T>(du);
            sums.v[k] += widen(g.v[k]);
            sums.v[step + k] += widen(u.v[k]);
        }
        store_few(dh + width, u);
    } else {
#pragma unroll
        for (int k = 0; k < step; ++k) {
            ValueAndSlope<A> f = F::both(A(widen(g.v[k])));
            g.v[k] = narrow<T>(widen(d.v[k]) * f.slope);
            d.v[k] = narrow<T>(f.value);
            sums.v[k] += widen(g.v[k]);
        }
    }
    store_few(dh, g);
    store_few(da, d);
}

constexpr int lanes = 32, teams = 8, most_pieces = 128;

/// A block has one piece of rows of lanes·step columns; its teams take rows in turn. partial [pieces, columns of h]
/// receives the column sums of dh, if it is there.
template <class F, bool gate, class T, class A, int step>
__global__ void __launch_bounds__(lanes* teams)
    activation_backward_again_kernel(T* dh, T* da, const T* h, A* partial, std::int64_t rows, std::int64_t n,
                                     std::int64_t piece_rows) {
    constexpr int halves = gate ? 2 : 1;
    int lane = threadIdx.x % lanes, team = threadIdx.x / lanes;
    std::int64_t col = (blockIdx.x * std::int64_t{lanes} + lane) * step, begin = blockIdx.y * piece_rows;
    std::int64_t end = begin + piece_rows < rows ? begin + piece_rows : rows;
    Few<A, halves* step> sums = {};
    if (col < n) {
#pragma unroll 2
        for (std::int64_t r = begin + team; r < end; r += teams)
            backward_again_at<F, gate, T, step, A>(dh + r * halves * n + col, da + r * n + col,
                                                   h + r * halves * n + col, n, sums);
    }
    if (partial == nullptr) return;
    __shared__ A shared[teams][step][lanes];
#pragma unroll
    for (int half = 0; half < halves; ++half) {
        __syncthreads();
#pragma unroll
        for (int k = 0; k < step; ++k) shared[team][k][lane] = sums.v[half * step + k];
        __syncthreads();
        for (int i = threadIdx.x; i < lanes * step; i += lanes * teams) {
            std::int64_t c = blockIdx.x * std::int64_t{lanes * step} + i;
            if (c >= n) continue;
            A all = 0;
#pragma unroll
            for (int t = 0; t < teams; ++t) all += shared[t][i % step][i / step];
            partial[(blockIdx.y * std::int64_t{halves} + half) * n + c] = all;
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

void activation_backward(const Exec& exec, ActivationKind kind, Tensor dh, ConstTensor da, ConstTensor h) {
    dispatch_float(h.dtype, [&](auto zero) {
        using T = decltype(zero);
        with_step<T>(da.cols(), [&](auto step) {
            constexpr int width = decltype(step)::value;
            auto [groups, row, blocks] = launch_of(da, width);
            with_kind(kind, [&](auto f, auto is_gated_kind) {
                using F = decltype(f);
                if constexpr (decltype(is_gated_kind)::value)
                    gated_backward<F, device_t<T>, width>
                        <<<blocks, 256, 0, exec.gpu->stream>>>(dptr<T>(dh), dptr<T>(da), dptr<T>(h), groups, row);
                else
                    plain_backward<F, device_t<T>, width>
                        <<<blocks, 256, 0, exec.gpu->stream>>>(dptr<T>(dh), dptr<T>(da), dptr<T>(h), groups);
            });
        });
    });
    TERA_LAUNCHED();
}

void activation_backward_again(const Exec& exec, ActivationKind kind, Tensor dh, Tensor da_then_a, ConstTensor h,
                               Tensor db) {
    dispatch_float(h.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        ArenaScope scope(*exec.arena);
        const std::int64_t n = da_then_a.cols(), rows = h.rows();
        const std::int64_t piece_rows = std::max<std::int64_t>(32, (rows + most_pieces - 1) / most_pieces);
        const std::int64_t pieces = (rows + piece_rows - 1) / piece_rows;
        Tensor partial = db ? exec.tensor(dtype_of<A>, {pieces, h.cols()}) : Tensor{};
        if (exec.counts() || rows == 0) return;
        with_step<T>(n, [&](auto step) {
            constexpr int width = decltype(step)::value;
            const dim3 grid(blocks_for(n, lanes * width), static_cast<unsigned>(pieces));
            with_kind(kind, [&](auto f, auto is_gated_kind) {
                activation_backward_again_kernel<decltype(f), decltype(is_gated_kind)::value, device_t<T>, A, width>
                    <<<grid, lanes * teams, 0, exec.gpu->stream>>>(dptr<T>(dh), dptr<T>(da_then_a), dptr<T>(h),
                                                                   db ? partial.ptr<A>() : nullptr, rows, n,
                                                                   piece_rows);
            });
        });
        TERA_LAUNCHED();
        if (db) add_column_sums(exec, db, partial);
    });
}

}  // namespace tera::ops::cuda
