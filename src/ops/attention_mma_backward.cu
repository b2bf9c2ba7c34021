// Gradients of attention on matrix units. Those of the queries and those of keys and values have a kernel each, which
// both rebuild the probabilities: more products than one kernel for all, but nothing is added across blocks.
#include "ops/attention_mma.h"

#include "ops/attention_mma.cuh"

namespace tera::ops::cuda {
namespace {

/// Queries of the gradient's tile: so many that what a thread holds stays in registers.
template <int D>
constexpr int query_rows = D <= 64 ? 64 : 32;
/// Gradients that a warp adds up for its keys: for both of keys and values the registers of one warp have no room if
/// heads are wide. Then there are two warps, which both make the probabilities.
template <int D>
constexpr int gradients_of_warp = D <= 128 ? 2 : 1;
template <int D>
constexpr int key_threads = mma_threads * 2 / gradients_of_warp<D>;

/// delta [B,H,Sq] = Σ_k d_o o, a warp for each.
template <class T>
__global__ void attention_delta_kernel(float* delta, Rows<const T> d_o, Rows<const T> o, Heads n) {
    const std::int64_t item = (blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x) / 32;
    if (item >= n.B * n.H * n.Sq) return;
    const std::int64_t h = item % n.H, b = item / n.H % n.B, row = item / (n.H * n.B);
    const T *x = d_o.at(n, row, b, h), *y = o.at(n, row, b, h);
    float sum = 0;
    for (int i = (threadIdx.x & 31) * 2; i < n.K; i += 64) {
        const auto a = load_few<2>(x + i), c = load_few<2>(y + i);
        sum += widen(a.v[0]) * widen(c.v[0]) + widen(a.v[1]) * widen(c.v[1]);
    }
    sum = warp_sum(sum);
    if ((threadIdx.x & 31) == 0) delta[(b * n.H + h) * n.Sq + row] = sum;
}

template <class T, int D>
__global__ void __launch_bounds__(mma_threads)
    attention_query_gradient_mma(Rows<T> dq, const float* delta, const float* lse, Rows<const T> d_o, Rows<const T> q,
                                 Rows<const T> k, Rows<const T> v, Problem p) {
    constexpr int N = key_rows<D> / 8;
    using Queries = Tile<T, block_rows, D>;
    extern __shared__ __align__(16) unsigned char memory[];
    T* const shared = reinterpret_cast<T*>(memory);
    const Heads& n = p.n;
    const QueryBlock block(n);
    const Queries queries{shared}, d_out{shared + Queries::elements};
    float out[D / 8][4] = {}, shift[2], mean[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        shift[r] = block.there(r) ? lse[block.number(r)] * log2_of_e : 0;
        mean[r] = block.there(r) ? delta[block.number(r)] : 0;
    }
    const float unit = p.scale * log2_of_e;
    const Draws<false> draws(p, block.b);
    const std::uint64_t first_call = block.first_call();
    const auto begin = [&] {
        block.load(queries, q);
        block.load(d_out, d_o);
    };
    const auto meet = [&](const auto& keys, const auto& values, int k0) {
        float s[N][4] = {}, dp[N][4] = {};
        multiply_transposed<T>(s, queries, block.warp_row, keys);
        multiply_transposed<T>(dp, d_out, block.warp_row, values);
        if (n.drops()) drop(dp, draws, first_call, block.h, block.row, k0);
#pragma unroll
        for (int i = 0; i < N; ++i)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const bool sees = block.sees(e, k0 + lane_column(i, e));
                const float prob = sees ? exp2_of(s[i][e] * unit - shift[e / 2]) : 0;
                s[i][e] = prob * (dp[i][e] * p.factor - mean[e / 2]);
            }
        multiply<T>(out, s, keys);
    };
    block.over_keys<T, D>(shared + 2 * Queries::elements, k, v, begin, meet);
    store_head<T, D>(dq, n, block.b, block.h, block.row, n.Sq, out, p.scale, p.scale);
}

/// What a tile of queries is beside its rows.
template <int R>
struct QueryNumbers {
    float shift[R], mean[R];
    Sight sight[R];
    std::uint64_t first_call[R / 2];  ///< of each pair
};

template <class T, int D>
__global__ void __launch_bounds__(key_threads<D>)
    attention_key_gradient_mma(Rows<T> dk, Rows<T> dv, const float* delta, const float* lse, Rows<const T> d_o,
                               Rows<const T> q, Rows<const T> k, Rows<const T> v, Problem p) {
    constexpr int R = query_rows<D>, N = R / 8, threads = key_threads<D>;
    constexpr bool split = gradients_of_warp<D> == 1;
    using Keys = Tile<T, block_rows, D>;
    using Queries = Tile<T, R, D>;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ QueryNumbers<R> numbers[2];
    T* const shared = reinterpret_cast<T*>(memory);
    const Heads& n = p.n;
    const std::int64_t b = blockIdx.y / n.G, g = blockIdx.y % n.G, per_group = n.H / n.G;
    const int k0 = static_cast<int>(blockIdx.x) * block_rows,
              warp_row = static_cast<int>(threadIdx.x) / 32 * warp_rows % block_rows;
    const bool to_keys = threadIdx.x >= mma_threads;  // where split: the keys' gradient, not the values'
    const int tiles = static_cast<int>((n.Sq + R - 1) / R), items = static_cast<int>(per_group) * tiles;
    const int warp_key = k0 + warp_row, key = warp_key + lane_row();
    const Keys keys{shared}, values{shared + Keys::elements};
    const auto queries = [&](int turn) { return Queries{shared + 2 * Keys::elements + 2 * turn * Queries::elements}; };
    const auto d_out = [&](int turn) {
        return Queries{shared + 2 * Keys::elements + (2 * turn + 1) * Queries::elements};
    };
    const auto head_of = [&](int item) { return g * per_group + item / tiles; };
    const auto first_query = [&](int item) { return std::int64_t{item % tiles} * R; };
    /// The next tile of queries, of any of the heads, from which one of these keys is seen.
    const auto next = [&](int item) {
        for (; item < items; ++item) {
            bool any = false;
            if (threadIdx.x < R) {
                const Sight s = sight(n, b, first_query(item) + threadIdx.x);
                any = s.first < k0 + block_rows && s.end > k0 && s.end > s.first;
            }
            if (__syncthreads_or(any)) return item;
        }
        return items;
    };
    const auto fetch = [&](int item, int turn) {
        const std::int64_t h = head_of(item), q0 = first_query(item);
        load_head<threads>(queries(turn), q, n, b, h, q0, n.Sq);
        load_head<threads>(d_out(turn), d_o, n, b, h, q0, n.Sq);
        __pipeline_commit();
        if (const int i = static_cast<int>(threadIdx.x); i < R) {
            const std::int64_t at = (b * n.H + h) * n.Sq + q0 + i;
            numbers[turn].sight[i] = sight(n, b, q0 + i);
            numbers[turn].shift[i] = q0 + i < n.Sq ? lse[at] * log2_of_e : 0;
            numbers[turn].mean[i] = q0 + i < n.Sq ? delta[at] : 0;
            if (n.drops() && i < R / 2) numbers[turn].first_call[i] = n.dropout.first_call(h, q0 + i / 8 * 16 + i % 8);
        }
    };
    float sum[gradients_of_warp<D>][D / 8][4] = {};
    const float unit = p.scale * log2_of_e;
    const Draws<false> draws(p, b);
    int item = next(0), turn = 0;
    if (item < items) {
        load_head<threads>(keys, k, n, b, g, k0, n.Sk);
        load_head<threads>(values, v, n, b, g, k0, n.Sk);
        fetch(item, 0);
    }
    while (item < items) {
        const int following = next(item + 1);
        if (following < items) {
            fetch(following, turn ^ 1);
            __pipeline_wait_prior(1);
        } else {
            __pipeline_wait_prior(0);
        }
        __syncthreads();
        const QueryNumbers<R>& of = numbers[turn];
        const std::int64_t h = head_of(item), q0 = first_query(item);
        U32x4 words = {};
        float s[N][4] = {}, dp[N][4] = {};
        multiply_transposed<T>(s, keys, warp_row, queries(turn));
        if (!split || to_keys) multiply_transposed<T>(dp, values, warp_row, d_out(turn));
#pragma unroll
        for (int i = 0; i < N; ++i) {
            if (n.drops() && i % 2 == 0)
                words = words_transposed(draws, of.first_call + i * 4, h, q0 + i * 8, warp_key);
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int column = lane_column(i, e);
                const bool sees = of.sight[column].sees(key + e / 2 * 8),
                           keeps = draws.keeps(words.v[i % 2 * 2 + e % 2], e / 2);
                const float prob = sees ? exp2_of(s[i][e] * unit - of.shift[column]) : 0;
                dp[i][e] = prob * ((keeps ? dp[i][e] * p.factor : 0) - of.mean[column]);
                s[i][e] = split && to_keys ? dp[i][e] : keeps ? prob : 0;
            }
        }
        if constexpr (split) {
            multiply<T>(sum[0], s, to_keys ? queries(turn) : d_out(turn));
        } else {
            multiply<T>(sum[0], s, d_out(turn));
            multiply<T>(sum[1], dp, queries(turn));
        }
        __syncthreads();
        item = following;
        turn ^= 1;
    }
    if (!split || to_keys) store_head<T, D>(dk, n, b, g, key, n.Sk, sum[split ? 0 : 1], p.scale, p.scale);
    if (!split || !to_keys) store_head<T, D>(dv, n, b, g, key, n.Sk, sum[0], p.factor, p.factor);
}

}  // namespace

