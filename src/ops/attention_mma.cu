// Attention on matrix units, after FlashAttention-2: a block has 64 queries of a head (or 64 keys, for their gradients)
// and walks over the keys (queries) that are seen, a tile at a time, the next on its way while one is worked on. The
// gradient of the queries and those of keys and values have a kernel each, which both rebuild the probabilities: more
// products than one kernel for all, but nothing is added across blocks.
#include "ops/attention_mma.h"

#include "ops/attention_heads.cuh"
#include "ops/mma.cuh"

namespace tera::ops::cuda {
namespace {

constexpr int block_rows = 64, warp_rows = 16;
constexpr float log2_of_e = 1.4426950408889634f, ln2 = 0.6931471805599453f;

/// Queries of the gradient's tile: so many that what a thread holds stays in registers.
template <int D>
constexpr int query_rows = D <= 64 ? 64 : 32;

/// Where keys here stand in the whole, as SequencePiece says it, in numbers that a multiprocessor is quick with.
struct KeyPlaces {
    int offset, run, first, second;
    bool aligned;  ///< four keys of one call of the generator are four neighbours here, from a multiple of four on
    __device__ unsigned at(int k) const {
        k += offset;
        return static_cast<unsigned>(k < run ? first + k : second + (k - run));
    }
};

struct Problem {
    Heads n;
    float scale, factor;  ///< factor: 1/(1 - dropout)
    KeyPlaces keys;
};

/// Keys [first, end) that a query sees.
struct Sight {
    int first, end;
    __device__ bool sees(int key) const { return key >= first && key < end; }
};
__device__ inline Sight sight(const Heads& n, std::int64_t b, std::int64_t q) {
    if (q >= n.Sq) return {0, 0};
    return {static_cast<int>(n.first_key(b, q)), static_cast<int>(n.end_key(q))};
}

/// What is dropped in one sample.
struct Draws {
    const Problem& p;
    std::int64_t sample;
    __device__ Draws(const Problem& problem, std::int64_t b)
        : p(problem), sample(problem.n.dropout > 0 ? problem.n.sample[b] : 0) {}

