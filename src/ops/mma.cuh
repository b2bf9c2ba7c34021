// Products of 16 x 8 tiles on the matrix units, and tiles of rows in shared memory for them.
#pragma once

#include <cuda_pipeline.h>

#include "ops/cuda_types.cuh"

namespace tera::ops::cuda {

/// c [16,8] += a [16,16] b [16,8]. A lane has rows g and g + 8, g = lane / 4, and in each the columns 2t and 2t + 1,
/// t = lane % 4, of c.
template <class T>
__device__ inline void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    if constexpr (std::is_same_v<T, __nv_bfloat16>)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <class T>
__device__ inline unsigned two(float low, float high) {
    const float both[2] = {low, high};
    const Few<T, 2> rounded = narrow_few<T>(both);
    unsigned word;
    memcpy(&word, &rounded, sizeof word);
    return word;
}

/// Of 16 rows, the first of the two that this lane has; the other is eight further.
__device__ inline int lane_row() { return static_cast<int>(threadIdx.x & 31) / 4; }
/// Of all columns, the one of element e of the n-th product.
__device__ inline int lane_column(int n, int e) { return n * 8 + static_cast<int>(threadIdx.x) % 4 * 2 + e % 2; }

/// ROWS rows of D elements in shared memory; a row has eight more, so that eight rows lie in different banks.
template <class T, int ROWS, int D>
struct Tile {
    static constexpr int stride = D + 8, elements = ROWS * stride;
    T* at;

    /// Rows [first, first + ROWS) of `from`, whose elements are `step` apart from row to row; zeros beyond `rows` and
    /// beyond `width`. To be waited for.
    template <int threads>
    __device__ void load(const T* from, std::int64_t step, std::int64_t first, std::int64_t rows, int width) const {
        constexpr int packs = D / 8;
#pragma unroll
        for (int i = static_cast<int>(threadIdx.x); i < ROWS * packs; i += threads) {
            const int place = i / packs, c = i % packs * 8;
            const std::int64_t row = first + place;
            const bool there = row < rows && c < width;
            __pipeline_memcpy_async(at + place * stride + c, there ? from + row * step + c : from, 16, there ? 0 : 16);
        }
    }
    /// a: 16 rows from place `row`, 16 columns from `col`.
    __device__ void left(unsigned (&a)[4], int row, int col) const {
        const int lane = threadIdx.x & 31;
        matrices<false>(a, at + (row + lane % 16) * stride + col + lane / 16 * 8);
    }
    /// b of two products with the transposed tile: columns of it are 16 rows from place `row`, its rows 16 columns
    /// from `col`.
    __device__ void right_transposed(unsigned (&b)[4], int row, int col) const {
        const int lane = threadIdx.x & 31;
        matrices<false>(b, at + (row + lane % 8 + lane / 16 * 8) * stride + col + lane / 8 % 2 * 8);
    }
    /// b of two products with the tile itself: 16 rows from place `row`, 16 columns from `col`.
    __device__ void right(unsigned (&b)[4], int row, int col) const {
        const int lane = threadIdx.x & 31;
        matrices<true>(b, at + (row + lane % 16) * stride + col + lane / 16 * 8);
    }

  private:
    template <bool transposed>
    __device__ static void matrices(unsigned (&r)[4], const T* p) {
        const auto address = static_cast<unsigned>(__cvta_generic_to_shared(p));
        if constexpr (transposed)
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                         : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                         : "r"(address)
                         : "memory");
        else
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                         : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                         : "r"(address)
                         : "memory");
    }
};

/// c [16, 8 N] += the tile's 16 rows from place `row` times the transposed `other`, all of its D columns.
template <class T, int N, int ROWS, int OTHER, int D>
__device__ inline void multiply_transposed(float (&c)[N][4], const Tile<T, ROWS, D>& tile, int row,
                                           const Tile<T, OTHER, D>& other) {
    static_assert(OTHER == 8 * N);
#pragma unroll
    for (int col = 0; col < D; col += 16) {
        unsigned a[4], b[4];
        tile.left(a, row, col);
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            other.right_transposed(b, n * 8, col);
            mma<T>(c[n], a, b[0], b[1]);
            mma<T>(c[n + 1], a, b[2], b[3]);
        }
    }
}

/// c [16, D] += p [16, 8 N] times the tile [8 N, D]; p as it came out of products, rounded to T.
template <class T, int N, int ROWS, int D>
__device__ inline void multiply(float (&c)[D / 8][4], const float (&p)[N][4], const Tile<T, ROWS, D>& tile) {
    static_assert(ROWS == 8 * N);
#pragma unroll
    for (int k = 0; k < N; k += 2) {
        const unsigned a[4] = {two<T>(p[k][0], p[k][1]), two<T>(p[k][2], p[k][3]), two<T>(p[k + 1][0], p[k + 1][1]),
                               two<T>(p[k + 1][2], p[k + 1][3])};
#pragma unroll
        for (int n = 0; n < D / 8; n += 2) {
            unsigned b[4];
            tile.right(b, k * 8, n * 8);
            mma<T>(c[n], a, b[0], b[1]);
            mma<T>(c[n + 1], a, b[2], b[3]);
        }
    }
}

}  // namespace tera::ops::cuda