void attention_delta(const Exec& exec, const AttentionSpec& s, Tensor delta, ConstTensor d_o, ConstTensor o) {
    dispatch_float(d_o.dtype, [&](auto zero) {
        using T = decltype(zero);
        if constexpr (sizeof(T) == 2)
            attention_delta_kernel<device_t<T>>
                <<<blocks_for(s.B * s.H * s.Sq, 8, INT32_MAX), 256, 0, exec.gpu->stream>>>(
                    delta.ptr<float>(), rows<T>(HeadRows<ConstTensor>{d_o, 0}), rows<T>(HeadRows<ConstTensor>{o, 0}),
                    heads_of(s));
    });
    TERA_LAUNCHED();
}

bool mma_attention_backward(const Exec& exec, const AttentionSpec& s, const AttentionGrads& grads, ConstTensor d_o,
                            HeadRows<ConstTensor> q, HeadRows<ConstTensor> k, HeadRows<ConstTensor> v,
                            const AttentionOut& out) {
    if (!mma_applies(s, q.data.dtype) || !reachable(q) || !reachable(k) || !reachable(v) || !take_words(grads))
        return false;
    ArenaScope scope(*exec.arena);
    Tensor delta = exec.tensor(DType::f32, out.lse.shape);
    if (exec.counts()) return true;
    attention_delta(exec, s, delta, d_o, out.o);
    dispatch_half(q.data.dtype, s.K, [&](auto zero, auto width) {
        using T = decltype(zero);
        using E = device_t<T>;
        constexpr int D = decltype(width)::value;
        const auto dor = rows<T>(HeadRows<ConstTensor>{d_o, 0});
        launch<E, D>(exec, attention_query_gradient_mma<E, D>, dim3(tiles_of(s.Sq), static_cast<unsigned>(s.B * s.H)),
                     mma_threads, 2 * block_rows + 4 * key_rows<D>, rows<T>(grads.dq), delta.ptr<float>(),
                     out.lse.ptr<float>(), dor, rows<T>(q), rows<T>(k), rows<T>(v), problem_of(s));
        launch<E, D>(exec, attention_key_gradient_mma<E, D>, dim3(tiles_of(s.Sk), static_cast<unsigned>(s.B * s.G)),
                     key_threads<D>, 2 * block_rows + 4 * query_rows<D>, rows<T>(grads.dk), rows<T>(grads.dv),
                     delta.ptr<float>(), out.lse.ptr<float>(), dor, rows<T>(q), rows<T>(k), rows<T>(v), problem_of(s));
    });
    return true;
}

}  // namespace tera::ops::cuda
