// Ops against direct formulas written out here, in every dtype; sizes that are no multiple of anything.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/convert.h"
#include "ops/cross_entropy.h"
#include "ops/gemm.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/residual.h"
#include "ops/vec_math.h"
#include "support/world.h"

namespace tera::test {
namespace {

using namespace ops;

/// Worst error allowed relative to the largest value.
double bound(DType t) {
    switch (t) {
        case DType::f64:
            return 1e-13;
        case DType::f32:
            return 2e-6;
        case DType::f16:
            return 2e-3;
        default:
            return 1.2e-2;
    }
}

class Values : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(AllTypes, Values, testing::Values(DType::f64, DType::f32, DType::bf16, DType::f16),
                         [](const auto& param) { return name_of(param.param); });

TEST_P(Values, linear_and_transposes) {
    World w;
    const Exec& e = w.ctx.temp;
    for (auto [T, N, K] : {std::array<std::int64_t, 3>{1, 1, 1}, {3, 130, 7}, {257, 33, 65}, {100, 301, 129}}) {
        Tensor x = w.random(GetParam(), {T, K}), weight = w.random(GetParam(), {N, K}),
               bias = w.random(GetParam(), {N}), dy = w.random(GetParam(), {T, N});
        Tensor dw = w.random(acc_dtype(GetParam()), {N, K});
        auto vx = values(x), vw = values(weight), vb = values(bias), vdy = values(dy), vdw = values(dw);
        std::vector<double> y, dx(static_cast<std::size_t>(T * K));
        for (std::int64_t t = 0; t < T; ++t)
            for (std::int64_t n = 0; n < N; ++n) {
                double sum = vb[static_cast<std::size_t>(n)];
                for (std::int64_t k = 0; k < K; ++k) {
                    auto xi = static_cast<std::size_t>(t * K + k), wi = static_cast<std::size_t>(n * K + k);
                    double d = vdy[static_cast<std::size_t>(t * N + n)];
                    sum += vx[xi] * vw[wi];
                    dx[xi] += d * vw[wi];
                    vdw[wi] += d * vx[xi];
                }
                y.push_back(sum);
            }
        EXPECT_LT(worst(values(linear(e, x, weight, bias)), y), bound(GetParam())) << T << " " << N << " " << K;
        EXPECT_LT(worst(values(linear_dgrad(e, dy, weight)), dx), bound(GetParam()));
        linear_wgrad(e, dw, dy, x);
        EXPECT_LT(worst(values(dw), vdw), bound(acc_dtype(GetParam()) == DType::f64 ? DType::f64 : DType::f32));
        w.reset();
    }
}

TEST_P(Values, attention_against_the_formula) {
    World w;
    const Exec& e = w.ctx.temp;
    std::int64_t B = 2, S = 75, H = 4, G = 2, K = 12, width = (H + 2 * G) * K;
    Tensor qkv = w.random(GetParam(), {S * B, width}, 2);
    std::vector<std::int32_t> starts(static_cast<std::size_t>(S * B));
    for (std::int64_t s = 0; s < S; ++s)
        for (std::int64_t b = 0; b < B; ++b)
            starts[static_cast<std::size_t>(s * B + b)] = static_cast<std::int32_t>(s < 20       ? 0
                                                                                    : s < 66 + b ? 20
                                                                                                 : 66 + b);
    AttentionSpec spec{.B = B, .Sq = S, .Sk = S, .H = H, .G = G, .K = K, .scale = 0.3};
    spec.doc_start = starts.data();
    ConstTensor in = qkv;
    AttentionOut out = attention(e, spec, {in, 0}, {in, H * K}, {in, (H + G) * K});
    std::vector<double> v = values(qkv), expected(static_cast<std::size_t>(S * B * H * K));
    auto at = [&](std::int64_t s, std::int64_t b, std::int64_t column) {
        return v[static_cast<std::size_t>((s * B + b) * width + column)];
    };
    for (std::int64_t b = 0; b < B; ++b)
        for (std::int64_t h = 0; h < H; ++h)
            for (std::int64_t q = 0; q < S; ++q) {
                double sum = 0;
                std::vector<double> o(static_cast<std::size_t>(K));
                for (std::int64_t k = starts[static_cast<std::size_t>(q * B + b)]; k <= q; ++k) {
                    double score = 0;
                    for (std::int64_t d = 0; d < K; ++d) score += at(q, b, h * K + d) * at(k, b, (H + h / 2) * K + d);
                    double p = std::exp(0.3 * score);
                    sum += p;
                    for (std::int64_t d = 0; d < K; ++d)
                        o[static_cast<std::size_t>(d)] += p * at(k, b, (H + G + h / 2) * K + d);
                }
                for (std::int64_t d = 0; d < K; ++d)
                    expected[static_cast<std::size_t>(((q * B + b) * H + h) * K + d)] =
                        o[static_cast<std::size_t>(d)] / sum;
            }
    EXPECT_LT(worst(values(out.o), expected), bound(GetParam()));
}

TEST_P(Values, dropout_keeps_the_mean_and_depends_on_every_coordinate) {
    World w;
    const Exec& e = w.ctx.temp;
    std::vector<std::int64_t> samples{11, 12};
    Tensor y = w.zeros(GetParam(), {64, 511});
    dispatch_float(GetParam(), [&](auto zero) {
        using T = decltype(zero);
        for (std::int64_t i = 0; i < y.numel(); ++i) y.ptr<T>()[i] = static_cast<T>(1.0f);
    });
    auto run = [&](DropoutSite site) { return values(dropout_add(e, {}, y, {}, {0.25, site, 2, samples.data()})); };
    auto base = run({1, 2, 3});
    double mean = 0;
    for (double v : base) {
        EXPECT_TRUE(v == 0 || std::abs(v - 4.0 / 3) < 0.01) << v;
        mean += v / static_cast<double>(base.size());
    }
    EXPECT_NEAR(mean, 1, 0.02);
    EXPECT_EQ(base, run({1, 2, 3}));
    for (DropoutSite other : {DropoutSite{2, 2, 3}, DropoutSite{1, 3, 3}, DropoutSite{1, 2, 2}})
        EXPECT_GT(nmse(run(other), base), 0.1);
    samples = {11, 13};
    auto moved = run({1, 2, 3});
    for (std::size_t row = 0; row < 64; ++row)  // only the sample whose number changed has another mask
        EXPECT_EQ(
            std::equal(base.begin() + static_cast<long>(row) * 511, base.begin() + static_cast<long>(row + 1) * 511,
                       moved.begin() + static_cast<long>(row) * 511),
            row % 2 == 0);
}

TEST(VecMath, exp_is_accurate_and_saturates) {
    double most = 0;
    for (float x = -87.3f; x < 88.7f; x += 0.00371f)
        most = std::max(most, std::abs(static_cast<double>(fast_exp(x)) / std::exp(static_cast<double>(x)) - 1));
    EXPECT_LT(most, 2e-7);
    EXPECT_EQ(fast_exp(0.0f), 1.0f);
    EXPECT_LT(fast_exp(-1e30f), 1.3e-38f);
    EXPECT_GT(fast_exp(1e30f), 3e38f);
}

TEST(VecMath, erfc_is_accurate) {
    for (float x = -5; x < 5; x += 0.01f) EXPECT_NEAR(fast_erfc(x) / std::erfc(static_cast<double>(x)), 1, 2e-6) << x;
}

TEST(CrossEntropy, does_not_overflow) {
    World w;
    Tensor z = w.zeros(DType::f32, {1, 3}), loss = w.zeros(DType::f32, {1});
    z.ptr<float>()[0] = 30000, z.ptr<float>()[1] = 29999, z.ptr<float>()[2] = -30000;
    std::int32_t label = 1;
    cross_entropy(w.ctx.temp, loss, z, &label, nullptr, 0);
    EXPECT_NEAR(loss.ptr<float>()[0], std::log1p(std::exp(1.0)), 1e-5);
}

TEST(Convert, half_types_round_to_nearest_even) {
    EXPECT_EQ(bf16_t(1.00390625f).bits, 0x3f80);  // half way, down to even
    EXPECT_EQ(bf16_t(1.01171875f).bits, 0x3f82);  // half way, up to even
    EXPECT_TRUE(std::isnan(static_cast<float>(bf16_t(std::nanf("")))));
    EXPECT_EQ(f16_t(65504.0f).bits, 0x7bff);
    EXPECT_EQ(f16_t(65520.0f).bits, 0x7c00);  // overflow to infinity
    EXPECT_EQ(f16_t(5.9604645e-8f).bits, 1);  // the smallest
    EXPECT_EQ(static_cast<float>(f16_t(0.1f)), 0.0999755859375f);
}

/// Any op must leave everything around its output alone.
TEST(Sentinels, gemm_writes_only_its_tile) {
    World w;
    Tensor c = w.zeros(DType::f32, {40, 50}), a = w.random(DType::f32, {20, 30}), b = w.random(DType::f32, {25, 30});
    for (std::int64_t i = 0; i < c.numel(); ++i) c.ptr<float>()[i] = 123;
    cpu::gemm(w.ctx.temp, 20, 25, 30, {a.data, DType::f32, 30, false}, {b.data, DType::f32, 30, true},
              {reinterpret_cast<std::byte*>(c.ptr<float>() + 10 * 50 + 15), DType::f32, 50, false});
    for (std::int64_t r = 0; r < 40; ++r)
        for (std::int64_t k = 0; k < 50; ++k) {
            bool inside = r >= 10 && r < 30 && k >= 15 && k < 40;
            EXPECT_EQ(c.ptr<float>()[r * 50 + k] == 123, !inside) << r << " " << k;
        }
}

}  // namespace
}  // namespace tera::test
