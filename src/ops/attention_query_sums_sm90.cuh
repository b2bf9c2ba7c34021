// Gradients of attention's queries as blocks of keys add them up: in fp32, tile by tile, each in the order in which the
// lanes of a warp group have the sums of a product, so that what a lane adds stands together.
#pragma once

#include "ops/attention_sm90.cuh"

namespace tera::ops::cuda::sm90 {

template <int D>
struct QuerySums {
    static constexpr int rows = 64, width = D <= 96 ? D : 64;  ///< of a tile, and of a product
    static constexpr std::int64_t elements = rows * D;

    __host__ __device__ static constexpr std::int64_t tiles_of_head(std::int64_t Sq) { return (Sq + rows - 1) / rows; }
    static std::int64_t tiles(const AttentionSpec& s) { return s.B * s.H * tiles_of_head(s.Sq); }
    __device__ static std::int64_t tile(const Sizes& n, int b, int head, int first) {
        return static_cast<std::int64_t>(b * n.H + head) * tiles_of_head(n.Sq) + first / rows;
    }

    /// Where this lane's sums [4 i, 4 i + 4) of a product are.
    __device__ static int place(int part, int i) {
        return part * rows * width + (i * group_threads + static_cast<int>(threadIdx.x) % group_threads) * 4;
    }
    __device__ static void add(float* tile, int part, const float (&sums)[width / 2]) {
#pragma unroll
        for (int i = 0; i < width / 8; ++i) {
            const float* const s = sums + 4 * i;
            asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(tile + place(part, i)), "f"(s[0]),
                         "f"(s[1]), "f"(s[2]), "f"(s[3])
                         : "memory");
        }
    }
};

/// A block for each tile.
template <class T, int D>
__global__ void attention_query_sums_to_rows(Rows<T> dq, Heads n, const float* sums) {
    using Sums = QuerySums<D>;
    const std::int64_t of_head = Sums::tiles_of_head(n.Sq), head = blockIdx.x / of_head;
    const int row = static_cast<int>(threadIdx.x) / 32 * 16 + lane_row();
    sums += blockIdx.x * Sums::elements;
    const float scale = static_cast<float>(n.scale);
#pragma unroll
    for (int part = 0; part < D / Sums::width; ++part) {
        float x[Sums::width / 2];
#pragma unroll
        for (int i = 0; i < Sums::width / 8; ++i) {
            const float4 four = *reinterpret_cast<const float4*>(sums + Sums::place(part, i));
            x[4 * i] = four.x, x[4 * i + 1] = four.y, x[4 * i + 2] = four.z, x[4 * i + 3] = four.w;
        }
        store_rows<Sums::width>(Rows<T>{dq.base + part * Sums::width, dq.width}, n, head / n.H, head % n.H,
                                static_cast<int>(blockIdx.x % of_head) * Sums::rows + row, static_cast<int>(n.Sq), x,
                                scale, scale);
    }
}

}  // namespace tera::ops::cuda::sm90
