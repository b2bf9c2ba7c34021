// Products with SwiGLU in them, against the library's products and the activation's own kernel.
#ifdef TERA_SM90
#include "ops/gated_product.h"

#include <array>

#include "cuda/cuda_world.h"
#include "ops/activation_backends.h"
#include "ops/init.h"
#include "ops/linear.h"
#include "ops/linear_backends.h"

namespace tera::ops {
namespace {

using test::cuda_bound;
using test::CudaWorld;

constexpr auto swiglu = ActivationKind::swiglu;

struct Sizes {
    std::int64_t rows, inner, half;
};

/// Whole tiles; rows, inner dimensions and columns that end within one; one tile of rows more than pairs; a single
/// piece of the inner dimension; more tiles than multiprocessors, in an odd number.
constexpr Sizes all_sizes[] = {{512, 512, 4160},  {777, 136, 2704}, {1029, 72, 2056},
                               {384, 1000, 5608}, {256, 64, 8192},  {4100, 192, 4808}};

class GatedProductsAtAll : public testing::Test {
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

class GatedProducts : public GatedProductsAtAll, public testing::WithParamInterface<Sizes> {};

TEST_P(GatedProducts, forward) {
    const auto [T, D, F] = GetParam();
    ASSERT_TRUE(cuda::has_gated_products(exec(), swiglu, DType::bf16, T, D, F));
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
    const auto kept = linear_dgrad_activation(exec(), swiglu, dy, w, h, false),
               again = linear_dgrad_activation(exec(), swiglu, dy, w, h, true);
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
        const auto back = linear_dgrad_activation(exec(), swiglu, dy, down, out.h, false);
        const auto with_a = linear_dgrad_activation(exec(), swiglu, dy, down, out.h, true);
        return std::array{out.h, out.a, back->dh, with_a->dh, with_a->a};
    };
    const auto all = run();
    world_->gpu.product_multiprocessors = 7;
    const auto few = run();
    world_->gpu.product_multiprocessors = 0;
    const char* names[] = {"h", "a", "dh", "dh beside a", "a again"};
    for (std::size_t i = 0; i < all.size(); ++i) expect_same(names[i], few[i], all[i]);
}

TEST_F(GatedProductsAtAll, only_where_they_pay) {
    const auto has = [&](ActivationKind kind, DType dtype, std::int64_t rows, std::int64_t inner, std::int64_t half) {
        return cuda::has_gated_products(exec(), kind, dtype, rows, inner, half);
    };
    EXPECT_TRUE(has(swiglu, DType::bf16, 32768, 1536, 8960));
    EXPECT_FALSE(has(swiglu, DType::f16, 32768, 1536, 8960));
    EXPECT_FALSE(has(swiglu, DType::f32, 32768, 1536, 8960));
    EXPECT_FALSE(has(ActivationKind::gelu_tanh, DType::bf16, 32768, 1536, 8960));
    EXPECT_FALSE(has(swiglu, DType::bf16, 32768, 4096, 8960));
    EXPECT_FALSE(has(swiglu, DType::bf16, 32768, 1532, 8960));
    EXPECT_FALSE(has(swiglu, DType::bf16, 64, 1536, 8960));
}

std::string name_of(const testing::TestParamInfo<Sizes>& sizes) {
    return cat(sizes.param.rows, "x", sizes.param.inner, "x", sizes.param.half);
}
INSTANTIATE_TEST_SUITE_P(Sizes, GatedProducts, testing::ValuesIn(all_sizes), name_of);

}  // namespace
}  // namespace tera::ops
#endif
