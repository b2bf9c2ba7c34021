#include <cmath>

#include "ops/activation_backends.h"
#include "ops/column_sum.h"
#include "ops/vec_math.h"

namespace tera::ops::cpu {

namespace {

constexpr double gelu_c = 0.7978845608028654;  // sqrt(2/π)

template <class A>
struct GeluTanh {
    static A value(A x) { return x * sigmoid(A(2 * gelu_c) * (x + A(0.044715) * x * x * x)); }
    static A slope(A x) {
        A s = sigmoid(A(2 * gelu_c) * (x + A(0.044715) * x * x * x));
        return s + x * s * (A(1) - s) * A(2 * gelu_c) * (A(1) + A(3 * 0.044715) * x * x);
    }
};

template <class A>
struct GeluErf {
    static A value(A x) { return A(0.5) * x * fast_erfc(x * A(-0.7071067811865476)); }
    static A slope(A x) {
        return A(0.5) * fast_erfc(x * A(-0.7071067811865476)) + x * A(0.3989422804014327) * fast_exp(A(-0.5) * x * x);
    }
};

template <class A>
struct SquaredRelu {
    static A value(A x) { return x > 0 ? x * x : A(0); }
    static A slope(A x) { return x > 0 ? 2 * x : A(0); }
};

template <class A>
struct Silu {
    static A value(A x) { return x * sigmoid(x); }
    static A slope(A x) {
        A s = sigmoid(x);
        return s * (A(1) + x * (A(1) - s));
    }
};

template <class T, template <class> class F>
void plain(const Exec& exec, Tensor out, ConstTensor h) {
    using A = acc_t<T>;
    const T* in = h.ptr<T>();
    T* o = out.ptr<T>();
    parallel_for(exec, h.numel(), 1 << 14, [&](std::int64_t b, std::int64_t e) {
#pragma omp simd
        for (std::int64_t i = b; i < e; ++i) o[i] = T(F<A>::value(A(in[i])));
    });
}

template <class T, template <class> class F>
void plain_backward(const Exec& exec, Tensor dh, ConstTensor da, ConstTensor h) {
    using A = acc_t<T>;
    const T *in = h.ptr<T>(), *d = da.ptr<T>();
    T* o = dh.ptr<T>();
    parallel_for(exec, h.numel(), 1 << 14, [&](std::int64_t b, std::int64_t e) {
#pragma omp simd
        for (std::int64_t i = b; i < e; ++i) o[i] = T(A(d[i]) * F<A>::slope(A(in[i])));
    });
}

template <class T, template <class> class F>
void gated(const Exec& exec, Tensor out, ConstTensor h) {
    using A = acc_t<T>;
    std::int64_t n = out.cols();
    parallel_for(exec, out.rows(), grain_rows(n, 1 << 14), [&](std::int64_t r0, std::int64_t r1) {
        for (std::int64_t r = r0; r < r1; ++r) {
            const T *gate = h.ptr<T>() + r * 2 * n, *up = gate + n;
            T* o = out.ptr<T>() + r * n;
#pragma omp simd
            for (std::int64_t i = 0; i < n; ++i) o[i] = T(F<A>::value(A(gate[i])) * A(up[i]));
        }
    });
}

template <class T, template <class> class F>
void gated_backward(const Exec& exec, Tensor dh, ConstTensor da, ConstTensor h) {
    using A = acc_t<T>;
    std::int64_t n = da.cols();
    parallel_for(exec, da.rows(), grain_rows(n, 1 << 14), [&](std::int64_t r0, std::int64_t r1) {
        for (std::int64_t r = r0; r < r1; ++r) {
            const T *gate = h.ptr<T>() + r * 2 * n, *up = gate + n, *d = da.ptr<T>() + r * n;
            T *dgate = dh.ptr<T>() + r * 2 * n, *dup = dgate + n;
#pragma omp simd
            for (std::int64_t i = 0; i < n; ++i) {
                A g = A(gate[i]), u = A(up[i]), v = A(d[i]);
                dgate[i] = T(v * u * F<A>::slope(g));
                dup[i] = T(v * F<A>::value(g));
            }
        }
    });
}

}  // namespace

void activation(const Exec& exec, ActivationKind kind, Tensor a, ConstTensor h) {
    dispatch_float(h.dtype, [&](auto zero) {
        using T = decltype(zero);
        switch (kind) {
            case ActivationKind::gelu_tanh:
                return plain<T, GeluTanh>(exec, a, h);
            case ActivationKind::gelu_erf:
                return plain<T, GeluErf>(exec, a, h);
            case ActivationKind::squared_relu:
                return plain<T, SquaredRelu>(exec, a, h);
            case ActivationKind::swiglu:
                return gated<T, Silu>(exec, a, h);
            case ActivationKind::geglu:
                return gated<T, GeluTanh>(exec, a, h);
        }
    });
}

void activation_backward(const Exec& exec, ActivationKind kind, const ActivationGrads& to, ConstTensor da,
                         ConstTensor h) {
    if (!exec.counts()) {
        dispatch_float(h.dtype, [&](auto zero) {
            using T = decltype(zero);
            switch (kind) {
                case ActivationKind::gelu_tanh:
                    return plain_backward<T, GeluTanh>(exec, to.dh, da, h);
                case ActivationKind::gelu_erf:
                    return plain_backward<T, GeluErf>(exec, to.dh, da, h);
                case ActivationKind::squared_relu:
                    return plain_backward<T, SquaredRelu>(exec, to.dh, da, h);
                case ActivationKind::swiglu:
                    return gated_backward<T, Silu>(exec, to.dh, da, h);
                case ActivationKind::geglu:
                    return gated_backward<T, GeluTanh>(exec, to.dh, da, h);
            }
        });
        if (to.rebuilt) activation(exec, kind, to.rebuilt, h);
    }
    if (to.db) column_sum(exec, to.db, to.dh);
}

}  // namespace tera::ops::cpu