    /// Which of the keys k .. k + 3 are kept, a bit each, in the row whose calls are numbered from `first` on.
    __device__ unsigned of_four(std::uint64_t first, int k) const {
        unsigned bits = 0;
        if (p.keys.aligned) {
            const U32x4 words = dropout_words(p.n.site, sample, first + p.keys.at(k) / 4);
#pragma unroll
            for (int i = 0; i < 4; ++i) bits |= words.v[i] >= p.n.threshold ? 1u << i : 0u;
            return bits;
        }
        for (int i = 0; i < 4; ++i) {
            const unsigned key = p.keys.at(k + i);
            bits |= dropout_words(p.n.site, sample, first + key / 4).v[key % 4] >= p.n.threshold ? 1u << i : 0u;
        }
        return bits;
    }
};

/// Which of a warp's 16 queries this lane draws for, in drop().
__device__ inline int drawn_row() { return static_cast<int>(threadIdx.x & 31) / 4 + 8 * (threadIdx.x & 1); }

/// Zeroes what is dropped of x [16, 8 N], whose rows are queries and columns keys from k on. Neighbouring lanes need
/// the same words: each draws those of one of the two rows, the one whose calls are numbered from `first` on.
template <int N>
__device__ inline void drop(float (&x)[N][4], const Draws& draws, std::uint64_t first, int k) {
    const int t = threadIdx.x % 4, odd = t & 1;
#pragma unroll
    for (int n = 0; n < N; ++n) {
        const unsigned mine = draws.of_four(first, k + n * 8 + t / 2 * 4);
        const unsigned other = __shfl_xor_sync(0xffffffffu, mine, 1);
        const unsigned low = (odd ? other : mine) >> (2 * odd), high = (odd ? mine : other) >> (2 * odd);
        x[n][0] = low & 1 ? x[n][0] : 0;
        x[n][1] = low & 2 ? x[n][1] : 0;
        x[n][2] = high & 1 ? x[n][2] : 0;
        x[n][3] = high & 2 ? x[n][3] : 0;
    }
}

/// The same where rows are 16 keys from k on and columns eight queries, each with its first call: bit i of the result
/// is element i. Four lanes share the words of four keys: each draws those of one of the four places.
__device__ inline unsigned kept_transposed(const Draws& draws, const std::uint64_t* first, int k) {
    const int lane = threadIdx.x & 31, g = lane / 4, t = lane % 4, r = g & 3;
    const unsigned mine = draws.of_four(first[2 * t + (r & 1)], k + (g & 4) + (r & 2) * 4);
    unsigned bits = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) bits |= (__shfl_sync(0xffffffffu, mine, (lane & ~12) | i << 2) >> r & 1) << i;
    return bits;
}

/// Over the four lanes that share a row.
template <class Op>
__device__ inline float over_row(float x, Op op) {
    x = op(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return op(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

/// The first and last key that any of the block's queries sees.
__device__ inline Sight sight_of_block(const Heads& n, std::int64_t b, std::int64_t q0) {
    __shared__ int range[2];
    if (threadIdx.x == 0) range[0] = INT32_MAX, range[1] = 0;
    __syncthreads();
    if (threadIdx.x < block_rows) {
        const Sight s = sight(n, b, q0 + threadIdx.x);
        if (s.end > s.first) atomicMin(&range[0], s.first), atomicMax(&range[1], s.end);
    }
    __syncthreads();
    return {range[0], range[1]};
}

/// Writes rows g and g + 8 of x [16,D], times two factors, into two rows of the output.
template <class T, int D>
__device__ inline void store_rows(const float (&x)[D / 8][4], T* low, T* high, float by_low, float by_high, int K) {
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
        const int col = n * 8 + 2 * t;
        if (col >= K) continue;
        const unsigned a = two<T>(x[n][0] * by_low, x[n][1] * by_low), b = two<T>(x[n][2] * by_high, x[n][3] * by_high);
        if (low) memcpy(low + col, &a, sizeof a);
        if (high) memcpy(high + col, &b, sizeof b);
    }
}

template <class T, int D>
__global__ void __launch_bounds__(mma_threads)
    attention_forward_mma(Rows<T> o, float* lse, Rows<const T> q, Rows<const T> k, Rows<const T> v, Problem p) {
    constexpr int N = block_rows / 8;
    using Rows64 = Tile<T, block_rows, D>;
    extern __shared__ __align__(16) unsigned char memory[];
    T* const shared = reinterpret_cast<T*>(memory);
    const Heads& n = p.n;
    const std::int64_t tile = gridDim.x - 1 - blockIdx.x, b = blockIdx.y / n.H, h = blockIdx.y % n.H,
                       g = h / (n.H / n.G);
    const std::int64_t q0 = tile * block_rows;
    const int warp = threadIdx.x / 32, K = static_cast<int>(n.K);
    const std::int64_t row = q0 + warp * warp_rows + (threadIdx.x & 31) / 4;
    const Sight seen = sight_of_block(n, b, q0), low = sight(n, b, row), high = sight(n, b, row + 8);
    const Rows64 queries{shared};
    const auto keys = [&](int turn) { return Rows64{shared + (1 + 2 * turn) * Rows64::elements}; };
    const auto values = [&](int turn) { return Rows64{shared + (2 + 2 * turn) * Rows64::elements}; };
    const auto fetch = [&](int k0, int turn) {
        keys(turn).load(k.at(n, 0, b, g), n.B * k.width, k0, n.Sk, K);
        values(turn).load(v.at(n, 0, b, g), n.B * v.width, k0, n.Sk, K);
        __pipeline_commit();
    };
    float out[D / 8][4] = {}, top[2] = {-3.0e38f, -3.0e38f}, sum[2] = {};
    const float unit = p.scale * log2_of_e;
    const Draws draws(p, b);
    const std::uint64_t first = n.dropout > 0 ? n.first_call(h, q0 + warp * warp_rows + drawn_row()) : 0;
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
                const int key = k0 + i * 8 + 2 * (static_cast<int>(threadIdx.x) % 4) + (e & 1);
                s[i][e] = (e < 2 ? low : high).sees(key) ? s[i][e] * unit : -INFINITY;
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
        if (n.dropout > 0) drop(s, draws, first, k0);
        multiply<T>(out, s, values(turn));
        __syncthreads();
    }
    float inverse[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        sum[r] = over_row(sum[r], Sum{});
        inverse[r] = sum[r] > 0 ? p.factor / sum[r] : 0;  // else there was no key to see
        if (threadIdx.x % 4 == 0 && row + 8 * r < n.Sq)
            lse[(b * n.H + h) * n.Sq + row + 8 * r] = sum[r] > 0 ? ln2 * (top[r] + log2f(sum[r])) : -INFINITY;
    }
    store_rows<T, D>(out, row < n.Sq ? o.at(n, row, b, h) : nullptr, row + 8 < n.Sq ? o.at(n, row + 8, b, h) : nullptr,
                     inverse[0], inverse[1], K);
}

/// delta [B,H,Sq] = Σ_k d_o o, a warp for each.
template <class T>
__global__ void attention_delta_mma(float* delta, Rows<const T> d_o, Rows<const T> o, Heads n) {
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
    constexpr int N = block_rows / 8;
    using Rows64 = Tile<T, block_rows, D>;
    extern __shared__ __align__(16) unsigned char memory[];
    T* const shared = reinterpret_cast<T*>(memory);
    const Heads& n = p.n;
    const std::int64_t tile = gridDim.x - 1 - blockIdx.x, b = blockIdx.y / n.H, h = blockIdx.y % n.H,
                       g = h / (n.H / n.G);
    const std::int64_t q0 = tile * block_rows;
    const int warp = threadIdx.x / 32, K = static_cast<int>(n.K);
    const std::int64_t row = q0 + warp * warp_rows + (threadIdx.x & 31) / 4, at = (b * n.H + h) * n.Sq + row;
    const Sight seen = sight_of_block(n, b, q0), low = sight(n, b, row), high = sight(n, b, row + 8);
    const float shift[2] = {row < n.Sq ? lse[at] * log2_of_e : 0, row + 8 < n.Sq ? lse[at + 8] * log2_of_e : 0};
    const float mean[2] = {row < n.Sq ? delta[at] : 0, row + 8 < n.Sq ? delta[at + 8] : 0};
    const Rows64 queries{shared}, d_out{shared + Rows64::elements};
    const auto keys = [&](int turn) { return Rows64{shared + (2 + 2 * turn) * Rows64::elements}; };
    const auto values = [&](int turn) { return Rows64{shared + (3 + 2 * turn) * Rows64::elements}; };
    const auto fetch = [&](int k0, int turn) {
        keys(turn).load(k.at(n, 0, b, g), n.B * k.width, k0, n.Sk, K);
        values(turn).load(v.at(n, 0, b, g), n.B * v.width, k0, n.Sk, K);
        __pipeline_commit();
    };
    float out[D / 8][4] = {};
    const float unit = p.scale * log2_of_e;
    const Draws draws(p, b);
    const std::uint64_t first = n.dropout > 0 ? n.first_call(h, q0 + warp * warp_rows + drawn_row()) : 0;
    int k0 = seen.first / block_rows * block_rows, turn = 0;
    if (seen.end > 0) {
        queries.load(q.at(n, 0, b, h), n.B * q.width, q0, n.Sq, K);
        d_out.load(d_o.at(n, 0, b, h), n.B * d_o.width, q0, n.Sq, K);
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
        float s[N][4] = {}, dp[N][4] = {};
        multiply_transposed<T>(s, queries, warp * warp_rows, keys(turn));
        multiply_transposed<T>(dp, d_out, warp * warp_rows, values(turn));
        if (n.dropout > 0) drop(dp, draws, first, k0);
#pragma unroll
        for (int i = 0; i < N; ++i)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int key = k0 + i * 8 + 2 * (static_cast<int>(threadIdx.x) % 4) + (e & 1);
                const float prob = (e < 2 ? low : high).sees(key) ? exp2_of(s[i][e] * unit - shift[e / 2]) : 0;
                s[i][e] = prob * (dp[i][e] * p.factor - mean[e / 2]);
            }
        multiply<T>(out, s, keys(turn));
        __syncthreads();
    }
    store_rows<T, D>(out, row < n.Sq ? dq.at(n, row, b, h) : nullptr,
                     row + 8 < n.Sq ? dq.at(n, row + 8, b, h) : nullptr, p.scale, p.scale, K);
}

/// What a tile of queries is beside its rows.
template <int R>
struct QueryNumbers {
    float shift[R], mean[R];
    Sight sight[R];
    std::uint64_t first_call[R];
};

template <class T, int D>
__global__ void __launch_bounds__(mma_threads)
    attention_key_gradient_mma(Rows<T> dk, Rows<T> dv, const float* delta, const float* lse, Rows<const T> d_o,
                               Rows<const T> q, Rows<const T> k, Rows<const T> v, Problem p) {
    constexpr int R = query_rows<D>, N = R / 8;
    using Keys = Tile<T, block_rows, D>;
    using Queries = Tile<T, R, D>;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ QueryNumbers<R> numbers[2];
    T* const shared = reinterpret_cast<T*>(memory);
    const Heads& n = p.n;
    const std::int64_t b = blockIdx.y / n.G, g = blockIdx.y % n.G, per_group = n.H / n.G;
    const int k0 = static_cast<int>(blockIdx.x) * block_rows, warp = threadIdx.x / 32, K = static_cast<int>(n.K);
    const int tiles = static_cast<int>((n.Sq + R - 1) / R), items = static_cast<int>(per_group) * tiles;
    const int key = k0 + warp * warp_rows + static_cast<int>(threadIdx.x & 31) / 4;
    const Keys keys{shared}, values{shared + Keys::elements};
    const auto queries = [&](int turn) { return Queries{shared + 2 * Keys::elements + 2 * turn * Queries::elements}; };
    const auto d_out = [&](int turn) {
        return Queries{shared + 2 * Keys::elements + (2 * turn + 1) * Queries::elements};
    };
    /// The next tile of queries, of any of the heads, from which one of these keys is seen.
    const auto next = [&](int item) {
        for (; item < items; ++item) {
            bool any = false;
            if (threadIdx.x < R) {
                const Sight s = sight(n, b, std::int64_t{item % tiles} * R + threadIdx.x);
                any = s.first < k0 + block_rows && s.end > k0 && s.end > s.first;
            }
            if (__syncthreads_or(any)) return item;
        }
        return items;
    };
    const auto fetch = [&](int item, int turn) {
        const std::int64_t h = g * per_group + item / tiles, q0 = std::int64_t{item % tiles} * R;
        queries(turn).load(q.at(n, 0, b, h), n.B * q.width, q0, n.Sq, K);
        d_out(turn).load(d_o.at(n, 0, b, h), n.B * d_o.width, q0, n.Sq, K);
        __pipeline_commit();
        if (const int i = static_cast<int>(threadIdx.x); i < R) {
            const std::int64_t at = (b * n.H + h) * n.Sq + q0 + i;
            numbers[turn].sight[i] = sight(n, b, q0 + i);
            numbers[turn].shift[i] = q0 + i < n.Sq ? lse[at] * log2_of_e : 0;
            numbers[turn].mean[i] = q0 + i < n.Sq ? delta[at] : 0;
            if (n.dropout > 0) numbers[turn].first_call[i] = n.first_call(h, q0 + i);
        }
    };
    float sum_k[D / 8][4] = {}, sum_v[D / 8][4] = {};
    const float unit = p.scale * log2_of_e;
    const Draws draws(p, b);
    int item = next(0), turn = 0;
    if (item < items) {
        keys.load(k.at(n, 0, b, g), n.B * k.width, k0, n.Sk, K);
        values.load(v.at(n, 0, b, g), n.B * v.width, k0, n.Sk, K);
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
        float s[N][4] = {}, dp[N][4] = {};
        multiply_transposed<T>(s, keys, warp * warp_rows, queries(turn));
        multiply_transposed<T>(dp, values, warp * warp_rows, d_out(turn));
#pragma unroll
        for (int i = 0; i < N; ++i) {
            const unsigned kept =
                n.dropout > 0 ? kept_transposed(draws, of.first_call + i * 8, k0 + warp * warp_rows) : 15u;
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int column = i * 8 + 2 * (static_cast<int>(threadIdx.x) % 4) + (e & 1);
                const bool sees = of.sight[column].sees(key + (e < 2 ? 0 : 8)), keep = kept >> e & 1;
                const float prob = sees ? exp2_of(s[i][e] * unit - of.shift[column]) : 0;
                dp[i][e] = prob * ((keep ? dp[i][e] * p.factor : 0) - of.mean[column]);
                s[i][e] = keep ? prob : 0;
            }
        }
        multiply<T>(sum_v, s, d_out(turn));
        multiply<T>(sum_k, dp, queries(turn));
        __syncthreads();
        item = following;
        turn ^= 1;
    }
    const bool low = key < n.Sk, high = key + 8 < n.Sk;
    store_rows<T, D>(sum_k, low ? dk.at(n, key, b, g) : nullptr, high ? dk.at(n, key + 8, b, g) : nullptr, p.scale,
                     p.scale, K);
    store_rows<T, D>(sum_v, low ? dv.at(n, key, b, g) : nullptr, high ? dv.at(n, key + 8, b, g) : nullptr, p.factor,
                     p.factor, K);
}

