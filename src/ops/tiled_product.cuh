// Matrix products on Hopper's GPUs with something done to each tile behind the product, before it is stored, while the
// next one is multiplied.
//
// An operation has
//   Args                           matrices, as the copy engine wants them, and what else it needs
//   stages, stage_bytes            pieces of both factors that are fetched ahead; of one
//   chunks, slots, slot_bytes      of a tile; how many are under way at once; of one
//   lag                            how many stores may still be reading their slots when the next chunk is waited for
//   Sums, columns_summed           what a thread has of a tile's product; how many columns of it are added up, or none
//   fetch, multiply                a piece of both factors
//   bring, behind, take            what is needed for a chunk; what is done to it; what has come of it
//   sum_columns                    if columns are added up: of a tile, behind all its chunks
#pragma once

#include "core/cuda/tensor_map.h"
#include "core/exec.h"
#include "ops/hopper.cuh"

namespace tera::ops::cuda::hopper {

// A block has three warp groups. In the first a thread asks the copy engine for pieces of both factors, `stages` of
// them ahead. The other two groups multiply, each a tile of its own, in turns: while one multiplies, the other does
// what comes behind the product of its last tile, in chunks: each in one of the group's slots of shared memory, to
// which a second thread of the first group has fetched what is needed, ahead too, and from which it stores what has
// come of it. Two blocks, a cluster, work on tiles below each other, whose weights are the same: each fetches half of
// these, for both.

constexpr int group_threads = 128, threads = 3 * group_threads;
constexpr int tile_rows = 128, block_rows = 64, depth = 64;  // depth: of a piece, 128 bytes
constexpr unsigned x_bytes = tile_rows * depth * 2;
constexpr unsigned both_blocks = 3;
constexpr std::int64_t band_elements = 16384;  // so many row pairs times the inner dimension: 8 MB, for the cache

struct Sizes {
    int row_pairs, column_tiles;  ///< in tiles
    int steps;                    ///< pieces of the inner dimension
    int band;                     ///< row pairs that are done with all weights before the next
};

struct Place {
    int row_pair, column_tile;
};

__device__ inline Place place_of(const Sizes& s, int tile) {
    const int band = tile / (s.band * s.column_tiles), within = tile - band * s.band * s.column_tiles;
    const int left = s.row_pairs - band * s.band, width = left < s.band ? left : s.band;
    return {band * s.band + within % width, within / width};
}

/// Of a warp group: which warp, which lane; and the row, of a block's 64, whose address the lane gives for fragments.
struct Lane {
    int warp = static_cast<int>(threadIdx.x) % group_threads / 32, lane = static_cast<int>(threadIdx.x) % 32;
    __device__ int row() const { return 16 * warp + lane % 16; }
    __device__ int column_block() const { return lane / 16; }
};

/// Where a lane finds fragments b and b + 1 of a block of rows, 64 columns wide, as the copy engine has swizzled it.
__device__ inline unsigned swizzled_fragments(unsigned at, int b) {
    const Lane me;
    return at + static_cast<unsigned>(me.row()) * 128 +
           (static_cast<unsigned>(b + me.column_block()) ^ (me.row() & 7)) * 16;
}

/// Rounds both to bf16, and gives them as one word.
__device__ inline unsigned rounded(float& low, float& high) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    low = __low2float(both);
    high = __high2float(both);
    unsigned word;
    memcpy(&word, &both, sizeof word);
    return word;
}
__device__ inline unsigned as_word(float low, float high) { return rounded(low, high); }
__device__ inline float2 from_word(unsigned word) {
    __nv_bfloat162 both;
    memcpy(&both, &word, sizeof word);
    return __bfloat1622float2(both);
}

/// The product of a piece of both factors, added to c or, the first, in its place. Where columns are neighbours, the
/// second factor comes in blocks of 64, block_step bytes apart.
template <bool columns_are_neighbours, class Sums>
__device__ inline void multiply_piece(Sums& c, unsigned stage, bool first, unsigned block_step = 16) {
    constexpr unsigned w_step =
        columns_are_neighbours ? 16 * 128 : 16 * 2;  // bytes to the next 16 of the inner dimension
    const std::uint64_t x = tile_at(stage), w = tile_at(stage + x_bytes, block_step);
#pragma unroll
    for (int k = 0; k < depth / 16; ++k)
#pragma unroll
        for (int block = 0; block < 2; ++block)
            multiply<columns_are_neighbours>(c[block], x + block * (x_bytes / 2 >> 4) + 2 * k, w + k * (w_step >> 4),
                                             k > 0 || !first);
}

