// Tiles of heads' rows in shared memory and in registers, and what warp groups multiply of them.
#pragma once

#include "core/cuda/tensor_map.h"
#include "ops/attention_scores.cuh"
#include "ops/hopper.cuh"

namespace tera::ops::cuda::sm90 {

using namespace hopper;

constexpr int group_threads = 128, group_rows = 64;

/// Rows of a head in shared memory: blocks of 64 columns one after another, their rows as the copy engine swizzles
/// them.
template <int D, int ROWS>
struct HeadTile {
    static constexpr int width = D, rows = ROWS, blocks = (D + 63) / 64;
    static constexpr unsigned block_bytes = ROWS * 128, bytes = blocks * block_bytes;
    unsigned at;

    __device__ void load(const CUtensorMap& map, unsigned barrier, int column, int row) const {
#pragma unroll
        for (int i = 0; i < blocks; ++i) load_box(map, at + i * block_bytes, barrier, column + 64 * i, row);
    }
    /// Rows from a multiple of eight on, sixteen columns from 16 k on, which are the product's inner dimension.
    __device__ std::uint64_t across(int row, int k) const {
        return tile_at(at + k / 4 * block_bytes + row * 128 + k % 4 * 32);
    }
    /// Sixteen rows from 16 k on, the product's inner dimension, and all columns.
    __device__ std::uint64_t down(int k) const { return tile_at(at + k * 16 * 128, block_bytes); }
};

/// A group's own rows as first factors: from shared memory, or held in registers, which leaves shared memory to the
/// other factor.
template <class Tile, bool held>
struct OwnRows {
    Tile tile;
    int row;
    __device__ void take(const Tile& from, int first) { tile = from, row = first; }
    __device__ std::uint64_t at(int k) const { return tile.across(row, k); }
};
template <class Tile>
struct OwnRows<Tile, true> {
    unsigned words[Tile::width / 16][4];
    __device__ void take(const Tile& from, int first) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int row = first + static_cast<int>(threadIdx.x) % group_threads / 32 * 16 + lane % 16;
#pragma unroll
        for (int k = 0; k < Tile::width / 16; ++k)
            load_fragments(words[k],
                           from.at + k / 4 * Tile::block_bytes + row * 128 + ((k % 4 * 2 + lane / 16) ^ row % 8) * 16);
    }
    __device__ const unsigned (&at(int k) const)[4] { return words[k]; }
};

/// c [64, rows of b] = own rows times b transposed.
template <class T, class Own, int D, int B>
__device__ inline void multiply_transposed(float (&c)[B / 2], const Own& own, const HeadTile<D, B>& b) {
#pragma unroll
    for (int k = 0; k < D / 16; ++k) multiply<false, T>(c, own.at(k), b.across(0, k), k > 0);
}
/// c [64, D] += p [64, rows of b] times b.
template <class T, int D, int B>
__device__ inline void multiply_words(float (&c)[D / 2], const unsigned (&p)[B / 16][4], const HeadTile<D, B>& b) {
#pragma unroll
    for (int k = 0; k < B / 16; ++k) multiply<true, T>(c, p[k], b.down(k), 1);
}
/// Sums as a first factor, rounded to T.
template <class T, int n>
__device__ inline void to_words(unsigned (&p)[n / 8][4], const float (&x)[n]) {
#pragma unroll
    for (int k = 0; k < n / 8; ++k)
#pragma unroll
        for (int i = 0; i < 4; ++i) p[k][i] = two<T>(x[8 * k + 2 * i], x[8 * k + 2 * i + 1]);
}

}  // namespace tera::ops::cuda::sm90
