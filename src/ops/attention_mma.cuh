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

/// Rows must begin where sixteen bytes can be read at once.
template <class TensorType>
bool reachable(const HeadRows<TensorType>& r) {
    return r.offset % 8 == 0 && r.data.cols() % 8 == 0;
}

inline bool mma_applies(const AttentionSpec& s, DType dtype) {
    return (dtype == DType::bf16 || dtype == DType::f16) && s.K % 8 == 0 && s.K <= 128 && s.Sk < INT32_MAX - 64 &&
           s.B * s.H < 65536;
}

inline Problem problem_of(const AttentionSpec& s) {
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

inline unsigned tiles_of(std::int64_t rows) { return static_cast<unsigned>((rows + block_rows - 1) / block_rows); }

}  // namespace tera::ops::cuda
