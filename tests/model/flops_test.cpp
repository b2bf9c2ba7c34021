#include "model/flops.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "core/error.h"

namespace tera {
namespace {

FlopsShape shape(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab,
                 std::int64_t sequence) {
    FlopsShape s;
    s.layers = layers;
    s.hidden = hidden;
    s.ffn = 4 * hidden;
    s.heads = s.kv_heads = heads;
    s.head_dim = hidden / heads;
    s.vocab = vocab;
    s.sequence = sequence;
    return s;
}

std::string two_digits(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", value);
    return text;
}

// Published lines of the JSC benchmark: seconds per iteration and TFLOPs.
TEST(Flops, JscLogLines) {
    FlopsShape large = shape(96, 12288, 96, 51200, 2048);
    large.recompute = true;
    const double f = flops_per_step(FlopsFormula::jsc, large, 96);
    EXPECT_EQ(two_digits(throughput_tflops(f, 7.2310, 384)), "101.54");
    EXPECT_EQ(two_digits(throughput_tflops(f, 5.3551, 384)), "137.10");
    FlopsShape small = shape(40, 5120, 32, 50432, 2048);
    small.recompute = true;
    EXPECT_EQ(two_digits(throughput_tflops(flops_per_step(FlopsFormula::jsc, small, 1024), 35.8651, 32)), "199.03");
    const double plain = flops_per_step(FlopsFormula::jsc, small, 1024);
    small.gated = true;
    EXPECT_DOUBLE_EQ(flops_per_step(FlopsFormula::jsc, small, 1024), plain * 32 / 24);
    small.recompute = false;
    EXPECT_DOUBLE_EQ(flops_per_step(FlopsFormula::jsc, small, 1024), plain * 32 / 24 * 3 / 4);
}

// Worked out by hand from the formula: L 2, h 8, f 32, 4 heads of 2, 2 kv heads, V 16, s 4, B 3.
TEST(Flops, Core012) {
    FlopsShape s = shape(2, 8, 4, 16, 4);
    s.kv_heads = 2;
    const double mlp = 12.0 * 2 * 8 * 32, attention = 12.0 * 2 * 8 * 8 * (1 + 0.5 + 4.0 / 16), logits = 6.0 * 8 * 16;
    EXPECT_EQ(flops_per_step(FlopsFormula::core_0_12, s, 3), 3 * 4 * (mlp + attention + logits));
    s.gated = true;
    EXPECT_EQ(flops_per_step(FlopsFormula::core_0_12, s, 3), 3 * 4 * (1.5 * mlp + attention + logits));
    s.head_dim = 5;  // q = 20, not h
    const double wide = 12.0 * 2 * 8 * 20 * (1 + 0.5 + 4.0 / 16);
    EXPECT_EQ(flops_per_step(FlopsFormula::core_0_12, s, 3), 3 * 4 * (1.5 * mlp + wide + logits));
}

TEST(Flops, ExactBeyondTwoToTheFiftyThree) {
    // 7.5B on AWS: every term an integer, the sum above 2^53.
    const FlopsShape s = shape(36, 4096, 32, 51200, 2048);
    const std::int64_t per_token =
        12LL * 36 * 4096 * 16384 + 24LL * 36 * 4096 * 4096 + 6LL * 36 * 4096 * 2048 + 6LL * 4096 * 51200;
    EXPECT_EQ(flops_per_step(FlopsFormula::core_0_12, s, 288), static_cast<double>(288LL * 2048 * per_token));
}

TEST(Flops, OlderCores) {
    FlopsShape s = shape(2, 8, 4, 16, 4);
    s.kv_heads = 2;
    const double factor = 12.0 * 3 * 4 * 2 * 64;
    EXPECT_DOUBLE_EQ(flops_per_step(FlopsFormula::core_0_7, s, 3), factor * ((1 + 0.5 + 0.5) + 4 + 16.0 / 32));
    s.head_dim = 4;
    EXPECT_DOUBLE_EQ(flops_per_step(FlopsFormula::core_0_7, s, 3), factor * ((1 + 0.5 + 0.5) * 2 + 4 + 16.0 / 32));
    EXPECT_DOUBLE_EQ(flops_per_step(FlopsFormula::core_0_6, s, 3), factor * ((1 + 0.5 + 0.5) + 4 + 16.0 / 32));
    s.moe = MoeFlops{{true, true}, 2, 32, 8};
    EXPECT_DOUBLE_EQ(flops_per_step(FlopsFormula::core_0_6, s, 3), factor * ((1 + 0.5 + 0.5) + 8 + 1 + 16.0 / 32));
    EXPECT_DOUBLE_EQ(flops_per_step(FlopsFormula::core_0_5, s, 3),
                     60.0 * 3 * 4 * 2 * 64 * (1 + 0.1 + 0.1 + 16.0 / 160));
}

TEST(Flops, MixtureOfExpertsAndPrediction) {
    FlopsShape s = shape(4, 8, 4, 16, 4);
    const double dense = flops_per_step(FlopsFormula::core_0_12, s, 1);
    s.moe = MoeFlops{{true, false, true, false}, 2, 24, 8};
    // Two layers go from 32 to 2·24 + 8 = 56.
    EXPECT_EQ(flops_per_step(FlopsFormula::core_0_12, s, 1), dense + 4 * 12.0 * 8 * 2 * (56 - 32));
    s.moe.reset();
    s.predicted_ahead = 1;
    const double layer = 12.0 * 8 * 32 + 12.0 * 8 * 8 * (2 + 0.25);
    EXPECT_EQ(flops_per_step(FlopsFormula::core_0_12, s, 1),
              dense + 4 * (layer + 6.0 * 8 * 16 + 6.0 * (3 * 8 + 2 * 64)));
}

TEST(Flops, LatentAttention) {
    FlopsShape s = shape(2, 8, 4, 16, 4);
    s.latent = LatentFlops{0, 3, 5, 2, 6};
    const double rest = 12.0 * 2 * 8 * 32 + 6.0 * 8 * 16;
    const double kv = 3.0 * (8 + 4 * (5 + 6) + 1) + 8 * 2 + 4 * 6 * 8 + 4 * 4 * 7 / 2.0 + 4 * 4 * 6 / 2.0;
    EXPECT_EQ(flops_per_step(FlopsFormula::core_0_12, s, 1), 4 * (rest + 6.0 * 2 * (8.0 * 4 * 7 + kv)));
    s.latent->q_rank = 10;
    EXPECT_EQ(flops_per_step(FlopsFormula::core_0_12, s, 1), 4 * (rest + 6.0 * 2 * (10.0 * (8 + 4 * 7 + 1) + kv)));
}

TEST(Flops, Hybrid) {
    const FlopsShape s = shape(4, 64, 4, 16, 4);
    HybridFlops h = hybrid_from_pattern("M*-M");
    EXPECT_EQ(h.attention_layers, 1);
    EXPECT_EQ(h.mamba_layers, 2);
    const double d = 128, attention = 4.0 * 64 * (64 + 64 + 2), mlp = 4.0 * 64 * 256;
    const double mamba = 2.0 * 64 * (2 * d + 2 * 8 * 128 + 2) + 7 * d * 128 + 2 * d * 64;
    EXPECT_EQ(hybrid_flops_per_step(s, h, 5), 3.0 * 5 * 4 * (attention + mlp + 2 * mamba + 2.0 * 64 * 16));
    EXPECT_EQ(hybrid_from_ratios(10, 0.25, 0.35).attention_layers, 2);  // 2.5 goes to even
    EXPECT_EQ(hybrid_from_ratios(10, 0.25, 0.35).mlp_layers, 4);        // 3.5 too
    EXPECT_EQ(hybrid_from_ratios(10, 0.25, 0.35).mamba_layers, 4);
    EXPECT_THROW(hybrid_from_pattern("M?"), UsageError);
}

}  // namespace
}  // namespace tera
