#include "ops/cuda_types.cuh"
#include "ops/rope.h"

namespace tera::ops::cuda {
namespace {

template <class T, class A>
__global__ void rope_kernel(T* data, const A* cos, const A* sin, const std::int32_t* positions, std::int64_t pairs,
                            int half, int heads, int head_dim, std::int64_t width, bool interleaved, bool inverse) {
    std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
    if (i >= pairs) return;
    int k = static_cast<int>(i % half);
    std::int64_t rest = i / half, head = rest % heads, t = rest / heads;
    A c = cos[std::int64_t{positions[t]} * half + k], s = sin[std::int64_t{positions[t]} * half + k];
    if (inverse) s = -s;
    T* x = data + t * width + head * head_dim + (interleaved ? 2 * k : k);
    int step = interleaved ? 1 : half;
    A a = widen(x[0]), b = widen(x[step]);
    x[0] = narrow<T>(a * c - b * s);
    x[step] = narrow<T>(b * c + a * s);
}

}  // namespace

void rope(const Exec& exec, Tensor qkv, const RopeTable& table, const std::int32_t* positions, RopeHeads heads,
          bool inverse) {
    dispatch_float(qkv.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        int half = static_cast<int>(table.cos.cols());
        std::int64_t pairs = qkv.rows() * heads.rotated * half;
        rope_kernel<device_t<T>, A><<<blocks_for(pairs, 256, INT32_MAX), 256, 0, exec.gpu->stream>>>(
            dptr<T>(qkv), table.cos.ptr<A>(), table.sin.ptr<A>(), positions, pairs, half,
            static_cast<int>(heads.rotated), static_cast<int>(heads.head_dim), qkv.cols(), table.interleaved, inverse);
    });
    TERA_LAUNCHED();
}

}  // namespace tera::ops::cuda
