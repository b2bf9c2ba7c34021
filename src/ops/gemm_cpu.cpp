// C is worked on in blocks of at most rows_block x cols_block elements and k_block terms: all threads pack the block's
// panels of A and B, then share out its tiles. A product with few rows (generation, attention) skips the first half: a
// tile packs its own columns of B, which no other tile needs.
#include <algorithm>
#include <vector>

#include "ops/gemm.h"
#include "ops/gemm_kernel.h"

namespace tera::ops::cpu {
namespace {

constexpr std::int64_t rows_block = 1024, tile_rows = 64;
template <class A>
constexpr std::int64_t cols_block = 64 * kernel_cols<A>;
template <class A>
constexpr std::int64_t tile_cols = 4 * kernel_cols<A>;

std::int64_t pieces(std::int64_t n, std::int64_t size) { return (n + size - 1) / size; }
std::int64_t round_up(std::int64_t n, std::int64_t to) { return pieces(n, to) * to; }

/// The two operands.
template <class A>
struct Operands {
    std::int64_t M, N, K;
    Matrix a, b;

    /// Rows [i, i_end) of A, terms [k, k+n), as panels one after the other.
    void pack_a(A* out, std::int64_t i, std::int64_t i_end, std::int64_t k, std::int64_t n) const {
        pack<kernel_rows>(out, a, !a.transposed, i, i_end, k, n);
    }
    /// Columns [j, j_end) of B.
    void pack_b(A* out, std::int64_t j, std::int64_t j_end, std::int64_t k, std::int64_t n) const {
        pack<kernel_cols<A>>(out, b, b.transposed, j, j_end, k, n);
    }

  private:
    template <int width>
    static void pack(A* out, const Matrix& m, bool k_contiguous, std::int64_t w, std::int64_t w_end, std::int64_t k,
                     std::int64_t n) {
        dispatch_float(m.dtype, [&](auto zero) {
            using T = decltype(zero);
            Strip<T> strip{reinterpret_cast<const T*>(m.data), m.stride, k_contiguous};
            strip.data = strip.at(w, k);
            pack_panels<width>(out, strip, w_end - w, n);
        });
    }
};

/// Part of C, of any dtype, moved to and from sums in A.
template <class A>
struct Output {
    GemmOutput c;

    bool direct() const { return c.dtype == dtype_of<A>; }
    A* at(std::int64_t i, std::int64_t j) const { return reinterpret_cast<A*>(c.data) + i * c.stride + j; }
    void read_row(A* out, std::int64_t i, std::int64_t j, std::int64_t n) const {
        dispatch_float(c.dtype, [&](auto zero) {
            using T = decltype(zero);
            convert_row(out, reinterpret_cast<const T*>(c.data) + i * c.stride + j, n);
        });
    }
    void write_row(const A* in, std::int64_t i, std::int64_t j, std::int64_t n) const {
        dispatch_float(c.dtype, [&](auto zero) {
            using T = decltype(zero);
            convert_row(reinterpret_cast<T*>(c.data) + i * c.stride + j, in, n);
        });
    }
};

/// The rows [i0, i1) and columns [j0, j1) of C while n terms from k on are added. Panel p of the packed rows begins at
/// a + p * kernel_rows * n, likewise the columns. sums is element (i0, j0): C itself, or a copy in A.
template <class A>
struct Block {
    std::int64_t i0, i1, j0, j1, k, n;
    A *a, *b, *sums;
    std::int64_t ld;
    bool add;

    std::int64_t row_tiles() const { return pieces(i1 - i0, tile_rows); }
    std::int64_t col_tiles() const { return pieces(j1 - j0, tile_cols<A>); }

