#include "soft_gpu/own/instructions.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "ops/cuda_types.cuh"
#include "soft_gpu/own/device_array.h"

namespace soft_gpu_own {
namespace {

constexpr unsigned full_warp = 0xffffffffu;
constexpr int block = 96;

__device__ int lane() { return static_cast<int>(threadIdx.x); }

/// D of each, for as many as there are.
template <class F, class D, class... A>
__global__ void for_each_of(F f, int n, D* out, const A*... in) {
    for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n;
         i += static_cast<int>(gridDim.x * blockDim.x))
        out[i] = f(in[i]...);
}
template <class D, class F, class... A>
std::vector<D> for_each(F f, const std::vector<A>&... in) {
    const std::size_t n = std::min({in.size()...});
    DeviceArray<D> out(n);
    [&](auto&&... at) {
        for_each_of<<<7, block>>>(f, static_cast<int>(n), out.data(), static_cast<const A*>(at.data())...);
    }(DeviceArray<A>(in)...);
    return out.values();
}

__device__ int high_of(int a, int b) { return __mulhi(a, b); }
__device__ unsigned high_of(unsigned a, unsigned b) { return __umulhi(a, b); }
__device__ std::int64_t high_of(std::int64_t a, std::int64_t b) { return __mul64hi(a, b); }
__device__ std::uint64_t high_of(std::uint64_t a, std::uint64_t b) { return __umul64hi(a, b); }

template <class T>
struct ComputeWholes {
    __device__ OfWholes<T> operator()(T a, T b) const {
        using U = std::make_unsigned_t<T>;
        OfWholes<T> out{};
        const U x = static_cast<U>(a), y = static_cast<U>(b);
        out.sum = static_cast<T>(x + y);
        out.difference = static_cast<T>(x - y);
        out.product = static_cast<T>(x * y);
        out.high = high_of(a, b);
        const bool overflows = std::is_signed_v<T> && a == std::numeric_limits<T>::min() && b == static_cast<T>(-1);
        if (b != 0 && !overflows) {
            out.quotient = a / b;
            out.remainder = a % b;
        }
        const unsigned n = static_cast<unsigned>(y & 255);
        out.left = static_cast<T>(x << n);
        out.right = a >> n;
        out.smaller = a < b ? a : b;
        out.larger = a > b ? a : b;
        out.both = a & b;
        out.either = a | b;
        out.one_of = a ^ b;
        out.negative = static_cast<T>(U{0} - x);
        out.less = a < b;
        out.same = a == b;
        return out;
    }
};

template <class T>
struct ComputeReals {
    __device__ OfReals<T> operator()(T a, T b, T c) const {
        OfReals<T> out{};
        out.sum = a + b;
        out.difference = a - b;
        out.product = a * b;
        out.quotient = a / b;
        if constexpr (std::is_same_v<T, float>) {
            out.fused = __fmaf_rn(a, b, c);
            out.smaller = fminf(a, b);
            out.larger = fmaxf(a, b);
            out.root = sqrtf(a);
            out.reciprocal = __frcp_rn(a);
            out.size = fabsf(a);
            out.signed_as = copysignf(a, b);
        } else {
            out.fused = __fma_rn(a, b, c);
            out.smaller = fmin(a, b);
            out.larger = fmax(a, b);
            out.root = sqrt(a);
            out.reciprocal = __drcp_rn(a);
            out.size = fabs(a);
            out.signed_as = copysign(a, b);
        }
        out.less = a < b;
        out.same = a == b;
        out.at_least = !(a < b);  // also of what is no number
        out.differs = a != b;
        return out;
    }
};

struct ComputeBits {
    __device__ OfBits operator()(std::uint32_t a) const {
        std::uint32_t to_the_top, permuted;
        asm("bfind.shiftamt.u32 %0, %1;" : "=r"(to_the_top) : "r"(a));
        asm("prmt.b32 %0, %1, %2, %1;" : "=r"(permuted) : "r"(a), "r"(~a));
        return {static_cast<std::uint32_t>(__popc(a)), __brev(a), permuted, to_the_top};
    }
};

template <class Two>
__device__ std::uint32_t word_of(Two two) {
    std::uint32_t word;
    memcpy(&word, &two, sizeof word);
    return word;
}

struct ComputeFloat {
    __device__ OfFloat operator()(float a) const {
        return {__float2int_rz(a),
                static_cast<double>(a),
                truncf(a),
                __bfloat16_as_ushort(__float2bfloat16_rn(a)),
                __half_as_ushort(__float2half_rn(a)),
                word_of(__floats2bfloat162_rn(a, 1.0f)),
                word_of(__floats2half2_rn(a, 1.0f))};
    }
};
struct ComputeDouble {
    __device__ OfDouble operator()(double a) const {
        return {static_cast<float>(a), __bfloat16_as_ushort(__double2bfloat16(a)), __half_as_ushort(__double2half(a))};
    }
};
struct ComputeHalf {
    __device__ OfHalf operator()(std::uint16_t a) const {
        return {__bfloat162float(__ushort_as_bfloat16(a)), __half2float(__ushort_as_half(a))};
    }
};
struct ComputeWhole {
    __device__ OfWhole operator()(std::int64_t a) const {
        const auto s32 = static_cast<std::int32_t>(a);
        const auto u32 = static_cast<std::uint32_t>(a);
        return {static_cast<float>(s32),
                static_cast<float>(u32),
                static_cast<float>(a),
                static_cast<double>(s32),
                static_cast<double>(u32),
                static_cast<double>(a),
                static_cast<std::int8_t>(a),
                static_cast<std::uint8_t>(a),
                static_cast<std::int16_t>(a),
                static_cast<std::uint16_t>(a),
                s32,
                u32};
    }
};
struct ComputeFunctions {
    __device__ Functions operator()(float a) const {
        return {tera::ops::cuda::exp2_of(a), tera::ops::cuda::reciprocal(a), logf(a), exp(static_cast<double>(a)),
                log(static_cast<double>(a))};
    }
};

// Warps.

/// One warp, or more, with lanes' values in and out.
template <class Kernel, class... More>
Lanes run_lanes(Kernel kernel, const Lanes& values, More... more) {
    DeviceArray<std::uint32_t> in(std::vector<std::uint32_t>(values.begin(), values.end())), out(32);
    kernel<<<1, 32>>>(in.data(), out.data(), more...);
    Lanes result;
    std::ranges::copy(out.values(), result.begin());
    return result;
}

__global__ void shuffle(const std::uint32_t* in, std::uint32_t* out, Shuffle how, int by, int width) {
    const std::uint32_t x = in[lane()];
    out[lane()] = how == Shuffle::by_xor ? __shfl_xor_sync(full_warp, x, by, width)
                  : how == Shuffle::up   ? __shfl_up_sync(full_warp, x, static_cast<unsigned>(by), width)
                  : how == Shuffle::down ? __shfl_down_sync(full_warp, x, static_cast<unsigned>(by), width)
                                         : __shfl_sync(full_warp, x, by, width);
}
__global__ void gather(const std::uint32_t* in, std::uint32_t* out, const std::uint32_t* from) {
    out[lane()] = __shfl_sync(full_warp, in[lane()], static_cast<int>(from[lane()]));
}
__global__ void match(const std::uint32_t* in, std::uint32_t* out) {
    out[lane()] = __match_any_sync(full_warp, in[lane()]);
}
__global__ void vote(const std::uint32_t* in, std::uint32_t* out) {
    out[lane()] = __any_sync(full_warp, in[lane()] > 100) ? 1 : 0;
}

/// Branches in a loop, and another loop in one of them.
__global__ void collatz(const std::uint32_t* in, std::uint32_t* out) {
    std::uint32_t x = in[lane()], steps = 0;
    while (x > 1) {
        if (x % 2 == 0) {
            do {
                x /= 2;
                ++steps;
            } while (x % 2 == 0);
        } else {
            x = 3 * x + 1;
            ++steps;
        }
        if (steps > 1000) break;
    }
    __syncwarp();
    out[lane()] = __shfl_sync(full_warp, steps, lane() + 1);
}

/// trips rise with the lane, so that those from some lane on are left.
__global__ void count_together(const std::uint32_t* in, std::uint32_t* out) {
    const std::uint32_t trips = in[lane()];
    std::uint32_t seen = 0;
    for (std::uint32_t i = 0; i < trips; ++i) {
        unsigned left = 0;
        for (int l = 0; l < 32; ++l) left |= (in[l] > i ? 1u : 0u) << l;
        seen += __shfl_sync(left, static_cast<unsigned>(lane()), 31);
    }
    out[lane()] = __shfl_xor_sync(full_warp, seen, 1);
}

__global__ void turn_local(const std::uint32_t* in, std::uint32_t* out, std::uint32_t rotation) {
    std::uint32_t own[32];
    for (std::uint32_t i = 0; i < 32; ++i) own[(i * 5 + rotation) % 32] = in[i];
    const std::uint32_t at = (static_cast<std::uint32_t>(lane()) + rotation) % 32;
    out[lane()] = own[at];
}

__global__ void follow_pointers(const std::uint32_t* in, std::uint32_t* out, std::uint32_t three) {
    __shared__ std::uint32_t shared[32];
    std::uint32_t own[4];
    const auto l = static_cast<std::uint32_t>(lane());
    shared[l] = in[l] + 1000;
    for (std::uint32_t i = 0; i < 4; ++i) own[(i + l) % 4] = in[l] + 2000 + i;
    __syncwarp();
    const std::uint32_t* of_any[3] = {in + l, shared + (31 - l), own + (l + 2) % 4};
    const std::uint32_t* volatile p = of_any[l % three];
    out[l] = *p;
}

/// By lanes with even values alone, in the order of lanes or any other.
__global__ void add_to_four(const std::uint32_t* in, float* sums) {
    const float x = static_cast<float>(in[lane()]);
    if (in[lane()] % 2 == 0)
        asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(sums), "f"(x), "f"(2 * x), "f"(3 * x),
                     "f"(4 * x)
                     : "memory");
}

