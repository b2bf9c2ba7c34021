// Products with an activation in them, against the library's products and the activation's own kernel.
#ifdef TERA_SM90
#include "ops/activated_product.h"

#include <array>

#include "cuda/cuda_world.h"
#include "ops/activation_backends.h"
#include "ops/convert.h"
#include "ops/init.h"
#include "ops/linear.h"
#include "ops/linear_backends.h"

namespace tera::ops {
namespace {

using test::cuda_bound;
using test::CudaWorld;

constexpr auto swiglu = ActivationKind::swiglu;

using Sizes = cuda::ActivatedSizes;

/// Whole tiles; rows, inner dimensions and columns that end within one; one tile of rows more than pairs; a single
/// piece of the inner dimension; more tiles than multiprocessors, in an odd number.
constexpr Sizes all_sizes[] = {{512, 512, 4160},  {777, 136, 2704}, {1029, 72, 2056},
                               {384, 1000, 5608}, {256, 64, 8192},  {4100, 192, 4808}};

class ActivatedProducts : public testing::Test {
  protected:
    void SetUp() override {
        NEED_GPU();
        world_ = std::make_unique<CudaWorld>();
        if (!world_->gpu.hopper) GTEST_SKIP() << "not a Hopper GPU";
    }
    Tensor random(Shape shape, double scale) {
        Tensor t = exec().tensor(DType::bf16, shape);
        fill_random(exec(), t, {.normal = true, .scale = scale, .seed = 1, .stream = ++stream_});
        return t;
    }
    const Exec& exec() { return world_->ctx.temp; }
    void expect_close(const char* what, const Tensor& found, const Tensor& expected) {
        const std::vector<double> f = world_->down(found), e = world_->down(expected);
        double largest = 0, most = 0;
        std::size_t where = 0;
        for (std::size_t i = 0; i < e.size(); ++i) {
            largest = std::max(largest, std::abs(e[i]));
            if (const double d = std::abs(f[i] - e[i]); !(d <= most)) most = d, where = i;
        }
        EXPECT_LE(most, cuda_bound(DType::bf16) * largest)
            << what << " at row " << where / static_cast<std::size_t>(found.cols()) << ", column "
            << where % static_cast<std::size_t>(found.cols()) << ": " << f[where] << ", expected " << e[where];
    }
    void expect_same(const char* what, const Tensor& found, const Tensor& expected) {
        EXPECT_EQ(world_->down(found), world_->down(expected)) << what;
    }

    std::unique_ptr<CudaWorld> world_;
    std::uint64_t stream_ = 0;
};

class GatedProducts : public ActivatedProducts, public testing::WithParamInterface<Sizes> {};

TEST_P(GatedProducts, forward) {
    const auto [T, D, F] = GetParam();
    ASSERT_TRUE(cuda::has_gated_products(exec(), swiglu, DType::bf16, GetParam()));
    const Tensor x = random({T, D}, 1), w = random({2 * F, D}, 0.05);
    const Tensor h = exec().tensor(DType::bf16, {T, 2 * F}), h_alone = exec().like(h);
    const Tensor a = exec().tensor(DType::bf16, {T, F}), a_alone = exec().like(a);
    cuda::gated_product(exec(), a, h, x, w);
    cuda::linear(exec(), h_alone, x, w, {});
    expect_close("h", h, h_alone);
    cuda::activation(exec(), swiglu, a_alone, h);
    expect_same("a", a, a_alone);
    world_->expect_sentinels();
}

TEST_P(GatedProducts, backward) {
    const auto [T, D, F] = GetParam();
    const Tensor dy = random({T, D}, 1), w = random({D, F}, 0.05), h = random({T, 2 * F}, 1);
    const Tensor da = exec().tensor(DType::bf16, {T, F}), a_alone = exec().like(da), dh_alone = exec().like(h);
    cuda::linear_dgrad(exec(), da, dy, w);
    cuda::activation_backward(exec(), swiglu, {dh_alone, {}, {}}, da, h);
    cuda::activation(exec(), swiglu, a_alone, h);
    const auto kept = linear_dgrad_activation(exec(), swiglu, dy, w, h, {}, false),
               again = linear_dgrad_activation(exec(), swiglu, dy, w, h, {}, true);
    ASSERT_TRUE(kept && again);
    EXPECT_FALSE(kept->a);
    expect_close("dh", kept->dh, dh_alone);
    expect_same("dh beside a", again->dh, kept->dh);
    expect_same("a", again->a, a_alone);
    world_->expect_sentinels();
}

/// Nothing of the product library in it, so that compute-sanitizer's tools can follow it.
TEST_P(GatedProducts, on_fewer_multiprocessors_the_same_bits) {
    const auto [T, D, F] = GetParam();
    const Tensor x = random({T, D}, 1), up = random({2 * F, D}, 0.05), dy = random({T, D}, 1),
                 down = random({D, F}, 0.05);
    const auto run = [&] {
        const Activated out = linear_activation(exec(), exec(), swiglu, x, up, {});
        const auto back = linear_dgrad_activation(exec(), swiglu, dy, down, out.h, {}, false);
        const auto with_a = linear_dgrad_activation(exec(), swiglu, dy, down, out.h, {}, true);
        return std::array{out.h, out.a, back->dh, with_a->dh, with_a->a};
    };
    const auto all = run();
    world_->gpu.product_multiprocessors = 7;
    const auto few = run();
    world_->gpu.product_multiprocessors = 0;
    const char* names[] = {"h", "a", "dh", "dh beside a", "a again"};
    for (std::size_t i = 0; i < all.size(); ++i) expect_same(names[i], few[i], all[i]);
}

class PlainProducts : public ActivatedProducts, public testing::WithParamInterface<std::tuple<ActivationKind, Sizes>> {
  protected:
    const ActivationKind kind = std::get<0>(GetParam());
    const Sizes sizes = std::get<1>(GetParam());
    const std::int64_t T = sizes.rows, D = sizes.inner, F = sizes.width;

