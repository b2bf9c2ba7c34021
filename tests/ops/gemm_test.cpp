// The matrix product: against sums written out in double, and its promise that an element depends on its row, its
// column and K alone.
#include "ops/gemm.h"

#include <gtest/gtest.h>

#include <array>

#include "support/world.h"

namespace tera::test {
namespace {

using namespace ops::cpu;
using Sizes = std::array<std::int64_t, 3>;

/// An operand stored as it is or transposed, with rows further apart than they are long.
struct Operand {
    Tensor stored;
    std::int64_t rows, cols;
    bool transposed;

    Operand(World& w, DType dtype, std::int64_t r, std::int64_t c, bool t)
        : stored(w.random(dtype, t ? Shape{c, r + 3} : Shape{r, c + 3})), rows(r), cols(c), transposed(t) {}
    ops::Matrix matrix() const { return {stored.data, stored.dtype, stored.cols(), transposed}; }
    /// The product's view of its rows from r on.
    ops::Matrix from_row(std::int64_t r) const { return from(transposed ? r : r * stored.cols()); }
    ops::Matrix from_col(std::int64_t c) const { return from(transposed ? c * stored.cols() : c); }
    double at(const std::vector<double>& v, std::int64_t r, std::int64_t c) const {
        return v[static_cast<std::size_t>(transposed ? c * stored.cols() + r : r * stored.cols() + c)];
    }

