#include "core/cuda/tensor_map.h"
#include "ops/activation_functions.cuh"
#include "ops/gated_product.h"
#include "ops/hopper.cuh"

namespace tera::ops::cuda {
namespace {

using namespace hopper;

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
    bool first = threadIdx.x % group_threads == 0;
    __device__ int row() const { return 16 * warp + lane % 16; }
    __device__ int column_block() const { return lane / 16; }
};

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

template <class F>
struct Forward {
    struct Maps {
        CUtensorMap x, gate_w, up_w, gate_h, up_h, a;
    };
    static constexpr int stages = 4, half = 80;
    static constexpr unsigned half_bytes = half * depth * 2, stage_bytes = x_bytes + 2 * half_bytes;
    static constexpr int chunks = 2, slots = 1;  // a chunk: a block of rows
    static constexpr unsigned part_bytes = block_rows * half * 2, slot_bytes = 3 * part_bytes;
    using Sums = float[2][half];

    __device__ static void fetch(const Maps& maps, unsigned to, unsigned full, int step, int row, int column_tile,
                                 unsigned block) {
        load_box(maps.x, to, full, step * depth, row);
        load_box_for(both_blocks, block == 0 ? maps.gate_w : maps.up_w, to + x_bytes + block * half_bytes, full,
                     step * depth, column_tile * half);
    }
    __device__ static void multiply(Sums& c, unsigned stage, bool first) {
        const std::uint64_t x = tile_at(stage), w = tile_at(stage + x_bytes);
#pragma unroll
        for (int k = 0; k < depth / 16; ++k)
#pragma unroll
            for (int block = 0; block < 2; ++block)
                multiply_160(c[block], x + block * (x_bytes / 2 >> 4) + 2 * k, w + 2 * k, k > 0 || !first);
    }
    __device__ static void bring(const Maps&, unsigned, unsigned ready, int, int, int) { barrier_arrive(ready); }
    __device__ static void behind(Sums& c, unsigned slot, int block) {
        const Lane me;
        const unsigned at = slot + static_cast<unsigned>(me.row() * half * 2 + me.column_block() * 16);
#pragma unroll
        for (int b = 0; b < half / 8; b += 2) {
            unsigned g[4], u[4], a[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                float &g0 = c[block][4 * b + 2 * i], &g1 = c[block][4 * b + 2 * i + 1];
                float &u0 = c[block][half / 2 + 4 * b + 2 * i], &u1 = c[block][half / 2 + 4 * b + 2 * i + 1];
                g[i] = rounded(g0, g1);
                u[i] = rounded(u0, u1);
                a[i] = as_word(F::value(g0) * u0, F::value(g1) * u1);
            }
            store_fragments(at + b * 16, g);
            store_fragments(at + part_bytes + b * 16, u);
            store_fragments(at + 2 * part_bytes + b * 16, a);
        }
    }
    __device__ static void take(const Maps& maps, unsigned slot, int row, int column_tile, int block) {
        const int column = column_tile * half, top = row + block * block_rows;
        store_box(maps.gate_h, slot, column, top);
        store_box(maps.up_h, slot + part_bytes, column, top);
        store_box(maps.a, slot + 2 * part_bytes, column, top);
    }
};

/// rebuilds: a, which forward has not kept, is written too.
template <class F, bool rebuilds>
struct Backward {
    struct Maps {
        CUtensorMap dy, w, gate_h, up_h, gate_dh, up_dh, a;
    };
    static constexpr int stages = 4, box = 64, columns = 2 * box;
    static constexpr unsigned box_bytes = depth * box * 2, stage_bytes = x_bytes + 2 * box_bytes;
    static constexpr int chunks = 4,
                         slots = rebuilds ? 2 : 3;  // a chunk: a box of the gate, one of the other half, of a
    static constexpr unsigned part_bytes = block_rows * box * 2, slot_bytes = (rebuilds ? 3 : 2) * part_bytes;
    using Sums = float[2][columns / 2];

