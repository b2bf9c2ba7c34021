#include "ops/activated_product.h"
#include "ops/activation_functions.cuh"
#include "ops/column_sum.h"
#include "ops/tiled_product.cuh"

// The products around activations without a gate.
namespace tera::ops::cuda {
namespace {

using namespace hopper;

constexpr int box = 64, boxes = 3, tile_columns = boxes * box;
constexpr unsigned w_bytes = tile_columns * depth * 2, part_bytes = block_rows * box * 2;

/// What both directions have in common. A part of a tile: a box of one block of rows; first both of the first columns.
struct Tile {
    static constexpr int stages = 4;
    static constexpr unsigned stage_bytes = x_bytes + w_bytes;
    static constexpr int parts = 2 * boxes;
    using Sums = float[2][tile_columns / 2];

    __device__ static int box_of(int part) { return part / 2; }
    __device__ static int block_of(int part) { return part % 2; }
    __device__ static int column_of(int column_tile, int part) {
        return column_tile * tile_columns + box_of(part) * box;
    }
    __device__ static int row_of(int row, int part) { return row + block_of(part) * block_rows; }
};

template <class F>
struct Forward : Tile {
    struct Args {
        CUtensorMap x, w, h, a;
        const __nv_bfloat16* bias;
        int width;
    };
    static constexpr int chunks = parts, slots = 2, lag = 0, columns_summed = 0;
    static constexpr unsigned slot_bytes = 2 * part_bytes;  // h, a

    __device__ static void fetch(const Args& args, unsigned to, unsigned full, int step, int row, int column_tile,
                                 unsigned block) {
        load_box(args.x, to, full, step * depth, row);
        load_box_for(both_blocks, args.w, to + x_bytes + block * (w_bytes / 2), full, step * depth,
                     column_tile * tile_columns + static_cast<int>(block) * (tile_columns / 2));
    }
    __device__ static void multiply(Sums& c, unsigned stage, bool first) { multiply_piece<false>(c, stage, first); }
    __device__ static void bring(const Args&, unsigned, unsigned ready, int, int, int) { barrier_arrive(ready); }
    __device__ static void behind(const Args& args, Sums& c, unsigned slot, int column_tile, int part) {
        const int column = column_of(column_tile, part) + 2 * (Lane{}.lane % 4);
        float* sums = &c[block_of(part)][box_of(part) * (box / 2)];
        if (args.bias != nullptr) {
            unsigned biases[box / 8];
#pragma unroll
            for (int b = 0; b < box / 8; ++b)
                biases[b] = column + 8 * b < args.width
                                ? __ldg(reinterpret_cast<const unsigned*>(args.bias + column + 8 * b))
                                : 0;
#pragma unroll
            for (int i = 0; i < box / 2; i += 2) {
                const float2 bias = from_word(biases[i / 4]);
                sums[i] += bias.x;
                sums[i + 1] += bias.y;
            }
        }
#pragma unroll
        for (int b = 0; b < box / 8; b += 2) {
            unsigned h[4], a[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                float &h0 = sums[4 * b + 2 * i], &h1 = sums[4 * b + 2 * i + 1];
                h[i] = rounded(h0, h1);
                a[i] = as_word(F::value(h0), F::value(h1));
            }
            store_fragments(swizzled_fragments(slot, b), h);
            store_fragments(swizzled_fragments(slot + part_bytes, b), a);
        }
    }
    __device__ static void take(const Args& args, unsigned slot, int row, int column_tile, int part) {
        store_box(args.h, slot, column_of(column_tile, part), row_of(row, part));
        store_box(args.a, slot + part_bytes, column_of(column_tile, part), row_of(row, part));
    }
};

/// Sums over lanes that are 4, 8 and 16 apart: each gives away half of what it has, of the other half it takes the sum.
template <int half, int n>
__device__ inline void exchange_halves(float (&v)[n], int lane) {
    constexpr int apart = 2 * half;
    const bool upper = lane & apart;
#pragma unroll
    for (int i = 0; i < half; ++i) {
        const float given = upper ? v[i] : v[i + half], kept = upper ? v[i + half] : v[i];
        v[i] = kept + __shfl_xor_sync(0xffffffffu, given, apart);
    }
    if constexpr (half > 2) exchange_halves<half / 2>(v, lane);
}

/// rebuilds: a, which forward has not kept, is written too.
template <class F, bool rebuilds>
struct Backward : Tile {
    struct Args {
        CUtensorMap dy, w, h, dh, a;
        float* partial;  ///< [row tiles, width]: column sums of dh; null: not wanted
        int width;
    };
    static constexpr int chunks = parts, slots = rebuilds ? 2 : 4, lag = rebuilds ? 0 : 1;
    static constexpr int columns_summed = tile_columns;
    static constexpr unsigned slot_bytes = (rebuilds ? 2 : 1) * part_bytes, box_bytes = depth * box * 2;