/// Rows must begin where sixteen bytes can be read at once.
template <class TensorType>
bool reachable(const HeadRows<TensorType>& r) {
    return r.offset % 8 == 0 && r.data.cols() % 8 == 0;
}

bool applies(const AttentionSpec& s, DType dtype) {
    return (dtype == DType::bf16 || dtype == DType::f16) && s.K % 8 == 0 && s.K <= 128 && s.Sk < INT32_MAX - 64 &&
           s.B * s.H < 65536;
}

Problem problem_of(const AttentionSpec& s) {
    const SequencePiece& key = s.whole.key;
    const auto small = [](std::int64_t x) { return static_cast<int>(std::min<std::int64_t>(x, INT32_MAX / 2)); };
    return {heads_of(s),
            static_cast<float>(s.scale),
            static_cast<float>(1 / (1 - s.dropout)),
            {small(key.offset), small(key.run), small(key.first), small(key.second),
             (key.offset | key.run | key.first | key.second) % 4 == 0}};
}

/// Calls f with the smallest width that has room for a head.
template <class F>
void with_width(std::int64_t K, const F& f) {
    if (K <= 64)
        f(std::integral_constant<int, 64>{});
    else if (K <= 96)
        f(std::integral_constant<int, 96>{});
    else
        f(std::integral_constant<int, 128>{});
}

