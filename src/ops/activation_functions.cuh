// The activations themselves: values and slopes of one number.
#pragma once

#include "ops/cuda_types.cuh"

namespace tera::ops::cuda {

template <class A>
__device__ inline A sigmoid(A x) {
    return reciprocal(A(1) + exp_of(-x));
}

constexpr double gelu_c = 0.7978845608028654;

template <class A>
struct ValueAndSlope {
    A value, slope;
};

struct GeluTanh {
    template <class A>
    __device__ static ValueAndSlope<A> both(A x) {
        const A xx = x * x, s = sigmoid_of_inner(x, xx), value = x * s;
        return {value, s + (value - value * s) * (A(2 * gelu_c) + A(6 * gelu_c * 0.044715) * xx)};
    }
    template <class A>
    __device__ static A value(A x) {
        return x * sigmoid_of_inner(x, x * x);
    }

  private:
    /// σ(2u) = 1 / (1 + 2^(-2u log2 e)).
    template <class A>
    __device__ static A sigmoid_of_inner(A x, A xx) {
        constexpr double c = -2 * gelu_c * 1.4426950408889634;
        return reciprocal(A(1) + exp2_of(x * (A(c) + A(c * 0.044715) * xx)));
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
};
struct SquaredRelu {
    template <class A>
    __device__ static ValueAndSlope<A> both(A x) {
        return {value(x), x > 0 ? 2 * x : A(0)};
    }
    template <class A>
    __device__ static A value(A x) {
        return x > 0 ? x * x : A(0);
    }
};
struct Silu {
    template <class A>
    __device__ static ValueAndSlope<A> both(A x) {
        const A s = sigmoid(x), value = x * s;
        return {value, s + (value - value * s)};
    }
    template <class A>
    __device__ static A value(A x) {
        return x * sigmoid(x);
    }
};

}  // namespace tera::ops::cuda
