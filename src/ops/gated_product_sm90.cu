#include "ops/activated_product.h"
#include "ops/activation_functions.cuh"
#include "ops/tiled_product.cuh"

// The products around SwiGLU.
namespace tera::ops::cuda {
namespace {

using namespace hopper;

template <class F>
struct Forward {
    struct Args {
        CUtensorMap x, gate_w, up_w, gate_h, up_h, a;
    };
    static constexpr int stages = 4, half = 96, part = half / 2;
    static constexpr unsigned half_bytes = half * depth * 2, stage_bytes = x_bytes + 2 * half_bytes;
    static constexpr int chunks = 4, slots = 1, lag = 0;  // a chunk: half the columns of a block of rows
    static constexpr unsigned part_bytes = block_rows * part * 2, slot_bytes = 3 * part_bytes;
    using Sums = float[2][half];
    static constexpr int columns_summed = 0;

    __device__ static void fetch(const Args& args, unsigned to, unsigned full, int step, int row, int column_tile,
                                 unsigned block) {
        load_box(args.x, to, full, step * depth, row);
        load_box_for(both_blocks, block == 0 ? args.gate_w : args.up_w, to + x_bytes + block * half_bytes, full,
                     step * depth, column_tile * half);
    }
    __device__ static void multiply(Sums& c, unsigned stage, bool first) { multiply_piece<false>(c, stage, first); }
    __device__ static void bring(const Args&, unsigned, unsigned ready, int, int, int) { barrier_arrive(ready); }
    __device__ static void behind(const Args&, Sums& c, unsigned slot, int, int chunk) {
        const Lane me;
        const unsigned at = slot + static_cast<unsigned>(me.row() * part * 2 + me.column_block() * 16);
#pragma unroll
        for (int b = 0; b < part / 8; b += 2) {
            unsigned g[4], u[4], a[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                float* const gates = &c[chunk / 2][chunk % 2 * (part / 2) + 4 * b + 2 * i];
                float* const ups = gates + half / 2;
                g[i] = rounded(gates[0], gates[1]);
                u[i] = rounded(ups[0], ups[1]);
                a[i] = as_word(F::value(gates[0]) * ups[0], F::value(gates[1]) * ups[1]);
            }
            store_fragments(at + b * 16, g);
            store_fragments(at + part_bytes + b * 16, u);
            store_fragments(at + 2 * part_bytes + b * 16, a);
        }
    }
    __device__ static void take(const Args& args, unsigned slot, int row, int column_tile, int chunk) {
        const int column = column_tile * half + chunk % 2 * part, top = row + chunk / 2 * block_rows;
        store_box(args.gate_h, slot, column, top);
        store_box(args.up_h, slot + part_bytes, column, top);
        store_box(args.a, slot + 2 * part_bytes, column, top);
    }
};

/// rebuilds: a, which forward has not kept, is written too; there is less room for wide tiles then.
template <class F, bool rebuilds>
struct Backward {
    struct Args {
        CUtensorMap dy, w, gate_h, up_h, gate_dh, up_dh, a;
    };
    static constexpr int stages = 4, box = 64, boxes = rebuilds ? 2 : 3, columns = boxes * box;
    static constexpr unsigned box_bytes = depth * box * 2, stage_bytes = x_bytes + boxes * box_bytes;
    static constexpr int chunks = 2 * boxes;  // a chunk: a box of the gate, one of the other half, of a
    static constexpr int slots = 2, lag = 0;
    static constexpr unsigned part_bytes = block_rows * box * 2, slot_bytes = (rebuilds ? 3 : 2) * part_bytes;
    using Sums = float[2][columns / 2];
    static constexpr int columns_summed = 0, at_once = rebuilds ? 4 : 2;

    __device__ static int column_of(int column_tile, int chunk) { return column_tile * columns + chunk % boxes * box; }
    __device__ static int row_of(int row, int chunk) { return row + chunk / boxes * block_rows; }

