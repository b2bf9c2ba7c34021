// Attention on matrix units, after FlashAttention-2: a block has 64 queries of a head and walks over the keys that they
// see, a tile at a time, the next on its way while one is worked on.
#include "ops/attention_mma.h"

#include "ops/attention_mma.cuh"

namespace tera::ops::cuda {
namespace {

template <class T, int D>
__global__ void __launch_bounds__(mma_threads)
    attention_forward_mma(Rows<T> o, float* lse, Rows<const T> q, Rows<const T> k, Rows<const T> v, Problem p) {
    constexpr int N = key_rows<D> / 8;
    using Queries = Tile<T, block_rows, D>;
    extern __shared__ __align__(16) unsigned char memory[];
    T* const shared = reinterpret_cast<T*>(memory);
    const Heads& n = p.n;
    const QueryBlock block(n);
    const Queries queries{shared};
    float out[D / 8][4] = {}, top[2] = {-3.0e38f, -3.0e38f}, sum[2] = {};
    const float unit = p.scale * log2_of_e;
    const Draws<false> draws(p, block.b);
    const std::uint64_t first_call = block.first_call();
    const auto meet = [&](const auto& keys, const auto& values, int k0) {
        float s[N][4] = {};
        multiply_transposed<T>(s, queries, block.warp_row, keys);
        float most[2] = {-INFINITY, -INFINITY};
#pragma unroll
        for (int i = 0; i < N; ++i)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                s[i][e] = block.sees(e, k0 + lane_column(i, e)) ? s[i][e] * unit : -INFINITY;
                most[e / 2] = fmaxf(most[e / 2], s[i][e]);
            }
        float shrink[2];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const float higher = fmaxf(top[r], over_row(most[r], Max{}));
            shrink[r] = exp2_of(top[r] - higher);
            top[r] = higher;
            sum[r] *= shrink[r];
        }
#pragma unroll
        for (int i = 0; i < N; ++i)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                s[i][e] = exp2_of(s[i][e] - top[e / 2]);
                sum[e / 2] += s[i][e];
            }
#pragma unroll
        for (int i = 0; i < D / 8; ++i)
#pragma unroll
            for (int e = 0; e < 4; ++e) out[i][e] *= shrink[e / 2];
        if (n.drops()) drop(s, draws, first_call, block.h, block.row, k0);
        multiply<T>(out, s, values);
    };
    const auto begin = [&] { block.load(queries, q); };
    block.over_keys<T, D>(shared + Queries::elements, k, v, begin, meet);
    float inverse[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        sum[r] = over_row(sum[r], Sum{});
        inverse[r] = sum[r] > 0 ? p.factor / sum[r] : 0;  // else there was no key to see
        if (threadIdx.x % 4 == 0 && block.there(r))
            lse[block.number(r)] = sum[r] > 0 ? ln2 * (top[r] + log2f(sum[r])) : -INFINITY;
    }
    store_head<T, D>(o, n, block.b, block.h, block.row, n.Sq, out, inverse[0], inverse[1]);
}

}  // namespace

bool mma_attention(const Exec& exec, const AttentionSpec& s, const AttentionOut& out, HeadRows<ConstTensor> q,
                   HeadRows<ConstTensor> k, HeadRows<ConstTensor> v) {
    if (!mma_applies(s, q.data.dtype) || !reachable(q) || !reachable(k) || !reachable(v)) return false;
    dispatch_half(q.data.dtype, s.K, [&](auto zero, auto width) {
        using T = decltype(zero);
        constexpr int D = decltype(width)::value;
        launch<device_t<T>, D>(exec, attention_forward_mma<device_t<T>, D>,
                               dim3(tiles_of(s.Sq), static_cast<unsigned>(s.B * s.H)), mma_threads,
                               block_rows + 4 * key_rows<D>, rows<T>(HeadRows<Tensor>{out.o, 0}), out.lse.ptr<float>(),
                               rows<T>(q), rows<T>(k), rows<T>(v), problem_of(s));
    });
    return true;
}

}  // namespace tera::ops::cuda
