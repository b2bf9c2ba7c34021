// What the norm kernels forward and backward share.
#pragma once

#include "ops/cuda_types.cuh"
#include "ops/norm_backends.h"

namespace tera::ops::cuda {

struct Spec {
    bool rms;
    float one_plus;
    double eps;
};
inline Spec spec_of(const NormSpec& s) { return {s.rms, s.one_plus ? 1.0f : 0.0f, s.eps}; }

template <class A>
A* optional(const Tensor& t) {
    return t ? t.ptr<A>() : nullptr;
}
template <class T>
const device_t<T>* optional_in(const ConstTensor& t) {
    return t ? dptr<T>(t) : nullptr;
}

/// Calls f with the smallest of the given sizes, in rising order, that covers `need`; false if none does.
template <int... sizes, class F>
bool with_least(std::int64_t need, const F& f) {
    bool done = false;
    auto attempt = [&](auto size) {
        if (done || need > decltype(size)::value) return;
        f(size);
        done = true;
    };
    (attempt(std::integral_constant<int, sizes>{}), ...);
    return done;
}

}  // namespace tera::ops::cuda