__global__ void hear_of_any(const int* flags, int* out) {
    out[threadIdx.x] = __syncthreads_or(flags[threadIdx.x]);
    out[threadIdx.x] += 2 * __syncthreads_or(0);
}

}  // namespace

template <class T>
std::vector<OfWholes<T>> of_wholes(const std::vector<T>& a, const std::vector<T>& b) {
    return for_each<OfWholes<T>>(ComputeWholes<T>{}, a, b);
}
template std::vector<OfWholes<std::int32_t>> of_wholes(const std::vector<std::int32_t>&,
                                                       const std::vector<std::int32_t>&);
template std::vector<OfWholes<std::uint32_t>> of_wholes(const std::vector<std::uint32_t>&,
                                                        const std::vector<std::uint32_t>&);
template std::vector<OfWholes<std::int64_t>> of_wholes(const std::vector<std::int64_t>&,
                                                       const std::vector<std::int64_t>&);
template std::vector<OfWholes<std::uint64_t>> of_wholes(const std::vector<std::uint64_t>&,
                                                        const std::vector<std::uint64_t>&);

template <class T>
std::vector<OfReals<T>> of_reals(const std::vector<T>& a, const std::vector<T>& b, const std::vector<T>& c) {
    return for_each<OfReals<T>>(ComputeReals<T>{}, a, b, c);
}
template std::vector<OfReals<float>> of_reals(const std::vector<float>&, const std::vector<float>&,
                                              const std::vector<float>&);
