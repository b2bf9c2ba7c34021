// What every kernel file shares: element types on the device, sixteen-byte vectors, block reductions, launch sizes.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "core/cuda/check.h"
#include "core/cuda/gpu.h"
#include "core/exec.h"

namespace tera::ops::cuda {

template <class T>
struct device_type {
    using type = T;
};
template <>
struct device_type<bf16_t> {
    using type = __nv_bfloat16;
};
template <>
struct device_type<f16_t> {
    using type = __half;
};
template <class T>
using device_t = typename device_type<T>::type;

template <class T>
struct device_acc {
    using type = float;
};
template <>
struct device_acc<double> {
    using type = double;
};
template <class T>
using dacc_t = typename device_acc<T>::type;

template <class T>
device_t<T>* dptr(const Tensor& t) {
    return reinterpret_cast<device_t<T>*>(t.ptr<T>());
}
template <class T>
const device_t<T>* dptr(const ConstTensor& t) {
    return reinterpret_cast<const device_t<T>*>(t.ptr<T>());
}

__device__ inline float widen(float x) { return x; }
__device__ inline double widen(double x) { return x; }
__device__ inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline float widen(__half x) { return __half2float(x); }

template <class T, class A>
__device__ inline T narrow(A x);
template <>
__device__ inline float narrow<float, float>(float x) {
    return x;
}
template <>
__device__ inline float narrow<float, double>(double x) {
    return static_cast<float>(x);
}
template <>
__device__ inline double narrow<double, double>(double x) {
    return x;
}
template <>
__device__ inline double narrow<double, float>(float x) {
    return x;
}
template <>
__device__ inline __nv_bfloat16 narrow<__nv_bfloat16, float>(float x) {
    return __float2bfloat16_rn(x);
}
template <>
__device__ inline __half narrow<__half, float>(float x) {
    return __float2half_rn(x);
}
template <>
__device__ inline __nv_bfloat16 narrow<__nv_bfloat16, double>(double x) {
    return __double2bfloat16(x);
}
template <>
__device__ inline __half narrow<__half, double>(double x) {
    return __double2half(x);
}

/// Sixteen bytes of T.
template <class T>
struct alignas(16) Pack {
    static constexpr int n = 16 / sizeof(T);
    T v[n];
};
template <class T>
__device__ inline Pack<T> load_pack(const T* p) {
    return *reinterpret_cast<const Pack<T>*>(p);
}
template <class T>
__device__ inline void store_pack(T* p, const Pack<T>& x) {
    *reinterpret_cast<Pack<T>*>(p) = x;
}
/// Neighbouring elements, moved in one access where they fill up to sixteen bytes, else in several.
template <class T, int n>
struct alignas(sizeof(T) * n < 16 ? sizeof(T) * n : 16) Few {
    T v[n];
};
template <int n, class T>
__device__ inline Few<T, n> load_few(const T* p) {
    return *reinterpret_cast<const Few<T, n>*>(p);
}
/// Sixteen bytes go out in one access: left to itself the compiler takes some structs apart.
template <int n, class T>
__device__ inline void store_few(T* p, const Few<T, n>& x) {
    if constexpr (sizeof x == sizeof(uint4)) {
        uint4 word;
        memcpy(&word, &x, sizeof word);
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(word.x), "r"(word.y), "r"(word.z),
                     "r"(word.w)
                     : "memory");
    } else {
        *reinterpret_cast<Few<T, n>*>(p) = x;
    }
}
/// Rounds neighbouring elements; those of sixteen bits two at a time, in one instruction.
template <class T, int n, class A>
__device__ inline Few<T, n> narrow_few(const A (&x)[n]) {
    Few<T, n> out;
    constexpr bool pairs = sizeof(T) == 2 && std::is_same_v<A, float> && n % 2 == 0;
#pragma unroll
    for (int k = 0; k < n; k += pairs ? 2 : 1) {
        if constexpr (pairs && std::is_same_v<T, __nv_bfloat16>) {
            const __nv_bfloat162 two = __floats2bfloat162_rn(x[k], x[k + 1]);
            memcpy(&out.v[k], &two, sizeof two);
        } else if constexpr (pairs) {
            const __half2 two = __floats2half2_rn(x[k], x[k + 1]);
            memcpy(&out.v[k], &two, sizeof two);
        } else {
            out.v[k] = narrow<T>(x[k]);
        }
    }
    return out;
}
/// Sixteen bytes as they come from memory: four registers whatever T is, while a Pack of a sixteen-bit type takes eight
/// once its elements are looked at. Elements are widened each time they are used.
template <class T>
struct alignas(16) Raw {
    static constexpr int n = 16 / sizeof(T);
    unsigned w[4];
    __device__ dacc_t<T> operator[](int k) const {
        if constexpr (std::is_same_v<T, __nv_bfloat16>)
            return __uint_as_float(k % 2 ? w[k / 2] & 0xffff0000u : w[k / 2] << 16);
        else if constexpr (std::is_same_v<T, __half>)
            return __half2float(__ushort_as_half(static_cast<unsigned short>(k % 2 ? w[k / 2] >> 16 : w[k / 2])));
        else if constexpr (std::is_same_v<T, float>)
            return __uint_as_float(w[k]);
        else
            return __hiloint2double(static_cast<int>(w[2 * k + 1]), static_cast<int>(w[2 * k]));
    }
};
template <class T>
__device__ inline Raw<T> load_raw(const T* p) {
    return *reinterpret_cast<const Raw<T>*>(p);
}

