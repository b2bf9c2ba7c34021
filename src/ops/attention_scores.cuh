// What attention's kernels on matrix units share: who sees what, and what is dropped. Of 16 x 16 scores a lane has, in
// two products side by side, rows l / 4 and l / 4 + 8, and of each eight columns 2 (l % 4) and the next.
#pragma once

#include "ops/attention_heads.cuh"
#include "ops/mma.cuh"

namespace tera::ops::cuda {

constexpr float log2_of_e = 1.4426950408889634f, ln2 = 0.6931471805599453f;

/// Where keys here stand in the whole, as SequencePiece says it, in numbers that a multiprocessor is quick with.
struct KeyPlaces {
    int offset, run, first, second;
    __device__ unsigned at(int k) const {
        k += offset;
        return static_cast<unsigned>(k < run ? first + k : second + (k - run));
    }
    __device__ int before(int position) const {
        int k = position - first;
        if (k >= run) k = run + max(position - second, 0);
        return max(k - offset, 0);
    }
};

struct Problem {
    Heads n;
    float scale, factor;  ///< factor: on what is kept
    KeyPlaces keys;
    bool aligned;  ///< sixteen queries or keys from a multiple of sixteen on are neighbours in the whole, from one on
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

/// What is dropped in one sample. surely_aligned: the problem is.
template <bool surely_aligned>
struct Draws {
    const Problem& p;
    std::int64_t b;
    std::int64_t sample;
    __device__ Draws(const Problem& problem, std::int64_t at)
        : p(problem), b(at), sample(p.n.drops() ? p.n.sample[b] : 0) {}

    /// The numbers of queries q and q + 8 with keys k, k + 1, k + 8 and k + 9, as one call gives them; q's calls begin
    /// with `first`.
    __device__ U32x4 of_eight(std::uint64_t first, std::int64_t h, std::int64_t q, int k) const {
        if (!surely_aligned && !p.aligned) return one_by_one(h, q, k);
        const unsigned at = p.keys.at(k);
        return dropout_words(p.n.dropout.site, sample, first + at / 16 * 4 + at % 8 / 2);
    }
    /// Whether what has the lower (0) or the higher (1) half of the word is kept.
    __device__ bool keeps(unsigned word, int half) const {
        return (half ? word : word << 16) >= p.n.dropout.threshold << 16;
    }

  private:
    __device__ U32x4 one_by_one(std::int64_t h, std::int64_t q, int k) const {
        U32x4 words = {};
#pragma unroll 1
        for (int i = 0; i < 8; ++i)
            words.v[i / 2] |= p.n.number(b, h, q + i / 4 * 8, k + i % 4 / 2 * 8 + i % 2) << (i % 2 * 16);
        return words;
    }
};

/// Zeroes what is dropped of x [16, 8 N], whose rows are queries and columns keys from k on; this lane's first query is
/// q, whose calls begin with `first`.
template <int N, bool surely_aligned>
__device__ inline void drop(float (&x)[N][4], const Draws<surely_aligned>& draws, std::uint64_t first, std::int64_t h,
                            std::int64_t q, int k) {
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

/// The same where rows are 16 keys from k on and columns 16 queries from q on, with the first call of each pair of
/// them: a word for each of this lane's four queries, which has the numbers of its two keys. Of a call's four keys the
/// lane has two and a neighbour the others: each makes the call of two of the queries, and they exchange what the other
/// needs.
template <bool surely_aligned>
__device__ inline U32x4 words_transposed(const Draws<surely_aligned>& draws, const std::uint64_t* first, std::int64_t h,
                                         std::int64_t q, int k) {
    const int lane = threadIdx.x & 31, g = lane / 4, odd = g % 2, pair = lane % 4 * 2 + odd;
    const U32x4 mine = draws.of_eight(first[pair], h, q + pair, k + g / 2 * 2);
    const unsigned own_halves = odd ? 0x7632 : 0x5410, other_halves = odd ? 0x5410 : 0x7632;
    unsigned own[2], other[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        own[i] = __byte_perm(mine.v[2 * i], mine.v[2 * i + 1], own_halves);
        other[i] = __shfl_xor_sync(0xffffffffu, __byte_perm(mine.v[2 * i], mine.v[2 * i + 1], other_halves), 4);
    }
    return odd ? U32x4{{other[0], own[0], other[1], own[1]}} : U32x4{{own[0], other[0], own[1], other[1]}};
}

/// Over the four lanes that share a row.
template <class Op>
__device__ inline float over_row(float x, Op op) {
    x = op(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return op(x, __shfl_xor_sync(0xffffffffu, x, 2));
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
            aligned(s.whole.query, 16) && aligned(key, 16)};
}

}  // namespace tera::ops::cuda