template std::vector<OfReals<double>> of_reals(const std::vector<double>&, const std::vector<double>&,
                                               const std::vector<double>&);

std::vector<OfBits> of_bits(const std::vector<std::uint32_t>& a) { return for_each<OfBits>(ComputeBits{}, a); }
std::vector<OfFloat> of_float(const std::vector<float>& a) { return for_each<OfFloat>(ComputeFloat{}, a); }
std::vector<OfDouble> of_double(const std::vector<double>& a) { return for_each<OfDouble>(ComputeDouble{}, a); }
std::vector<OfHalf> of_half(const std::vector<std::uint16_t>& a) { return for_each<OfHalf>(ComputeHalf{}, a); }
std::vector<OfWhole> of_whole(const std::vector<std::int64_t>& a) { return for_each<OfWhole>(ComputeWhole{}, a); }
std::vector<Functions> functions(const std::vector<float>& a) { return for_each<Functions>(ComputeFunctions{}, a); }

Lanes shuffled(Shuffle how, const Lanes& values, int by, int width) {
    return run_lanes(shuffle, values, how, by, width);
}
Lanes gathered(const Lanes& values, const Lanes& from) {
    DeviceArray<std::uint32_t> at(std::vector<std::uint32_t>(from.begin(), from.end()));
    return run_lanes(gather, values, at.data());
}
Lanes matched(const Lanes& values) { return run_lanes(match, values); }
Lanes voted_over_100(const Lanes& values) { return run_lanes(vote, values); }
Lanes steps_of_collatz(const Lanes& begin) { return run_lanes(collatz, begin); }
Lanes counted_together(const Lanes& trips) { return run_lanes(count_together, trips); }
Lanes through_local(const Lanes& values, std::uint32_t rotation) { return run_lanes(turn_local, values, rotation); }
Lanes through_pointers(const Lanes& values) { return run_lanes(follow_pointers, values, 3u); }
std::array<float, 4> added_to_four(const Lanes& values) {
    DeviceArray<std::uint32_t> in(std::vector<std::uint32_t>(values.begin(), values.end()));
    DeviceArray<float> sums(std::vector<float>{1, 1, 1, 1});
    add_to_four<<<1, 32>>>(in.data(), sums.data());
    const std::vector<float> found = sums.values();
    return {found[0], found[1], found[2], found[3]};
}
std::vector<int> any_of_block(const std::vector<int>& flags) {
    DeviceArray<int> in(flags), out(flags.size());
    hear_of_any<<<1, static_cast<unsigned>(flags.size())>>>(in.data(), out.data());
    return out.values();
}

}  // namespace soft_gpu_own