    Tensor zeros(Shape shape) {
        const Tensor t = exec().tensor(DType::f32, shape);
        fill_zero(exec(), t);
        return t;
    }
};

TEST_P(PlainProducts, forward) {
    ASSERT_TRUE(cuda::has_plain_products(exec(), kind, DType::bf16, sizes));
    const Tensor x = random({T, D}, 1), w = random({F, D}, 0.05), bias = random({F}, 1);
    for (const ConstTensor& b : {ConstTensor{}, ConstTensor{bias}}) {
        const Activated out = linear_activation(exec(), exec(), kind, x, w, b);
        const Tensor h_alone = exec().like(out.h), a_alone = exec().like(out.a);
        cuda::linear(exec(), h_alone, x, w, b);
        expect_close(b ? "h with bias" : "h", out.h, h_alone);
        cuda::activation(exec(), kind, a_alone, out.h);
        expect_same(b ? "a with bias" : "a", out.a, a_alone);
    }
    world_->expect_sentinels();
}

TEST_P(PlainProducts, backward) {
    const Tensor dy = random({T, D}, 1), w = random({D, F}, 0.05), h = random({T, F}, 1);
    const Tensor da = exec().tensor(DType::bf16, {T, F}), a_alone = exec().like(da), dh_alone = exec().like(h);
    const Tensor db_alone = zeros({F}), db_kept = zeros({F}), db_again = zeros({F});
    cuda::linear_dgrad(exec(), da, dy, w);
    cuda::activation_backward(exec(), kind, {dh_alone, {}, db_alone}, da, h);
    cuda::activation(exec(), kind, a_alone, h);
    const auto kept = linear_dgrad_activation(exec(), kind, dy, w, h, db_kept, false),
               again = linear_dgrad_activation(exec(), kind, dy, w, h, db_again, true),
               without = linear_dgrad_activation(exec(), kind, dy, w, h, {}, false);
    ASSERT_TRUE(kept && again && without);
    EXPECT_FALSE(kept->a);
    expect_close("dh", kept->dh, dh_alone);
    expect_close("db", db_kept, db_alone);
    expect_same("dh beside a", again->dh, kept->dh);
    expect_same("db beside a", db_again, db_kept);
    expect_same("dh without db", without->dh, kept->dh);
    expect_same("a", again->a, a_alone);
    linear_dgrad_activation(exec(), kind, dy, w, h, db_kept, false);  // added to what is there
    std::vector<double> twice = world_->down(db_again);
    for (double& v : twice) v *= 2;
    EXPECT_EQ(world_->down(db_kept), twice);
    world_->expect_sentinels();
}

/// Nothing of the product library in it, so that compute-sanitizer's tools can follow it.
TEST_P(PlainProducts, on_fewer_multiprocessors_the_same_bits) {
    const Tensor x = random({T, D}, 1), up = random({F, D}, 0.05), bias = random({F}, 1), dy = random({T, D}, 1),
                 down = random({D, F}, 0.05);
    const auto run = [&] {
        const Tensor db = zeros({F});
        const Activated out = linear_activation(exec(), exec(), kind, x, up, bias);
        const auto back = linear_dgrad_activation(exec(), kind, dy, down, out.h, db, false);
        const auto with_a = linear_dgrad_activation(exec(), kind, dy, down, out.h, db, true);
        return std::array{out.h, out.a, back->dh, with_a->dh, with_a->a, db};
    };
    const auto all = run();
    world_->gpu.product_multiprocessors = 7;
    const auto few = run();
    world_->gpu.product_multiprocessors = 0;
    const char* names[] = {"h", "a", "dh", "dh beside a", "a again", "db"};
    for (std::size_t i = 0; i < all.size(); ++i) expect_same(names[i], few[i], all[i]);
}

TEST_F(ActivatedProducts, only_where_they_pay) {
    const auto gated = [&](ActivationKind kind, DType dtype, const Sizes& sizes) {
        return cuda::has_gated_products(exec(), kind, dtype, sizes);
    };
    const auto plain = [&](ActivationKind kind, DType dtype, const Sizes& sizes) {
        return cuda::has_plain_products(exec(), kind, dtype, sizes);
    };
    EXPECT_TRUE(gated(swiglu, DType::bf16, {32768, 1536, 8960}));
    EXPECT_FALSE(gated(swiglu, DType::f16, {32768, 1536, 8960}));
    EXPECT_FALSE(gated(swiglu, DType::f32, {32768, 1536, 8960}));
    EXPECT_FALSE(gated(ActivationKind::gelu_tanh, DType::bf16, {32768, 1536, 8960}));
    EXPECT_TRUE(gated(swiglu, DType::bf16, {8192, 4096, 14336}));
    EXPECT_FALSE(gated(swiglu, DType::bf16, {32768, 5120, 8960}));
    EXPECT_FALSE(gated(swiglu, DType::bf16, {32768, 1532, 8960}));
    EXPECT_FALSE(gated(swiglu, DType::bf16, {64, 1536, 8960}));
    EXPECT_TRUE(plain(ActivationKind::gelu_tanh, DType::bf16, {16384, 1600, 6400}));
    EXPECT_FALSE(plain(ActivationKind::gelu_tanh, DType::f16, {16384, 1600, 6400}));
    EXPECT_FALSE(plain(swiglu, DType::bf16, {16384, 1600, 6400}));
    EXPECT_FALSE(plain(ActivationKind::gelu_tanh, DType::bf16, {16384, 1604, 6400}));
    EXPECT_FALSE(plain(ActivationKind::gelu_tanh, DType::bf16, {64, 1600, 6400}));
}

/// What is counted before a run, on machines without a GPU too.
TEST(ActivatedProductsOnPaper, take_what_is_counted) {
    Gpu gpu{Gpu::OnPaper{}};
    ThreadPool pool{1};
    Arena arena{Arena::Kind::counting};
    const Exec paper{Device::cuda, &arena, &pool, &gpu};
    constexpr std::int64_t T = 16400, D = 1600, F = 6400;
    const auto matrix = [&](std::int64_t rows, std::int64_t cols) { return paper.tensor(DType::bf16, {rows, cols}); };
    const Tensor dy = matrix(T, D), w = matrix(D, F), h = matrix(T, F), db = paper.tensor(DType::f32, {F});
    const std::size_t before = arena.used(), sums = 130 * F * sizeof(float);  // 65 pairs of tiles of 128 rows
    const auto taken = [&](const Tensor& to, bool rebuild) {
        ArenaScope scope(arena);
        EXPECT_TRUE(linear_dgrad_activation(paper, ActivationKind::gelu_tanh, dy, w, h, to, rebuild));
        return arena.used() - before;
    };
    EXPECT_EQ(taken({}, false), h.bytes());
    EXPECT_EQ(taken({}, true), 2 * h.bytes());
    EXPECT_EQ(arena.peak(), before + 2 * h.bytes());
    EXPECT_EQ(taken(db, true), 2 * h.bytes());
    EXPECT_EQ(arena.peak(), before + 2 * h.bytes() + sums);
}

std::string name_of(const Sizes& s) { return cat(s.rows, "x", s.inner, "x", s.width); }
INSTANTIATE_TEST_SUITE_P(Sizes, GatedProducts, testing::ValuesIn(all_sizes),
                         [](const auto& c) { return name_of(c.param); });
std::string name_of_both(const testing::TestParamInfo<std::tuple<ActivationKind, Sizes>>& both) {
    const char* kinds[] = {"gelu_tanh", "gelu_erf", "squared_relu"};
    return cat(kinds[static_cast<int>(std::get<0>(both.param))], "_", name_of(std::get<1>(both.param)));
}
INSTANTIATE_TEST_SUITE_P(Gelu, PlainProducts,
                         testing::Combine(testing::Values(ActivationKind::gelu_tanh), testing::ValuesIn(all_sizes)),
                         name_of_both);
INSTANTIATE_TEST_SUITE_P(Others, PlainProducts,
                         testing::Combine(testing::Values(ActivationKind::gelu_erf, ActivationKind::squared_relu),
                                          testing::Values(all_sizes[1], all_sizes[4])),
                         name_of_both);

}  // namespace
}  // namespace tera::ops
#endif