    __device__ static void fetch(const Args& args, unsigned to, unsigned full, int step, int row, int column_tile,
                                 unsigned block) {
        load_box(args.dy, to, full, step * depth, row);
#pragma unroll
        for (int b = 0; b < boxes; ++b)
            load_box_for(both_blocks, args.w, to + x_bytes + b * box_bytes + block * (box_bytes / 2), full,
                         column_of(column_tile, b), step * depth + static_cast<int>(block) * (depth / 2));
    }
    __device__ static void multiply(Sums& c, unsigned stage, bool first) {
        multiply_piece<true>(c, stage, first, box_bytes);
    }
    __device__ static void bring(const Args& args, unsigned slot, unsigned ready, int row, int column_tile, int chunk) {
        barrier_expect(ready, 2 * part_bytes);
        load_box(args.gate_h, slot, ready, column_of(column_tile, chunk), row_of(row, chunk));
        load_box(args.up_h, slot + part_bytes, ready, column_of(column_tile, chunk), row_of(row, chunk));
    }
    __device__ static void behind(const Args&, Sums& c, unsigned slot, int, int chunk) {
        const auto gate_at = [slot](int b) { return swizzled_fragments(slot, b); };
        constexpr int pairs = box / 16;  // of fragments; as many at once as registers allow
#pragma unroll
        for (int first = 0; first < pairs; first += at_once) {
            unsigned g[at_once][4], u[at_once][4];
            [[maybe_unused]] unsigned a[at_once][4];
#pragma unroll
            for (int p = 0; p < at_once; ++p) {
                load_fragments(g[p], gate_at(2 * (first + p)));
                load_fragments(u[p], gate_at(2 * (first + p)) + part_bytes);
            }
#pragma unroll
            for (int p = 0; p < at_once; ++p)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const float* d = &c[chunk / boxes][chunk % boxes * (box / 2) + 8 * (first + p) + 2 * i];
                    const float2 gates = from_word(g[p][i]), ups = from_word(u[p][i]);
                    const ValueAndSlope<float> f0 = F::both(gates.x), f1 = F::both(gates.y);
                    g[p][i] = as_word(d[0] * ups.x * f0.slope, d[1] * ups.y * f1.slope);
                    u[p][i] = as_word(d[0] * f0.value, d[1] * f1.value);
                    if constexpr (rebuilds) a[p][i] = as_word(f0.value * ups.x, f1.value * ups.y);
                }
#pragma unroll
            for (int p = 0; p < at_once; ++p) {
                store_fragments(gate_at(2 * (first + p)), g[p]);
                store_fragments(gate_at(2 * (first + p)) + part_bytes, u[p]);
                if constexpr (rebuilds) store_fragments(gate_at(2 * (first + p)) + 2 * part_bytes, a[p]);
            }
        }
    }
    __device__ static void take(const Args& args, unsigned slot, int row, int column_tile, int chunk) {
        const int column = column_of(column_tile, chunk), top = row_of(row, chunk);
        store_box(args.gate_dh, slot, column, top);
        store_box(args.up_dh, slot + part_bytes, column, top);
        if constexpr (rebuilds) store_box(args.a, slot + 2 * part_bytes, column, top);
    }
};

template <bool rebuilds>
void backward(const Exec& exec, const ActivatedGrads& to, ConstTensor dy, ConstTensor w, ConstTensor h) {
    using Op = Backward<Silu, rebuilds>;
    const std::int64_t rows = dy.rows(), inner = dy.cols(), half = w.cols();
    const auto boxes = [&](const std::byte* data, std::int64_t step) {
        return map_of(data, half, rows, step, Op::box, block_rows, true);
    };
    const typename Op::Args args{map_of(dy.data, inner, rows, inner, depth, tile_rows, true),
                                 map_of(w.data, half, inner, half, Op::box, depth / 2, true),
                                 boxes(h.data, 2 * half),
                                 boxes(h.data + 2 * half, 2 * half),
                                 boxes(to.dh.data, 2 * half),
                                 boxes(to.dh.data + 2 * half, 2 * half),
                                 rebuilds ? boxes(to.a.data, half) : CUtensorMap{}};
    launch<Op>(exec, args, rows, inner, half, Op::columns);
}

}  // namespace

bool has_gated_products(const Exec& exec, ActivationKind kind, DType dtype, const ActivatedSizes& sizes) {
    constexpr std::int64_t most_inner =
        4096;  // with more, the activation is too small a part (bench/activated_products)
    return kind == ActivationKind::swiglu && sizes.inner <= most_inner &&
           has_tiled_product(exec, dtype, sizes.rows, sizes.inner, sizes.width);
}

void gated_product(const Exec& exec, Tensor a, Tensor h, ConstTensor x, ConstTensor w) {
    if (exec.counts()) return;
    using Op = Forward<Silu>;
    const std::int64_t rows = x.rows(), inner = x.cols(), half = a.cols();
    const Op::Args args{map_of(x.data, inner, rows, inner, depth, tile_rows, true),
                        map_of(w.data, inner, half, inner, depth, Op::half, true),
                        map_of(w.data + 2 * half * inner, inner, half, inner, depth, Op::half, true),
                        map_of(h.data, half, rows, 2 * half, Op::part, block_rows, false),
                        map_of(h.data + 2 * half, half, rows, 2 * half, Op::part, block_rows, false),
                        map_of(a.data, half, rows, half, Op::part, block_rows, false)};
    launch<Op>(exec, args, rows, inner, half, Op::half);
}

void gated_product_backward(const Exec& exec, const ActivatedGrads& to, ConstTensor dy, ConstTensor w, ConstTensor h) {
    if (exec.counts()) return;
    if (to.a)
        backward<true>(exec, to, dy, w, h);
    else
        backward<false>(exec, to, dy, w, h);
}

}  // namespace tera::ops::cuda
