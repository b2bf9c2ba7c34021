// Attention on matrix units, after FlashAttention-2: a block has 64 queries of a head and walks over the keys that they
// see, a tile at a time, the next on its way while one is worked on.
#include "ops/attention_mma.h"

#include "ops/attention_mma.cuh"

namespace tera::ops::cuda {
namespace {

template <class T, int D>
__global__ void __launch_bounds__(mma_threads)
    attention_forward_mma(Rows<T> o, float* lse, Rows<const T> q, Rows<const T> k, Rows<const T> v, Problem p) {
    constexpr int N = block_rows / 8;
    using Queries = Tile<T, block_rows, D, Side::left>;
    using Keys = Tile<T, block_rows, D, Side::right>;
    extern __shared__ __align__(16) unsigned char memory[];
    T* const shared = reinterpret_cast<T*>(memory);
    const Heads& n = p.n;
    const std::int64_t tile = gridDim.x - 1 - blockIdx.x, b = blockIdx.y / n.H, h = blockIdx.y % n.H,
                       g = h / (n.H / n.G);
    const std::int64_t q0 = tile * block_rows;
    const int warp = threadIdx.x / 32, K = static_cast<int>(n.K);
    const std::int64_t row = q0 + warp * warp_rows + lane_row();
    const Sight seen = sight_of_block(n, b, q0), first = sight(n, b, row), second = sight(n, b, row + 1);
    const Queries queries{shared};
    const auto keys = [&](int turn) { return Keys{shared + (1 + 2 * turn) * Keys::elements}; };
    const auto values = [&](int turn) { return Keys{shared + (2 + 2 * turn) * Keys::elements}; };
    const auto fetch = [&](int k0, int turn) {
        keys(turn).load(k.at(n, 0, b, g), n.B * k.width, k0, n.Sk, K);
        values(turn).load(v.at(n, 0, b, g), n.B * v.width, k0, n.Sk, K);
        __pipeline_commit();
    };
    float out[D / 8][4] = {}, top[2] = {-3.0e38f, -3.0e38f}, sum[2] = {};
    const float unit = p.scale * log2_of_e;
    const Draws draws(p, b);
    const std::uint64_t first_call = n.drops() ? n.dropout.first_call(h, row) : 0;
    int k0 = seen.first / block_rows * block_rows, turn = 0;
    if (seen.end > 0) {
        queries.load(q.at(n, 0, b, h), n.B * q.width, q0, n.Sq, K);
        fetch(k0, 0);
    }
    for (; k0 < seen.end; k0 += block_rows, turn ^= 1) {
        if (k0 + block_rows < seen.end) {
            fetch(k0 + block_rows, turn ^ 1);
            __pipeline_wait_prior(1);
        } else {
            __pipeline_wait_prior(0);
        }
        __syncthreads();
        float s[N][4] = {};
        multiply_transposed<T>(s, queries, warp * warp_rows, keys(turn));
        float most[2] = {-INFINITY, -INFINITY};
#pragma unroll
        for (int i = 0; i < N; ++i)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                s[i][e] = (e < 2 ? first : second).sees(k0 + lane_column(i, e)) ? s[i][e] * unit : -INFINITY;
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
        if (n.drops()) drop(s, draws, first_call, h, row, k0);
        multiply<T>(out, s, values(turn));
        __syncthreads();
    }
    float inverse[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        sum[r] = over_row(sum[r], Sum{});
        inverse[r] = sum[r] > 0 ? p.factor / sum[r] : 0;  // else there was no key to see
        if (threadIdx.x % 4 == 0 && row + r < n.Sq)
            lse[(b * n.H + h) * n.Sq + row + r] = sum[r] > 0 ? ln2 * (top[r] + log2f(sum[r])) : -INFINITY;
    }
    store_rows<T, D>(out, row < n.Sq ? o.at(n, row, b, h) : nullptr, row + 1 < n.Sq ? o.at(n, row + 1, b, h) : nullptr,
                     inverse[0], inverse[1], K);
}

}  // namespace

bool mma_attention(const Exec& exec, const AttentionSpec& s, const AttentionOut& out, HeadRows<ConstTensor> q,
                   HeadRows<ConstTensor> k, HeadRows<ConstTensor> v) {
    if (!mma_applies(s, q.data.dtype) || !reachable(q) || !reachable(k) || !reachable(v)) return false;
    dispatch_half(q.data.dtype, s.K, [&](auto zero, auto width) {
        using T = decltype(zero);
        constexpr int D = decltype(width)::value;
        launch<device_t<T>, D>(exec, attention_forward_mma<device_t<T>, D>,
                               dim3(tiles_of(s.Sq), static_cast<unsigned>(s.B * s.H)), 5 * block_rows,
                               rows<T>(HeadRows<Tensor>{out.o, 0}), out.lse.ptr<float>(), rows<T>(q), rows<T>(k),
                               rows<T>(v), problem_of(s));
    });
    return true;
}

}  // namespace tera::ops::cuda