  private:
    ops::Matrix from(std::int64_t element) const {
        ops::Matrix m = matrix();
        m.data += static_cast<std::size_t>(element) * size_of(m.dtype);
        return m;
    }
};

std::vector<double> product(const Operand& a, const Operand& b, const std::vector<double>& start) {
    std::vector<double> va = values(a.stored), vb = values(b.stored), out = start;
    for (std::int64_t i = 0; i < a.rows; ++i)
        for (std::int64_t j = 0; j < b.cols; ++j) {
            double sum = 0;
            for (std::int64_t k = 0; k < a.cols; ++k) sum += a.at(va, i, k) * b.at(vb, k, j);
            out[static_cast<std::size_t>(i * b.cols + j)] += sum;
        }
    return out;
}

/// Below, at and above the sizes of kernels, tiles and blocks; few rows and many.
const Sizes all_sizes[] = {{1, 1, 1},   {1, 100, 50},   {8, 48, 384},  {7, 49, 385},  {64, 64, 64},
                           {65, 47, 3}, {130, 200, 17}, {70, 97, 800}, {1030, 50, 9}, {66, 3100, 5}};

class Gemm : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(AllTypes, Gemm, testing::Values(DType::f64, DType::f32, DType::bf16, DType::f16),
                         [](const auto& param) { return name_of(param.param); });

double bound(DType t) { return t == DType::f64 ? 1e-14 : t == DType::f32 ? 1e-6 : t == DType::f16 ? 5e-4 : 4e-3; }

TEST_P(Gemm, is_the_sum_of_products) {
    World w(3);
    for (auto [M, N, K] : all_sizes)
        for (int transposed = 0; transposed < 4; ++transposed)
            for (bool accumulate : {false, true}) {
                Operand a(w, GetParam(), M, K, transposed & 1), b(w, GetParam(), K, N, transposed & 2);
                Tensor c = w.random(GetParam(), {M, N});
                std::vector<double> zeros(static_cast<std::size_t>(M * N));
                std::vector<double> wanted = product(a, b, accumulate ? values(c) : zeros);
                gemm(w.ctx.temp, M, N, K, a.matrix(), b.matrix(), {c.data, c.dtype, N, accumulate});
                // One rounding to the stored type and no more: sums are kept in f32 until the last term.
                EXPECT_LT(worst(values(c), wanted), bound(GetParam()))
                    << M << " " << N << " " << K << " transposed " << transposed << " accumulate " << accumulate;
            }
}

TEST(GemmBits, do_not_depend_on_threads) {
    for (auto [M, N, K] : all_sizes) {
        World one(1), four(4);
        Tensor c[2];
        for (World* w : {&one, &four}) {
            Operand a(*w, DType::f32, M, K, false), b(*w, DType::f32, K, N, true);
            Tensor& out = c[w == &four];
            out = w->zeros(DType::f32, {M, N});
            gemm(w->ctx.temp, M, N, K, a.matrix(), b.matrix(), {out.data, out.dtype, N, false});
        }
        EXPECT_TRUE(same_bits(c[0], c[1])) << M << " " << N << " " << K;
    }
}

/// A row of a long prompt and the same row alone while generating; a column on one rank and on another.
TEST_P(Gemm, bits_do_not_depend_on_the_other_rows_and_columns) {
    World w;
    std::int64_t M = 150, N = 130, K = 500;
    for (int transposed = 0; transposed < 4; ++transposed) {
        Operand a(w, GetParam(), M, K, transposed & 1), b(w, GetParam(), K, N, transposed & 2);
        Tensor whole = w.zeros(DType::f32, {M, N});
        if (GetParam() == DType::f64) whole = w.zeros(DType::f64, {M, N});
        std::size_t element = size_of(whole.dtype), row_bytes = static_cast<std::size_t>(N) * element;
        gemm(w.ctx.temp, M, N, K, a.matrix(), b.matrix(), {whole.data, whole.dtype, N, false});
        for (auto [row, rows] : {std::pair<std::int64_t, std::int64_t>{0, 1}, {149, 1}, {77, 5}, {3, 70}}) {
            Tensor part = w.zeros(whole.dtype, {rows, N});
            gemm(w.ctx.temp, rows, N, K, a.from_row(row), b.matrix(), {part.data, part.dtype, N, false});
            EXPECT_TRUE(same_bits(part, whole.slice(row, rows))) << "rows " << row << "+" << rows;
        }
        for (auto [col, cols] : {std::pair<std::int64_t, std::int64_t>{0, 1}, {1, 129}, {50, 33}}) {
            Tensor part = w.zeros(whole.dtype, {M, cols});
            gemm(w.ctx.temp, M, cols, K, a.matrix(), b.from_col(col), {part.data, part.dtype, cols, false});
            for (std::int64_t i = 0; i < M; ++i)
                EXPECT_EQ(0, std::memcmp(part.data + static_cast<std::size_t>(i * cols) * element,
                                         whole.data + static_cast<std::size_t>(i) * row_bytes +
                                             static_cast<std::size_t>(col) * element,
                                         static_cast<std::size_t>(cols) * element))
                    << "columns " << col << "+" << cols << " of row " << i;
        }
    }
}

TEST(GemmBits, one_tile_on_the_calling_thread_is_the_same) {
    World w;
    for (auto [M, N, K] : all_sizes)
        for (int transposed = 0; transposed < 4; ++transposed) {
            Operand a(w, DType::f32, M, K, transposed & 1), b(w, DType::f32, K, N, transposed & 2);
            Tensor c = w.random(DType::f32, {M, N}), tile = w.zeros(DType::f32, {M, N});
            std::memcpy(tile.data, c.data, c.bytes());
            gemm(w.ctx.temp, M, N, K, a.matrix(), b.matrix(), {c.data, c.dtype, N, true});
            gemm_tile<float>(M, N, K, {a.stored.ptr<float>(), a.stored.cols(), a.transposed},
                             {b.stored.ptr<float>(), b.stored.cols(), b.transposed}, true, tile.ptr<float>(), N);
            EXPECT_TRUE(same_bits(c, tile)) << M << " " << N << " " << K << " transposed " << transposed;
        }
}

TEST(GemmBits, nothing_to_add) {
    World w;
    Tensor c = w.random(DType::bf16, {3, 5}), before = w.zeros(DType::bf16, {3, 5}),
           zeros = w.zeros(DType::bf16, {3, 5});
    std::memcpy(before.data, c.data, c.bytes());
    ops::Matrix none{nullptr, DType::bf16, 0, false};
    gemm(w.ctx.temp, 3, 5, 0, none, none, {c.data, c.dtype, 5, true});
    EXPECT_TRUE(same_bits(c, before));
    gemm(w.ctx.temp, 3, 5, 0, none, none, {c.data, c.dtype, 5, false});
    EXPECT_TRUE(same_bits(c, zeros));
}

/// Everything around the output stays as it was, for few rows and for many, stored wide and narrow.
TEST(GemmBits, writes_only_its_output) {
    World w;
    for (std::int64_t M : {20, 100})
        for (DType dtype : {DType::f32, DType::bf16}) {
            std::int64_t N = 53, K = 30;
            Operand a(w, dtype, M, K, false), b(w, dtype, K, N, false);
            Tensor c = w.random(dtype, {M + 2, N + 7}), before = w.zeros(dtype, {M + 2, N + 7});
            std::memcpy(before.data, c.data, c.bytes());
            std::size_t first = static_cast<std::size_t>(N + 7 + 4) * size_of(dtype);
            gemm(w.ctx.temp, M, N, K, a.matrix(), b.matrix(), {c.data + first, dtype, N + 7, false});
            std::vector<double> now = values(c), then = values(before);
            for (std::int64_t i = 0; i < c.numel(); ++i) {
                std::int64_t row = i / (N + 7), col = i % (N + 7);
                bool inside = row >= 1 && row <= M && col >= 4 && col < N + 4;
                auto e = static_cast<std::size_t>(i);
                EXPECT_TRUE(inside || now[e] == then[e]) << row << " " << col;
            }
        }
}

}  // namespace
}  // namespace tera::test