/// One element in the clothes of a Raw.
template <class T>
struct Single {
    static constexpr int n = 1;
    T v;
    __device__ dacc_t<T> operator[](int) const { return widen(v); }
};
template <int step, class T>
__device__ inline auto load_held(const T* p) {
    if constexpr (step == 1)
        return Single<T>{*p};
    else
        return load_raw(p);
}

/// Rows of this many elements can be read by packs (all our tensors begin on 64 bytes).
template <class T>
bool packs(std::int64_t cols) {
    return cols % Pack<T>::n == 0;
}

/// By the hardware's own exponential in f32: two units in the last place; below 2^-126 it is 0.
__device__ inline float exp2_of(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline double exp2_of(double x) { return exp2(x); }
__device__ inline float exp_of(float x) { return exp2_of(x * 1.4426950408889634f); }
__device__ inline double exp_of(double x) { return exp(x); }
/// 1/x for x >= 2^-126, infinity included: one unit in the last place in f32.
__device__ inline float reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline double reciprocal(double x) { return 1 / x; }

/// Sum over the warp, on every lane.
template <class A>
__device__ inline A warp_sum(A v) {
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}

struct Sum {
    template <class A>
    __device__ A operator()(A a, A b) const {
        return a + b;
    }
};
struct Max {
    template <class A>
    __device__ A operator()(A a, A b) const {
        return a > b ? a : b;
    }
};

/// Reduction over the block, the result on every thread; threads a multiple of 32, at most 1024.
template <class Op, class A>
__device__ inline A block_reduce(A x, Op op) {
    __shared__ A shared[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) x = op(x, __shfl_xor_sync(0xffffffffu, x, d));
    __syncthreads();
    if (lane == 0) shared[warp] = x;
    __syncthreads();
    x = shared[lane < warps ? lane : 0];
    if (lane >= warps) x = shared[0];
    // Lanes beyond the last warp repeat element 0: harmless for a maximum, masked out of a sum below.
    if constexpr (std::is_same_v<Op, Sum>) x = lane < warps ? x : A(0);
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) x = op(x, __shfl_xor_sync(0xffffffffu, x, d));
    return x;
}

inline unsigned blocks_for(std::int64_t n, std::int64_t per_block, std::int64_t most = 1 << 20) {
    return static_cast<unsigned>(std::min(most, std::max<std::int64_t>(1, (n + per_block - 1) / per_block)));
}

}  // namespace tera::ops::cuda
