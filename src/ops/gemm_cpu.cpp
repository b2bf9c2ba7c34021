// One operand, the smaller, is packed first, by all threads and for all; then they share out strips of the other, each
// packed by the thread that needs it at the moment it needs it, so that it is read from its cache. C is worked on in
// blocks, so that partial sums and the shared panels stay in a cache too.
#include <algorithm>
#include <vector>

#include "ops/gemm.h"
#include "ops/gemm_kernel.h"

namespace tera::ops::cpu {
namespace {

constexpr std::int64_t rows_block = 1024, tile_rows = 64;
constexpr std::int64_t shared_elements = std::int64_t{1} << 20;  ///< of the packed operand, about
template <class A>
constexpr std::int64_t cols_block = 64 * kernel_cols<A>;

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

/// Memory of the calling thread, kept from call to call. Whole vectors on their boundaries: a vector that straddles two
/// cache lines costs the kernel a fifth of its speed.
template <class A, int which>
A* thread_scratch(std::int64_t size) {
    struct alignas(vector_bytes) Line {
        A elements[Vector<A>::lanes];
    };
    thread_local std::vector<Line> memory;
    auto lines = static_cast<std::size_t>(pieces(size, Vector<A>::lanes));
    if (memory.size() < lines) memory.resize(lines);
    return memory.data()->elements;
}

/// Rows [i0, i1) and columns [j0, j1) of C while terms [k0, k1) are added. `shared` holds one operand's panels: those
/// of terms [k, k + n) begin at (k - k0) times the padded rows or columns, and panel p of them p * width * n further
/// on. sums is element (i0, j0): C itself, or a copy in A.
template <class A>
struct Block {
    std::int64_t i0, i1, j0, j1, k0, k1;
    A *shared, *sums;
    std::int64_t ld;
    bool accumulate;

    std::int64_t rows() const { return i1 - i0; }
    std::int64_t cols() const { return j1 - j0; }
    A* shared_rows(std::int64_t k) const { return shared + (k - k0) * round_up(rows(), kernel_rows); }
    A* shared_cols(std::int64_t k) const { return shared + (k - k0) * round_up(cols(), kernel_cols<A>); }
    template <class F>
    void each_k(const F& f) const {
        for (std::int64_t k = k0; k < k1; k += k_block) f(k, std::min(k_block, k1 - k));
    }

    void share_rows(const Operands<A>& x, std::int64_t begin, std::int64_t end) const {
        each_k(
            [&](std::int64_t k, std::int64_t n) { x.pack_a(shared_rows(k) + begin * n, i0 + begin, i0 + end, k, n); });
    }
    void share_cols(const Operands<A>& x, std::int64_t begin, std::int64_t end) const {
        each_k(
            [&](std::int64_t k, std::int64_t n) { x.pack_b(shared_cols(k) + begin * n, j0 + begin, j0 + end, k, n); });
    }