    __device__ static void fetch(const Args& args, unsigned to, unsigned full, int step, int row, int column_tile,
                                 unsigned block) {
        load_box(args.dy, to, full, step * depth, row);
#pragma unroll
        for (int b = 0; b < boxes; ++b)
            load_box_for(both_blocks, args.w, to + x_bytes + b * box_bytes + block * (box_bytes / 2), full,
                         column_tile * tile_columns + b * box, step * depth + static_cast<int>(block) * (depth / 2));
    }
    __device__ static void multiply(Sums& c, unsigned stage, bool first) {
        multiply_piece<true>(c, stage, first, box_bytes);
    }
    __device__ static void bring(const Args& args, unsigned slot, unsigned ready, int row, int column_tile, int part) {
        barrier_expect(ready, part_bytes);
        load_box(args.h, slot, ready, column_of(column_tile, part), row_of(row, part));
    }
    /// Behind the second block of rows, c[0] has the sums of both.
    __device__ static void behind(const Args&, Sums& c, unsigned slot, int, int part) {
#pragma unroll
        for (int b = 0; b < box / 8; b += 2) {
            const unsigned at = swizzled_fragments(slot, b);
            unsigned h[4];
            [[maybe_unused]] unsigned a[4];
            load_fragments(h, at);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int k = box_of(part) * (box / 2) + 4 * b + 2 * i;
                float &d0 = c[block_of(part)][k], &d1 = c[block_of(part)][k + 1];
                const float2 x = from_word(h[i]);
                const ValueAndSlope<float> f0 = F::both(x.x), f1 = F::both(x.y);
                d0 *= f0.slope;
                d1 *= f1.slope;
                h[i] = as_word(d0, d1);
                if constexpr (rebuilds) a[i] = as_word(f0.value, f1.value);
                if (block_of(part) == 1) {
                    c[0][k] += d0;
                    c[0][k + 1] += d1;
                }
            }
            store_fragments(at, h);
            if constexpr (rebuilds) store_fragments(at + part_bytes, a);
        }
    }
    __device__ static void take(const Args& args, unsigned slot, int row, int column_tile, int part) {
        store_box(args.dh, slot, column_of(column_tile, part), row_of(row, part));
        if constexpr (rebuilds) store_box(args.a, slot + part_bytes, column_of(column_tile, part), row_of(row, part));
    }

    /// Over the rows of a tile: a lane's two first, then the warp's sixteen, so that a lane has two neighbouring
    /// columns of each box, then the warps in order.
    __device__ static void sum_columns(const Args& args, Sums& c, float* sums, unsigned meeting, int row_tile,
                                       int column_tile) {
        if (args.partial == nullptr) return;
        const Lane me;
        float2 of_warp[boxes];
#pragma unroll
        for (int n = 0; n < boxes; ++n) {
            float v[box / 4];
#pragma unroll
            for (int b = 0; b < box / 8; ++b)
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int k = n * (box / 2) + 4 * b + i;
                    v[2 * b + i] = c[0][k] + c[0][k + 2];
                }
            exchange_halves<box / 8>(v, me.lane);
            of_warp[n] = {v[0], v[1]};
        }
        for (int turn = 0; turn < group_threads / 32; ++turn) {
            if (me.warp == turn)
#pragma unroll
                for (int n = 0; n < boxes; ++n) {
                    const int column = n * box + 2 * me.lane, at = column_tile * tile_columns + column;
                    float2& sum = *reinterpret_cast<float2*>(sums + column);
                    const float2 before = turn == 0 ? float2{} : sum;
                    const float2 now{before.x + of_warp[n].x, before.y + of_warp[n].y};
                    if (turn < group_threads / 32 - 1)
                        sum = now;
                    else if (at < args.width)
                        *reinterpret_cast<float2*>(args.partial + std::int64_t{row_tile} * args.width + at) = now;
                }
            meet(meeting, group_threads);
        }
    }
};

