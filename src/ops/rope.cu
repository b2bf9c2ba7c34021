#include "ops/cuda_types.cuh"
#include "ops/rope.h"

namespace tera::ops::cuda {
namespace {

template <class T, class A>
struct RopeArgs {
    T* data;
    const A *cos, *sin;
    const std::int32_t* positions;
    unsigned items;  ///< groups of pairs over all tokens and heads
    unsigned groups, heads;
    int half, head_dim;
    std::int64_t width;
    bool inverse;
};

/// A thread turns `step` neighbouring pairs of one head.
template <class T, class A, int step, bool interleaved>
__global__ void rope_kernel(RopeArgs<T, A> io) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= io.items) return;
    int k = static_cast<int>(i % io.groups) * step;
    unsigned rest = i / io.groups, head = rest % io.heads, t = rest / io.heads;
    std::int64_t angle = std::int64_t{io.positions[t]} * io.half + k;
    auto cos = load_few<step>(io.cos + angle), sin = load_few<step>(io.sin + angle);
    T* x = io.data + t * io.width + std::int64_t{head} * io.head_dim;
    auto turn = [&](T& first, T& second, int j) {
        A a = widen(first), b = widen(second), s = io.inverse ? -sin.v[j] : sin.v[j];
        first = narrow<T>(a * cos.v[j] - b * s);
        second = narrow<T>(b * cos.v[j] + a * s);
    };
    if constexpr (interleaved && step == 1) {  // a head of odd width leaves its pairs anywhere
        T first = x[2 * k], second = x[2 * k + 1];
        turn(first, second, 0);
        x[2 * k] = first;
        x[2 * k + 1] = second;
    } else if constexpr (interleaved) {
        auto pairs = load_few<2 * step>(x + 2 * k);
#pragma unroll
        for (int j = 0; j < step; ++j) turn(pairs.v[2 * j], pairs.v[2 * j + 1], j);
        store_few(x + 2 * k, pairs);
    } else {
        auto first = load_few<step>(x + k), second = load_few<step>(x + io.half + k);
#pragma unroll
        for (int j = 0; j < step; ++j) turn(first.v[j], second.v[j], j);
        store_few(x + k, first);
        store_few(x + io.half + k, second);
    }
}

}  // namespace

void rope(const Exec& exec, Tensor qkv, const RopeTable& table, const std::int32_t* positions, RopeHeads heads,
          bool inverse) {
    dispatch_float(qkv.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        using D = device_t<T>;
        std::int64_t half = table.cos.cols();
        auto launch = [&](auto width, auto interleaved) {
            constexpr int step = decltype(width)::value;
            std::int64_t items = qkv.rows() * heads.rotated * (half / step);
            TERA_CHECK(items <= INT32_MAX, "rotation of ", qkv.shape);
            RopeArgs<D, A> args{dptr<T>(qkv),
                                table.cos.ptr<A>(),
                                table.sin.ptr<A>(),
                                positions,
                                static_cast<unsigned>(items),
                                static_cast<unsigned>(half / step),
                                static_cast<unsigned>(heads.rotated),
                                static_cast<int>(half),
                                static_cast<int>(heads.head_dim),
                                qkv.cols(),
                                inverse};
            rope_kernel<D, A, step, decltype(interleaved)::value>
                <<<blocks_for(items, 256, INT32_MAX), 256, 0, exec.gpu->stream>>>(args);
        };
        constexpr int pack = Pack<D>::n;
        bool whole = half % pack == 0 && heads.head_dim % pack == 0 && qkv.cols() % pack == 0;
        auto choose = [&](auto interleaved) {
            if (whole)
                launch(std::integral_constant<int, pack>{}, interleaved);
            else
                launch(std::integral_constant<int, 1>{}, interleaved);
        };
        table.interleaved ? choose(std::true_type{}) : choose(std::false_type{});
    });
    TERA_LAUNCHED();
}

}  // namespace tera::ops::cuda