    __device__ static void fetch(const Maps& maps, unsigned to, unsigned full, int step, int row, int column_tile,
                                 unsigned block) {
        load_box(maps.dy, to, full, step * depth, row);
        load_box_for(both_blocks, maps.w, to + x_bytes + block * box_bytes, full,
                     column_tile * columns + static_cast<int>(block) * box, step * depth);
    }
    __device__ static void multiply(Sums& c, unsigned stage, bool first) {
        const std::uint64_t x = tile_at(stage), w = tile_at(stage + x_bytes, box_bytes);
#pragma unroll
        for (int k = 0; k < depth / 16; ++k)
#pragma unroll
            for (int block = 0; block < 2; ++block)
                multiply_128_columns(c[block], x + block * (x_bytes / 2 >> 4) + 2 * k, w + k * (16 * 128 >> 4),
                                     k > 0 || !first);
    }
    __device__ static void bring(const Maps& maps, unsigned slot, unsigned ready, int row, int column_tile, int chunk) {
        const int column = column_tile * columns + chunk % 2 * box, top = row + chunk / 2 * block_rows;
        barrier_expect(ready, 2 * part_bytes);
        load_box(maps.gate_h, slot, ready, column, top);
        load_box(maps.up_h, slot + part_bytes, ready, column, top);
    }
    __device__ static void behind(Sums& c, unsigned slot, int chunk) {
        const Lane me;
        const unsigned at = slot + static_cast<unsigned>(me.row()) * 128;
#pragma unroll
        for (int b = 0; b < box / 8; b += 2) {
            const unsigned gate = at + (static_cast<unsigned>(b + me.column_block()) ^ (me.row() & 7)) * 16;
            unsigned g[4], u[4];
            [[maybe_unused]] unsigned a[4];
            load_fragments(g, gate);
            load_fragments(u, gate + part_bytes);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int k = chunk % 2 * (box / 2) + 4 * b + 2 * i;
                float &d0 = c[chunk / 2][k], &d1 = c[chunk / 2][k + 1];
                (void)rounded(d0, d1);
                const float2 gates = from_word(g[i]), ups = from_word(u[i]);
                const ValueAndSlope<float> f0 = F::both(gates.x), f1 = F::both(gates.y);
                g[i] = as_word(d0 * ups.x * f0.slope, d1 * ups.y * f1.slope);
                u[i] = as_word(d0 * f0.value, d1 * f1.value);
                if constexpr (rebuilds) a[i] = as_word(f0.value * ups.x, f1.value * ups.y);
            }
            store_fragments(gate, g);
            store_fragments(gate + part_bytes, u);
            if constexpr (rebuilds) store_fragments(gate + 2 * part_bytes, a);
        }
    }
    __device__ static void take(const Maps& maps, unsigned slot, int row, int column_tile, int chunk) {
        const int column = column_tile * columns + chunk % 2 * box, top = row + chunk / 2 * block_rows;
        store_box(maps.gate_dh, slot, column, top);
        store_box(maps.up_dh, slot + part_bytes, column, top);
        if constexpr (rebuilds) store_box(maps.a, slot + 2 * part_bytes, column, top);
    }
};

template <class Op>
constexpr unsigned shared_bytes() {
    return 1024 + Op::stages * Op::stage_bytes + 2 * Op::slots * Op::slot_bytes + 8 * (2 * Op::stages + 4 * Op::slots);
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
    product_kernel(const __grid_constant__ typename Op::Maps maps, const Sizes sizes) {
    constexpr int stages = Op::stages, slots = Op::slots, chunks = Op::chunks;
    extern __shared__ unsigned char memory[];
    const unsigned ring = (shared_address(memory) + 1023) & ~1023u, first_slot = ring + stages * Op::stage_bytes;
    const unsigned full = first_slot + 2 * slots * Op::slot_bytes, empty = full + 8 * stages;
    const unsigned first_ready = empty + 8 * stages, first_done = first_ready + 8 * 2 * slots;
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
                    Op::fetch(maps, ring + stage * Op::stage_bytes, full + 8 * stage, step, row_of(place),
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
                    Op::bring(maps, slot, of.ready(chunk), row, column_tile, part);
                });
            };
            for (int chunk = 0; chunk < slots && chunk < all; ++chunk) bring(chunk);
            for (int chunk = 0; chunk < all; ++chunk) {
                barrier_wait(of.done(chunk), of.parity(chunk));
                with(chunk, [&](unsigned slot, int row, int column_tile, int part) {
                    Op::take(maps, slot, row, column_tile, part);
                });
                stores_given();
                stores_read();
                if (chunk + slots < all) bring(chunk + slots);
            }
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
                Op::behind(c, of.slot(chunk), part);
                written_for_copies();
                barrier_arrive(of.done(chunk));
            }
        }
    }
    cluster_meet();  // nobody leaves while others still write to its memory
}