template <class F>
void with_kind(ActivationKind kind, const F& f) {
    switch (kind) {
        case ActivationKind::gelu_tanh:
            return f(GeluTanh{});
        case ActivationKind::gelu_erf:
            return f(GeluErf{});
        case ActivationKind::squared_relu:
            return f(SquaredRelu{});
        case ActivationKind::swiglu:
        case ActivationKind::geglu:
            break;
    }
    throw Error("not an activation without a gate");
}

/// A matrix of the activation's size, in chunks.
CUtensorMap in_chunks(ConstTensor t) { return map_of(t.data, t.cols(), t.rows(), t.cols(), box, block_rows, true); }

template <class F, bool rebuilds>
void backward(const Exec& exec, const ActivatedGrads& to, Tensor partial, ConstTensor dy, ConstTensor w,
              ConstTensor h) {
    using Op = Backward<F, rebuilds>;
    const std::int64_t rows = dy.rows(), inner = dy.cols(), width = w.cols();
    const typename Op::Args args{map_of(dy.data, inner, rows, inner, depth, tile_rows, true),
                                 map_of(w.data, width, inner, width, box, depth / 2, true),
                                 in_chunks(h),
                                 in_chunks(to.dh),
                                 rebuilds ? in_chunks(to.a) : CUtensorMap{},
                                 to.db ? partial.ptr<float>() : nullptr,
                                 static_cast<int>(width)};
    launch<Op>(exec, args, rows, inner, width, tile_columns);
}

}  // namespace

bool has_plain_products(const Exec& exec, ActivationKind kind, DType dtype, const ActivatedSizes& sizes) {
    constexpr std::int64_t most_inner =
        4096;  // with more, the activation is too small a part (bench/activated_products)
    return !is_gated(kind) && sizes.inner <= most_inner &&
           has_tiled_product(exec, dtype, sizes.rows, sizes.inner, sizes.width);
}

void plain_product(const Exec& exec, ActivationKind kind, Tensor a, Tensor h, ConstTensor x, ConstTensor w,
                   ConstTensor bias) {
    if (exec.counts()) return;
    const std::int64_t rows = x.rows(), inner = x.cols(), width = a.cols();
    with_kind(kind, [&](auto f) {
        using Op = Forward<decltype(f)>;
        const typename Op::Args args{map_of(x.data, inner, rows, inner, depth, tile_rows, true),
                                     map_of(w.data, inner, width, inner, depth, tile_columns / 2, true),
                                     in_chunks(h),
                                     in_chunks(a),
                                     bias ? dptr<bf16_t>(bias) : nullptr,
                                     static_cast<int>(width)};
        launch<Op>(exec, args, rows, inner, width, tile_columns);
    });
}

void plain_product_backward(const Exec& exec, ActivationKind kind, const ActivatedGrads& to, ConstTensor dy,
                            ConstTensor w, ConstTensor h) {
    ArenaScope scope(*exec.arena);
    const std::int64_t row_tiles = (dy.rows() + 2 * tile_rows - 1) / (2 * tile_rows) * 2;
    const Tensor partial = to.db ? exec.tensor(DType::f32, {row_tiles, w.cols()}) : Tensor{};
    if (exec.counts()) return;
    with_kind(kind, [&](auto f) {
        if (to.a)
            backward<decltype(f), true>(exec, to, partial, dy, w, h);
        else
            backward<decltype(f), false>(exec, to, partial, dy, w, h);
    });
    if (to.db) add_column_sums(exec, {{to.db, partial}});
}

}  // namespace tera::ops::cuda