/// Launches with as much shared memory as so many rows take.
template <class T, int D, class Kernel, class... Args>
void launch(const Exec& exec, Kernel* kernel, dim3 grid, int rows, const Args&... args) {
    const int bytes = rows * (D + 8) * static_cast<int>(sizeof(T));
    TERA_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    kernel<<<grid, mma_threads, static_cast<std::size_t>(bytes), exec.gpu->stream>>>(args...);
    TERA_LAUNCHED();
}

/// Calls f with the element type, half or bf16, and the width.
template <class F>
void dispatch_half(DType dtype, std::int64_t K, const F& f) {
    with_width(K, [&](auto width) { dtype == DType::bf16 ? f(bf16_t{}, width) : f(f16_t{}, width); });
}

unsigned tiles_of(std::int64_t rows) { return static_cast<unsigned>((rows + block_rows - 1) / block_rows); }

}  // namespace

bool mma_attention(const Exec& exec, const AttentionSpec& s, const AttentionOut& out, HeadRows<ConstTensor> q,
                   HeadRows<ConstTensor> k, HeadRows<ConstTensor> v) {
    if (!applies(s, q.data.dtype) || !reachable(q) || !reachable(k) || !reachable(v)) return false;
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

bool mma_attention_backward(const Exec& exec, const AttentionSpec& s, const AttentionGrads& grads, ConstTensor d_o,
                            HeadRows<ConstTensor> q, HeadRows<ConstTensor> k, HeadRows<ConstTensor> v,
                            const AttentionOut& out) {
    if (!applies(s, q.data.dtype) || !reachable(q) || !reachable(k) || !reachable(v)) return false;
    ArenaScope scope(*exec.arena);
    Tensor delta = exec.tensor(DType::f32, out.lse.shape);
    if (exec.counts()) return true;
    dispatch_half(q.data.dtype, s.K, [&](auto zero, auto width) {
        using T = decltype(zero);
        using E = device_t<T>;
        constexpr int D = decltype(width)::value;
        const auto dor = rows<T>(HeadRows<ConstTensor>{d_o, 0});
        attention_delta_mma<E><<<blocks_for(s.B * s.H * s.Sq, 8, INT32_MAX), 256, 0, exec.gpu->stream>>>(
            delta.ptr<float>(), dor, rows<T>(HeadRows<ConstTensor>{out.o, 0}), heads_of(s));
        launch<E, D>(exec, attention_query_gradient_mma<E, D>, dim3(tiles_of(s.Sq), static_cast<unsigned>(s.B * s.H)),
                     6 * block_rows, rows<T>(grads.dq), delta.ptr<float>(), out.lse.ptr<float>(), dor, rows<T>(q),
                     rows<T>(k), rows<T>(v), problem_of(s));
        launch<E, D>(exec, attention_key_gradient_mma<E, D>, dim3(tiles_of(s.Sk), static_cast<unsigned>(s.B * s.G)),
                     2 * block_rows + 4 * query_rows<D>, rows<T>(grads.dk), rows<T>(grads.dv), delta.ptr<float>(),
                     out.lse.ptr<float>(), dor, rows<T>(q), rows<T>(k), rows<T>(v), problem_of(s));
    });
    return true;
}

}  // namespace tera::ops::cuda
