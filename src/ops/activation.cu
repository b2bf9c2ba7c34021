#include "ops/activation.h"
#include "ops/cuda_types.cuh"

namespace tera::ops::cuda {
namespace {

template <class A>
__device__ inline A sigmoid(A x) {
    return A(1) / (A(1) + exp_of(-x));
}

constexpr double gelu_c = 0.7978845608028654;

struct GeluTanh {
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
    __device__ static A value(A x) {
        return x * sigmoid(x);
    }
    template <class A>
    __device__ static A slope(A x) {
        A s = sigmoid(x);
        return s * (A(1) + x * (A(1) - s));
    }
};

/// Elements are handled in groups of `step` (a pack, or one) so that the same code serves odd sizes.
template <class F, class T, int step>
__global__ void plain(T* out, const T* h, std::int64_t groups) {
    std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
    if (i >= groups) return;
    if constexpr (step == 1) {
        out[i] = narrow<T>(F::value(widen(h[i])));
    } else {
        Pack<T> x = load_pack(h + i * step), y;
#pragma unroll
        for (int k = 0; k < step; ++k) y.v[k] = narrow<T>(F::value(widen(x.v[k])));
        store_pack(out + i * step, y);
    }
}

template <class F, class T, int step>
__global__ void plain_backward(T* dh, const T* da, const T* h, std::int64_t groups) {
    std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
    if (i >= groups) return;
    if constexpr (step == 1) {
        dh[i] = narrow<T>(widen(da[i]) * F::slope(widen(h[i])));
    } else {
        Pack<T> x = load_pack(h + i * step), d = load_pack(da + i * step), y;
#pragma unroll
        for (int k = 0; k < step; ++k) y.v[k] = narrow<T>(widen(d.v[k]) * F::slope(widen(x.v[k])));
        store_pack(dh + i * step, y);
    }
}

template <class F, class T, int step>
__global__ void gated(T* out, const T* h, std::int64_t groups, std::int64_t n) {
    std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
    if (i >= groups) return;
    std::int64_t row = i * step / n, col = i * step % n;
    const T *gate = h + row * 2 * n + col, *up = gate + n;
    if constexpr (step == 1) {
        out[i] = narrow<T>(F::value(widen(gate[0])) * widen(up[0]));
    } else {
        Pack<T> g = load_pack(gate), u = load_pack(up), y;
#pragma unroll
        for (int k = 0; k < step; ++k) y.v[k] = narrow<T>(F::value(widen(g.v[k])) * widen(u.v[k]));
        store_pack(out + i * step, y);
    }
}

template <class F, class T, int step>
__global__ void gated_backward(T* dh, const T* da, const T* h, std::int64_t groups, std::int64_t n) {
    std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
    if (i >= groups) return;
    std::int64_t row = i * step / n, col = i * step % n, at = row * 2 * n + col;
    if constexpr (step == 1) {
        auto g = widen(h[at]), u = widen(h[at + n]), d = widen(da[i]);
        dh[at] = narrow<T>(d * u * F::slope(g));
        dh[at + n] = narrow<T>(d * F::value(g));
    } else {
        Pack<T> g = load_pack(h + at), u = load_pack(h + at + n), d = load_pack(da + i * step), dg, du;
#pragma unroll
        for (int k = 0; k < step; ++k) {
            auto x = widen(g.v[k]), v = widen(d.v[k]);
            dg.v[k] = narrow<T>(v * widen(u.v[k]) * F::slope(x));
            du.v[k] = narrow<T>(v * F::value(x));
        }
        store_pack(dh + at, dg);
        store_pack(dh + at + n, du);
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

}  // namespace

void activation(const Exec& exec, ActivationKind kind, Tensor a, ConstTensor h) {
    dispatch_float(h.dtype, [&](auto zero) {
        using T = decltype(zero);
        with_step<T>(a.cols(), [&](auto step) {
            constexpr int width = decltype(step)::value;
            std::int64_t groups = a.numel() / width;
            unsigned blocks = blocks_for(groups, 256, INT32_MAX);
            with_kind(kind, [&](auto f, auto is_gated) {
                using F = decltype(f);
                if constexpr (decltype(is_gated)::value)
                    gated<F, device_t<T>, width>
                        <<<blocks, 256, 0, exec.gpu->stream>>>(dptr<T>(a), dptr<T>(h), groups, a.cols());
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
            std::int64_t groups = da.numel() / width;
            unsigned blocks = blocks_for(groups, 256, INT32_MAX);
            with_kind(kind, [&](auto f, auto is_gated) {
                using F = decltype(f);
                if constexpr (decltype(is_gated)::value)
                    gated_backward<F, device_t<T>, width>
                        <<<blocks, 256, 0, exec.gpu->stream>>>(dptr<T>(dh), dptr<T>(da), dptr<T>(h), groups, da.cols());
                else
                    plain_backward<F, device_t<T>, width>
                        <<<blocks, 256, 0, exec.gpu->stream>>>(dptr<T>(dh), dptr<T>(da), dptr<T>(h), groups);
            });
        });
    });
    TERA_LAUNCHED();
}

}  // namespace tera::ops::cuda