template <class Op>
constexpr unsigned shared_bytes() {
    return 1024 + Op::stages * Op::stage_bytes + 2 * Op::slots * Op::slot_bytes + 8 * (2 * Op::stages + 4 * Op::slots) +
           2 * Op::columns_summed * static_cast<unsigned>(sizeof(float));
}

/// The slots of one of the multiplying groups; its chunks take them in turns.
struct SlotsOf {
    int group;
    unsigned first_slot, first_ready, first_done;
    int slots;
    unsigned bytes;
    __device__ int index(int chunk) const { return group * slots + chunk % slots; }
    __device__ unsigned slot(int chunk) const { return first_slot + index(chunk) * bytes; }
    __device__ unsigned ready(int chunk) const { return first_ready + 8 * index(chunk); }
    __device__ unsigned done(int chunk) const { return first_done + 8 * index(chunk); }
    __device__ unsigned parity(int chunk) const { return chunk / slots & 1; }
};

template <class Op>
__global__ void __launch_bounds__(threads, 1) __cluster_dims__(2, 1, 1)
    product_kernel(const __grid_constant__ typename Op::Args args, const Sizes sizes) {
    constexpr int stages = Op::stages, slots = Op::slots, chunks = Op::chunks;
    extern __shared__ unsigned char memory[];
    const unsigned ring = (shared_address(memory) + 1023) & ~1023u, first_slot = ring + stages * Op::stage_bytes;
    const unsigned full = first_slot + 2 * slots * Op::slot_bytes, empty = full + 8 * stages;
    const unsigned first_ready = empty + 8 * stages, first_done = first_ready + 8 * 2 * slots;
    [[maybe_unused]] const unsigned column_sums = first_done + 8 * 2 * slots;
    const unsigned block = block_in_cluster();
    if (threadIdx.x == 0) {
        for (int i = 0; i < stages; ++i) {
            barrier_init(full + 8 * i, 1);
            barrier_init(empty + 8 * i, 2);  // the group that has read it, in either block
        }
        for (int i = 0; i < 2 * slots; ++i) {
            barrier_init(first_ready + 8 * i, 1);
            barrier_init(first_done + 8 * i, group_threads);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster_meet();

    const int clusters = static_cast<int>(gridDim.x) / 2, first = static_cast<int>(blockIdx.x) / 2;
    const int tiles = sizes.row_pairs * sizes.column_tiles, count = (tiles - first + clusters - 1) / clusters;
    const auto row_of = [&](const Place& place) { return (2 * place.row_pair + static_cast<int>(block)) * tile_rows; };
    const int group = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / group_threads, 0);
    if (group == 0) {
        give_up_registers<40>();
        if (threadIdx.x == 0) {
            int stage = 0;
            unsigned parity = 1;  // of a barrier that nobody has used: that phase counts as over
            for (int i = 0; i < count; ++i) {
                const Place place = place_of(sizes, first + i * clusters);
                for (int step = 0; step < sizes.steps; ++step) {
                    barrier_wait(empty + 8 * stage, parity);
                    barrier_expect(full + 8 * stage, Op::stage_bytes);
                    Op::fetch(args, ring + stage * Op::stage_bytes, full + 8 * stage, step, row_of(place),
                              place.column_tile, block);
                    if (++stage == stages) stage = 0, parity ^= 1;
                }
            }
        }
        if (threadIdx.x == 32 || threadIdx.x == 64) {
            const int mine = static_cast<int>(threadIdx.x) / 32 - 1, all = (count - mine + 1) / 2 * chunks;
            const SlotsOf of{mine, first_slot, first_ready, first_done, slots, Op::slot_bytes};
            const auto with = [&](int chunk, auto what) {
                const Place place = place_of(sizes, first + (2 * (chunk / chunks) + mine) * clusters);
                what(of.slot(chunk), row_of(place), place.column_tile, chunk % chunks);
            };
            const auto bring = [&](int chunk) {
                with(chunk, [&](unsigned slot, int row, int column_tile, int part) {
                    Op::bring(args, slot, of.ready(chunk), row, column_tile, part);
                });
            };
            for (int chunk = 0; chunk < slots && chunk < all; ++chunk) bring(chunk);
            for (int chunk = 0; chunk < all; ++chunk) {
                barrier_wait(of.done(chunk), of.parity(chunk));
                with(chunk, [&](unsigned slot, int row, int column_tile, int part) {
                    Op::take(args, slot, row, column_tile, part);
                });
                stores_given();
                stores_read<Op::lag>();
                if (const int next = chunk - Op::lag + slots; chunk >= Op::lag && next < all) bring(next);
            }
            stores_read<0>();
        }
        __syncwarp();
    } else {
        take_registers<232>();
        const int mine = group - 1;
        const unsigned my_turn = 1 + mine, other_turn = 2 - mine;
        const int thread = static_cast<int>(threadIdx.x) % group_threads;
        const auto release = [&](int stage) {  // one thread for each block
            if (thread == 0 || thread == 32) barrier_arrive(empty + 8 * stage, thread == 32);
        };
        if (mine == 1) pass(other_turn, 2 * group_threads);
        const SlotsOf of{mine, first_slot, first_ready, first_done, slots, Op::slot_bytes};
        int chunk = 0;
        for (int i = mine; i < count; i += 2) {
            const Place place = place_of(sizes, first + i * clusters);
            typename Op::Sums c;
            int stage = i * sizes.steps % stages, last = 0;
            unsigned parity = i * sizes.steps / stages & 1;
            meet(my_turn, 2 * group_threads);
            hold(c[0]), hold(c[1]);
            for (int step = 0; step < sizes.steps; ++step) {
                barrier_wait(full + 8 * stage, parity);
                products_begin();
                Op::multiply(c, ring + stage * Op::stage_bytes, step == 0);
                products_given();
                if (step > 0) {
                    products_wait<1>();
                    release(last);
                }
                last = stage;
                if (++stage == stages) stage = 0, parity ^= 1;
            }
            if (i + 1 < count) pass(other_turn, 2 * group_threads);
            products_wait<0>();
            hold(c[0]), hold(c[1]);
            release(last);
#pragma unroll
            for (int part = 0; part < chunks; ++part, ++chunk) {
                barrier_wait(of.ready(chunk), of.parity(chunk));
                Op::behind(args, c, of.slot(chunk), place.column_tile, part);
                over_for_copies();
                barrier_arrive(of.done(chunk));
            }
            if constexpr (Op::columns_summed > 0) {
                auto* sums = reinterpret_cast<float*>(memory + (column_sums - shared_address(memory)));
                Op::sum_columns(args, c, sums + mine * Op::columns_summed, 3 + mine, 2 * place.row_pair + block,
                                place.column_tile);
            }
        }
    }
    cluster_meet();  // nobody leaves while others still write to its memory
}

/// Of such factors, and large enough that it pays.
inline bool has_tiled_product(const Exec& exec, DType dtype, std::int64_t rows, std::int64_t inner,
                              std::int64_t columns) {
    return exec.device == Device::cuda && exec.gpu->hopper && dtype == DType::bf16 && inner % 8 == 0 &&
           columns % 8 == 0 && inner >= depth && columns >= 128 && rows >= 2 * tile_rows &&
           rows * columns >= std::int64_t{1} << 21;
}

template <class Op>
void launch(const Exec& exec, const typename Op::Args& args, std::int64_t rows, std::int64_t inner,
            std::int64_t columns, int tile_columns) {
    static_assert(Op::lag < Op::slots, "a slot is filled again before its turn");
    static_assert(shared_bytes<Op>() <= 227 * 1024, "more than a block may have");
    const auto pieces = [](std::int64_t n, std::int64_t of) { return static_cast<int>((n + of - 1) / of); };
    const Sizes sizes{pieces(rows, 2 * tile_rows), pieces(columns, tile_columns), pieces(inner, depth),
                      std::max(2, static_cast<int>(band_elements / inner))};
    const int allowed =
        exec.gpu->product_multiprocessors > 0 ? exec.gpu->product_multiprocessors : exec.gpu->multiprocessors;
    const int blocks = 2 * std::min(allowed / 2, sizes.row_pairs * sizes.column_tiles);
    static const bool prepared = [] {
        TERA_CUDA(cudaFuncSetAttribute(product_kernel<Op>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(shared_bytes<Op>())));
        return true;
    }();
    (void)prepared;
    product_kernel<Op><<<blocks, threads, shared_bytes<Op>(), exec.gpu->stream>>>(args, sizes);
    TERA_LAUNCHED();
}

}  // namespace tera::ops::cuda::hopper