    void pack_rows(const Operands<A>& x, std::int64_t tile) const {
        std::int64_t begin = i0 + tile * tile_rows, end = std::min(i1, begin + tile_rows);
        x.pack_a(a + (begin - i0) * n, begin, end, k, n);
    }
    void pack_cols(const Operands<A>& x, std::int64_t tile) const {
        std::int64_t begin = j0 + tile * tile_cols<A>, end = std::min(j1, begin + tile_cols<A>);
        x.pack_b(b + (begin - j0) * n, begin, end, k, n);
    }
    /// Tiles that follow each other share their columns of B, which then stay in the cache.
    void multiply_tile(std::int64_t tile) const {
        std::int64_t i_begin = tile % row_tiles() * tile_rows, i_end = std::min(i1 - i0, i_begin + tile_rows);
        std::int64_t j_begin = tile / row_tiles() * tile_cols<A>, j_end = std::min(j1 - j0, j_begin + tile_cols<A>);
        for (std::int64_t j = j_begin; j < j_end; j += kernel_cols<A>) multiply_column(i_begin, i_end, j, b + j * n);
    }
    /// Rows [i, i_end) of one column panel, counted from i0 and j0.
    void multiply_column(std::int64_t i, std::int64_t i_end, std::int64_t j, const A* panel) const {
        std::int64_t cols = std::min<std::int64_t>(kernel_cols<A>, j1 - j0 - j);
        for (; i < i_end; i += kernel_rows)
            multiply_corner(n, a + i * n, panel, sums + i * ld + j, ld, add,
                            std::min<std::int64_t>(kernel_rows, i1 - i0 - i), cols);
    }
};

template <class A, int which>
A* thread_scratch(std::int64_t size) {
    thread_local std::vector<A> memory;
    if (memory.size() < static_cast<std::size_t>(size)) memory.resize(static_cast<std::size_t>(size));
    return memory.data();
}

/// All rows in one tile, one column panel: packs it where it is used. `rows` are the packed rows, all of K.
template <class A>
void multiply_few_rows(const Operands<A>& x, const Output<A>& out, A* rows, std::int64_t j) {
    std::int64_t M = x.M, width = std::min<std::int64_t>(kernel_cols<A>, x.N - j);
    A* panel = thread_scratch<A, 0>(k_block * kernel_cols<A>);
    A* sums = out.direct() ? out.at(0, j) : thread_scratch<A, 1>(tile_rows * kernel_cols<A>);
    std::int64_t ld = out.direct() ? out.c.stride : kernel_cols<A>;
    if (!out.direct() && out.c.accumulate)
        for (std::int64_t i = 0; i < M; ++i) out.read_row(sums + i * ld, i, j, width);
    for (std::int64_t k = 0; k < x.K; k += k_block) {
        std::int64_t n = std::min(k_block, x.K - k);
        x.pack_b(panel, j, j + width, k, n);
        Block<A> block{0,
                       M,
                       j,
                       j + width,
                       k,
                       n,
                       rows + round_up(M, kernel_rows) * k,
                       nullptr,
                       sums,
                       ld,
                       out.c.accumulate || k > 0};
        block.multiply_column(0, M, 0, panel);
    }
    if (!out.direct())
        for (std::int64_t i = 0; i < M; ++i) out.write_row(sums + i * ld, i, j, width);
}

template <class A>
void pack_all_rows(const Operands<A>& x, A* rows, std::int64_t k) {
    x.pack_a(rows + round_up(x.M, kernel_rows) * k, 0, x.M, k, std::min(k_block, x.K - k));
}

/// One block of rows and columns of C, over all of K.
template <class A>
void multiply_block(const Exec& exec, const Operands<A>& x, const Output<A>& out, Block<A> block, bool b_is_packed) {
    std::int64_t rows = block.i1 - block.i0, cols = block.j1 - block.j0;
    auto each_row = [&](const auto& f) {
        parallel_for(exec, rows, grain_rows(cols), [&](std::int64_t r0, std::int64_t r1) {
            for (std::int64_t r = r0; r < r1; ++r) f(block.sums + r * block.ld, block.i0 + r, block.j0, cols);
        });
    };
    if (out.direct()) {
        block.sums = out.at(block.i0, block.j0);
        block.ld = out.c.stride;
    } else if (out.c.accumulate) {
        each_row([&](A* row, auto i, auto j, auto n) { out.read_row(row, i, j, n); });
    }
    for (block.k = 0; block.k < x.K; block.k += k_block) {
        block.n = std::min(k_block, x.K - block.k);
        block.add = out.c.accumulate || block.k > 0;
        std::int64_t row_tiles = block.row_tiles(), col_tiles = block.col_tiles();
        exec.pool->run(row_tiles + (b_is_packed ? 0 : col_tiles), [&](std::int64_t t) {
            t < row_tiles ? block.pack_rows(x, t) : block.pack_cols(x, t - row_tiles);
        });
        exec.pool->run(row_tiles * col_tiles, [&](std::int64_t t) { block.multiply_tile(t); });
    }
    if (!out.direct()) each_row([&](const A* row, auto i, auto j, auto n) { out.write_row(row, i, j, n); });
}

template <class A>
void multiply(const Exec& exec, const Operands<A>& x, const Output<A>& out) {
    ArenaScope scope(*exec.arena);
    auto scratch = [&](std::int64_t n) { return exec.tensor(dtype_of<A>, {n}).template ptr<A>(); };
    if (x.M <= tile_rows) {
        A* rows = scratch(round_up(x.M, kernel_rows) * x.K);
        exec.pool->run(pieces(x.K, k_block), [&](std::int64_t t) { pack_all_rows(x, rows, t * k_block); });
        exec.pool->run(pieces(x.N, kernel_cols<A>),
                       [&](std::int64_t t) { multiply_few_rows(x, out, rows, t * kernel_cols<A>); });
        return;
    }
    std::int64_t terms = std::min(x.K, k_block), rows = std::min(x.M, rows_block), cols = std::min(x.N, cols_block<A>);
    Block<A> block{};
    block.a = scratch(round_up(rows, kernel_rows) * terms);
    block.b = scratch(round_up(cols, kernel_cols<A>) * terms);
    if (!out.direct()) {
        block.sums = scratch(rows * cols);
        block.ld = cols;
    }
    for (block.j0 = 0; block.j0 < x.N; block.j0 = block.j1)
        for (block.j1 = std::min(x.N, block.j0 + cols), block.i0 = 0; block.i0 < x.M; block.i0 = block.i1) {
            block.i1 = std::min(x.M, block.i0 + rows);
            multiply_block(exec, x, out, block, block.i0 > 0 && x.K <= k_block);
        }
}

/// C when there is nothing to add: zero unless it accumulates.
template <class A>
void multiply_nothing(const Operands<A>& x, const Output<A>& out) {
    std::vector<A> zeros(static_cast<std::size_t>(x.N));
    for (std::int64_t i = 0; i < x.M && !out.c.accumulate; ++i) out.write_row(zeros.data(), i, 0, x.N);
}

}  // namespace

template <class A>
void gemm_tile(std::int64_t M, std::int64_t N, std::int64_t K, SmallMatrix<A> a, SmallMatrix<A> b, bool accumulate,
               A* c, std::int64_t ldc) {
    auto matrix = [](const SmallMatrix<A>& m) {
        return Matrix{reinterpret_cast<const std::byte*>(m.data), dtype_of<A>, m.stride, m.transposed};
    };
    Operands<A> x{M, N, K, matrix(a), matrix(b)};
    Output<A> out{{reinterpret_cast<std::byte*>(c), dtype_of<A>, ldc, accumulate}};
    if (K == 0) return multiply_nothing(x, out);
    A* rows = thread_scratch<A, 2>(round_up(M, kernel_rows) * K);
    for (std::int64_t k = 0; k < K; k += k_block) pack_all_rows(x, rows, k);
    for (std::int64_t j = 0; j < N; j += kernel_cols<A>) multiply_few_rows(x, out, rows, j);
}
template void gemm_tile<float>(std::int64_t, std::int64_t, std::int64_t, SmallMatrix<float>, SmallMatrix<float>, bool,
                               float*, std::int64_t);
template void gemm_tile<double>(std::int64_t, std::int64_t, std::int64_t, SmallMatrix<double>, SmallMatrix<double>,
                                bool, double*, std::int64_t);

void gemm(const Exec& exec, std::int64_t M, std::int64_t N, std::int64_t K, Matrix a, Matrix b, GemmOutput c) {
    auto in = [&](auto zero) {
        using A = decltype(zero);
        Operands<A> x{M, N, K, a, b};
        K == 0 ? multiply_nothing(x, Output<A>{c}) : multiply(exec, x, Output<A>{c});
    };
    if (M == 0 || N == 0) return;
    acc_dtype(a.dtype) == DType::f64 ? in(double{}) : in(float{});
}

}  // namespace tera::ops::cpu