template <class Op>
void launch(const Exec& exec, const typename Op::Maps& maps, std::int64_t rows, std::int64_t inner,
            std::int64_t tiles) {
    const auto pieces = [](std::int64_t n, std::int64_t of) { return static_cast<int>((n + of - 1) / of); };
    const Sizes sizes{pieces(rows, 2 * tile_rows), static_cast<int>(tiles), pieces(inner, depth),
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
    product_kernel<Op><<<blocks, threads, shared_bytes<Op>(), exec.gpu->stream>>>(maps, sizes);
    TERA_LAUNCHED();
}

}  // namespace

bool has_gated_products(const Exec& exec, ActivationKind kind, DType dtype, std::int64_t rows, std::int64_t inner,
                        std::int64_t half) {
    constexpr std::int64_t most_inner = 2048;  // with more, the activation is too small a part (bench/gated_products)
    return exec.device == Device::cuda && exec.gpu->hopper && dtype == DType::bf16 && kind == ActivationKind::swiglu &&
           inner % 8 == 0 && half % 8 == 0 && inner >= depth && inner <= most_inner && half >= 128 && rows >= 256 &&
           rows * half >= std::int64_t{1} << 21;
}

void gated_product(const Exec& exec, Tensor a, Tensor h, ConstTensor x, ConstTensor w) {
    using Op = Forward<Silu>;
    const std::int64_t rows = x.rows(), inner = x.cols(), half = a.cols();
    const Op::Maps maps{map_of(x.data, inner, rows, inner, depth, tile_rows, true),
                        map_of(w.data, inner, half, inner, depth, Op::half, true),
                        map_of(w.data + 2 * half * inner, inner, half, inner, depth, Op::half, true),
                        map_of(h.data, half, rows, 2 * half, Op::half, block_rows, false),
                        map_of(h.data + 2 * half, half, rows, 2 * half, Op::half, block_rows, false),
                        map_of(a.data, half, rows, half, Op::half, block_rows, false)};
    launch<Op>(exec, maps, rows, inner, (half + Op::half - 1) / Op::half);
}

namespace {

template <bool rebuilds>
void backward(const Exec& exec, Tensor dh, Tensor a, ConstTensor dy, ConstTensor w, ConstTensor h) {
    using Op = Backward<Silu, rebuilds>;
    const std::int64_t rows = dy.rows(), inner = dy.cols(), half = w.cols();
    const auto boxes = [&](const std::byte* data, std::int64_t step) {
        return map_of(data, half, rows, step, Op::box, block_rows, true);
    };
    const typename Op::Maps maps{map_of(dy.data, inner, rows, inner, depth, tile_rows, true),
                                 map_of(w.data, half, inner, half, Op::box, depth, true),
                                 boxes(h.data, 2 * half),
                                 boxes(h.data + 2 * half, 2 * half),
                                 boxes(dh.data, 2 * half),
                                 boxes(dh.data + 2 * half, 2 * half),
                                 rebuilds ? boxes(a.data, half) : CUtensorMap{}};
    launch<Op>(exec, maps, rows, inner, (half + Op::columns - 1) / Op::columns);
}

}  // namespace

void gated_product_backward(const Exec& exec, Tensor dh, Tensor a, ConstTensor dy, ConstTensor w, ConstTensor h) {
    if (a)
        backward<true>(exec, dh, a, dy, w, h);
    else
        backward<false>(exec, dh, {}, dy, w, h);
}

}  // namespace tera::ops::cuda