    /// Rows [begin, end) of the block, packed here, with all its columns, which are shared.
    void multiply_rows(const Operands<A>& x, std::int64_t begin, std::int64_t end) const {
        A* panels = thread_scratch<A, 0>(round_up(end - begin, kernel_rows) * k_block);
        each_k([&](std::int64_t k, std::int64_t n) {
            x.pack_a(panels, i0 + begin, i0 + end, k, n);
            for (std::int64_t j = 0; j < cols(); j += kernel_cols<A>)
                for (std::int64_t i = begin; i < end; i += kernel_rows)
                    multiply(i, j, k, n, panels + (i - begin) * n, shared_cols(k) + j * n);
        });
    }
    /// Columns [begin, end) of the block, packed here, with all its rows, which are shared.
    void multiply_cols(const Operands<A>& x, std::int64_t begin, std::int64_t end) const {
        A* panels = thread_scratch<A, 1>(round_up(end - begin, kernel_cols<A>) * k_block);
        each_k([&](std::int64_t k, std::int64_t n) {
            x.pack_b(panels, j0 + begin, j0 + end, k, n);
            for (std::int64_t j = begin; j < end; j += kernel_cols<A>)
                for (std::int64_t i = 0; i < rows(); i += kernel_rows)
                    multiply(i, j, k, n, shared_rows(k) + i * n, panels + (j - begin) * n);
        });
    }
    void multiply(std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t n, const A* a, const A* b) const {
        multiply_corner(n, a, b, sums + i * ld + j, ld, accumulate || k > 0,
                        std::min<std::int64_t>(kernel_rows, rows() - i),
                        std::min<std::int64_t>(kernel_cols<A>, cols() - j));
    }
};

/// Calls f(begin, end) for pieces of [0, n) on all threads: pieces of `size`, or smaller ones if there are few.
template <class F>
void share_out(const Exec& exec, std::int64_t n, std::int64_t size, std::int64_t smallest, const F& f) {
    while (size >= 2 * smallest && pieces(n, size) < 4 * exec.pool->size()) size /= 2;
    exec.pool->run(pieces(n, size), [&](std::int64_t t) { f(t * size, std::min(n, (t + 1) * size)); });
}

/// One block of C over all of K.
template <class A>
void multiply_block(const Exec& exec, const Operands<A>& x, Block<A> block, std::int64_t chunk, bool shared_is_packed) {
    constexpr std::int64_t panel = kernel_cols<A>;
    for (block.k0 = 0; block.k0 < x.K; block.k0 = block.k1) {
        block.k1 = std::min(x.K, block.k0 + chunk);
        if (x.M < x.N) {
            share_out(exec, block.rows(), tile_rows, kernel_rows, [&](auto b, auto e) { block.share_rows(x, b, e); });
            // Columns that are rows in memory are best read a few at a time, others many.
            share_out(exec, block.cols(), x.b.transposed ? panel : 4 * panel, panel,
                      [&](auto b, auto e) { block.multiply_cols(x, b, e); });
        } else {
            if (!shared_is_packed)
                share_out(exec, block.cols(), 4 * panel, panel, [&](auto b, auto e) { block.share_cols(x, b, e); });
            share_out(exec, block.rows(), tile_rows, kernel_rows,
                      [&](auto b, auto e) { block.multiply_rows(x, b, e); });
        }
    }
}

/// The same into a C of another dtype: sums in A, converted before and after.
template <class A, class F>
void with_sums(const Exec& exec, const Output<A>& out, const Block<A>& block, const F& f) {
    auto each_row = [&](const auto& move) {
        parallel_for(exec, block.rows(), grain_rows(block.cols()), [&](std::int64_t r0, std::int64_t r1) {
            for (std::int64_t r = r0; r < r1; ++r)
                move(block.sums + r * block.ld, block.i0 + r, block.j0, block.cols());
        });
    };
    if (out.c.accumulate) each_row([&](A* row, auto i, auto j, auto n) { out.read_row(row, i, j, n); });
    f();
    each_row([&](const A* row, auto i, auto j, auto n) { out.write_row(row, i, j, n); });
}

template <class A>
void multiply(const Exec& exec, const Operands<A>& x, const Output<A>& out) {
    ArenaScope scope(*exec.arena);
    auto scratch = [&](std::int64_t n) { return exec.tensor(dtype_of<A>, {n}).template ptr<A>(); };
    std::int64_t rows = std::min(x.M, rows_block), cols = std::min(x.N, cols_block<A>);
    std::int64_t width = x.M < x.N ? round_up(rows, kernel_rows) : round_up(cols, kernel_cols<A>);
    std::int64_t chunk = std::min(x.K, std::max<std::int64_t>(1, shared_elements / width / k_block) * k_block);
    Block<A> block{};
    block.accumulate = out.c.accumulate;
    block.shared = scratch(width * chunk);
    A* copy = out.direct() ? nullptr : scratch(rows * cols);
    if (exec.counts()) return;
    for (block.j0 = 0; block.j0 < x.N; block.j0 = block.j1) {
        block.j1 = std::min(x.N, block.j0 + cols);
        for (block.i0 = 0; block.i0 < x.M; block.i0 = block.i1) {
            block.i1 = std::min(x.M, block.i0 + rows);
            block.sums = out.direct() ? out.at(block.i0, block.j0) : copy;
            block.ld = out.direct() ? out.c.stride : cols;
            auto run = [&] { multiply_block(exec, x, block, chunk, block.i0 > 0 && chunk == x.K); };
            out.direct() ? run() : with_sums(exec, out, block, run);
        }
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
    Block<A> block{0, M, 0, N, 0, K, rows, c, ldc, accumulate};
    block.share_rows(x, 0, M);
    for (std::int64_t j = 0; j < N; j += kernel_cols<A>) block.multiply_cols(x, j, std::min(N, j + kernel_cols<A>));
}
template void gemm_tile<float>(std::int64_t, std::int64_t, std::int64_t, SmallMatrix<float>, SmallMatrix<float>, bool,
                               float*, std::int64_t);
template void gemm_tile<double>(std::int64_t, std::int64_t, std::int64_t, SmallMatrix<double>, SmallMatrix<double>,
                                bool, double*, std::int64_t);

void gemm(const Exec& exec, std::int64_t M, std::int64_t N, std::int64_t K, Matrix a, Matrix b, GemmOutput c) {
    auto in = [&](auto zero) {
        using A = decltype(zero);
        Operands<A> x{M, N, K, a, b};
        if (K > 0)
            multiply(exec, x, Output<A>{c});
        else if (!exec.counts())
            multiply_nothing(x, Output<A>{c});
    };
    if (M == 0 || N == 0) return;
    acc_dtype(a.dtype) == DType::f64 ? in(double{}) : in(float{});
}

}  // namespace tera::ops::cpu
