// What attention's kernels on matrix units share: who sees what, what is dropped, and how they are launched.
#pragma once

#include "ops/attention_heads.cuh"
#include "ops/mma.cuh"

namespace tera::ops::cuda {

constexpr int block_rows = 64, warp_rows = 16;
constexpr float log2_of_e = 1.4426950408889634f, ln2 = 0.6931471805599453f;

/// Where keys here stand in the whole, as SequencePiece says it, in numbers that a multiprocessor is quick with.
struct KeyPlaces {
    int offset, run, first, second;
    __device__ unsigned at(int k) const {
        k += offset;
        return static_cast<unsigned>(k < run ? first + k : second + (k - run));
    }
};

struct Problem {
    Heads n;
    float scale, factor;  ///< factor: on what is kept
    KeyPlaces keys;
    bool aligned;  ///< two queries and four keys of one call are neighbours here, from a multiple of two and four on
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
    std::int64_t b;
    std::int64_t sample;
    __device__ Draws(const Problem& problem, std::int64_t at)
        : p(problem), b(at), sample(p.n.drops() ? p.n.sample[b] : 0) {}

    /// The numbers of queries q and q + 1 with keys k .. k + 3, as one call gives them; q's calls begin with `first`.
    __device__ U32x4 of_eight(std::uint64_t first, std::int64_t h, std::int64_t q, int k) const {
        return p.aligned ? dropout_words(p.n.dropout.site, sample, first + p.keys.at(k) / 4) : one_by_one(h, q, k);
    }
    /// Whether what has the lower (0) or the higher (1) half of the word is kept.
    __device__ bool keeps(unsigned word, int half) const {
        return (half ? word : word << 16) >= p.n.dropout.threshold << 16;
    }

  private:
    __device__ U32x4 one_by_one(std::int64_t h, std::int64_t q, int k) const {
        U32x4 words = {};
#pragma unroll 1
        for (int i = 0; i < 8; ++i) words.v[i / 2] |= p.n.number(b, h, q + i / 4, k + i % 4) << (i % 2 * 16);
        return words;
    }
};

/// Zeroes what is dropped of x [16, 8 N], whose rows are queries and columns keys from k on; this lane's first query is
/// q, whose calls begin with `first`.
template <int N>
__device__ inline void drop(float (&x)[N][4], const Draws& draws, std::uint64_t first, std::int64_t h, std::int64_t q,
                            int k) {
#pragma unroll
    for (int n = 0; n < N; n += 2) {
        const U32x4 words = draws.of_eight(first, h, q, k + lane_column(n, 0));
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            x[n][e] = draws.keeps(words.v[e / 2 * 2], e % 2) ? x[n][e] : 0;
            x[n + 1][e] = draws.keeps(words.v[e / 2 * 2 + 1], e % 2) ? x[n + 1][e] : 0;
        }
    }
}

/// The same where rows are 16 keys from k on and columns 16 queries from q on, with the first call of each two: a word
/// for each of this lane's four queries, which has the numbers of its two keys. Of a call's four keys the lane has two
/// and a neighbour the others: each makes the call of two of the queries, and they exchange what the other needs.
__device__ inline U32x4 words_transposed(const Draws& draws, const std::uint64_t* first, std::int64_t h, std::int64_t q,
                                         int k) {
    const int lane = threadIdx.x & 31, g = lane / 4;
    const bool odd = g % 2;
    const int pair = lane % 4 * 2 + odd;
    const U32x4 mine = draws.of_eight(first[pair], h, q + 2 * pair, k + g / 2 * 4);
    unsigned own[2], other[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        own[i] = odd ? mine.v[2 * i + 1] : mine.v[2 * i];
        other[i] = __shfl_xor_sync(0xffffffffu, odd ? mine.v[2 * i] : mine.v[2 * i + 1], 4);
    }
    return odd ? U32x4{{other[0], other[1], own[0], own[1]}} : U32x4{{own[0], own[1], other[0], other[1]}};
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

/// Writes this lane's two rows of x [16,D], times two factors, into two rows of the output.
template <class T, int D>
__device__ inline void store_rows(const float (&x)[D / 8][4], T* first, T* second, float by_first, float by_second,
                                  int K) {
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
        const int col = n * 8 + 2 * t;
        if (col >= K) continue;
        const unsigned a = two<T>(x[n][0] * by_first, x[n][1] * by_first),
                       b = two<T>(x[n][2] * by_second, x[n][3] * by_second);
        if (first) memcpy(first + col, &a, sizeof a);
        if (second) memcpy(second + col, &b, sizeof b);
    }
}

/// Rows must begin where sixteen bytes can be read at once.
template <class TensorType>
bool reachable(const HeadRows<TensorType>& r) {
    return r.offset % 8 == 0 && r.data.cols() % 8 == 0;
}

inline bool mma_applies(const AttentionSpec& s, DType dtype) {
    return (dtype == DType::bf16 || dtype == DType::f16) && s.K % 8 == 0 && s.K <= 128 && s.Sk < INT32_MAX - 64 &&
           s.B * s.H < 65536;
}

/// Whether neighbours that begin at a multiple of n here do so in the whole.
inline bool aligned(const SequencePiece& piece, std::int64_t n) {
    return (piece.offset | piece.run | piece.first | piece.second) % n == 0;
}

inline Problem problem_of(const AttentionSpec& s) {
    const SequencePiece& key = s.whole.key;
    const auto small = [](std::int64_t x) { return static_cast<int>(std::min<std::int64_t>(x, INT32_MAX / 2)); };
    const Heads heads = heads_of(s);
    return {heads,
            static_cast<float>(s.scale),
            static_cast<float>(heads.dropout.factor()),
            {small(key.offset), small(key.run), small(key.first), small(key.second)},
            aligned(s.whole.query, 2) && aligned(key, 4)};
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

inline unsigned tiles_of(std::int64_t rows) { return static_cast<unsigned>((rows + block_rows - 1) / block_rows); }

}  // namespace tera::ops::cuda
