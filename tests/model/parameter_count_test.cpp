#include "model/parameter_count.h"

#include <gtest/gtest.h>

namespace tera {
namespace {

ParameterShape gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab,
                   std::int64_t positions) {
    ParameterShape s;
    s.layers = layers;
    s.hidden = hidden;
    s.ffn = 4 * hidden;
    s.heads = s.kv_heads = heads;
    s.head_dim = hidden / heads;
    s.vocab = vocab;
    s.positions = positions;
    return s;
}

TEST(ParameterCount, Gpt2Small) {
    // The published 124M model: vocabulary without padding.
    EXPECT_EQ(count_parameters(gpt(12, 768, 12, 50257, 1024), 1, {12}).total, 124'439'808);
}

TEST(ParameterCount, Llama) {
    ParameterShape s = gpt(32, 4096, 32, 32000, 0);
    s.ffn = 11008;
    s.gated = true;
    s.linear_bias = s.qkv_bias = s.norm_bias = s.tied = false;
    EXPECT_EQ(count_parameters(s, 1, {32}).total, 6'738'415'616);  // Llama 2 7B
    s = gpt(32, 4096, 32, 128256, 0);
    s.ffn = 14336;
    s.kv_heads = 8;
    s.gated = true;
    s.linear_bias = s.qkv_bias = s.norm_bias = s.tied = false;
    EXPECT_EQ(count_parameters(s, 1, {32}).total, 8'030'261'248);  // Llama 3 8B
}

TEST(ParameterCount, AwsTensorRank) {
    const ParameterCount count = count_parameters(gpt(36, 4096, 32, 51200, 2048), 8, {36});
    EXPECT_EQ(count.total, 7'467'786'240);
    ASSERT_EQ(count.per_rank.size(), 1u);
    ASSERT_EQ(count.per_rank[0].size(), 8u);
    for (const std::int64_t on_rank : count.per_rank[0]) EXPECT_EQ(on_rank, 941'594'624);
}

TEST(ParameterCount, RanksThatShareAKeyValueHeadHoldItWhole) {
    ParameterShape s = gpt(2, 64, 4, 512, 16);
    s.kv_heads = 2;
    const ParameterCount count = count_parameters(s, 4, {2});
    EXPECT_EQ(count.per_rank[0][0], 34912);
    // Two layers, keys and values, 16 rows of 64 weights and a bias, of which two ranks hold the same.
    EXPECT_EQ(4 * count.per_rank[0][0] - count_parameters(s, 1, {2}).total,
              2 * 2 * 2 * 16 * 65 + 3 * (16 * 64 + 2 * (2 * 64 + 2 * 64 + 2 * 64) + 2 * 64));
}

TEST(ParameterCount, StagesHoldTheTiedCopy) {
    const ParameterShape s = gpt(4, 64, 4, 128, 32);
    const std::int64_t layer = 12 * 64 * 64 + 13 * 64;
    const ParameterCount count = count_parameters(s, 1, {1, 2, 1});
    EXPECT_EQ(count.total, 128 * 64 + 32 * 64 + 4 * layer + 2 * 64);
    EXPECT_EQ(count.per_rank[0][0], 128 * 64 + 32 * 64 + layer);
    EXPECT_EQ(count.per_rank[1][0], 2 * layer);
    EXPECT_EQ(count.per_rank[2][0], layer + 2 * 64 + 128 * 64);
    ParameterShape untied = s;
    untied.tied = false;
    const ParameterCount separate = count_parameters(untied, 1, {1, 2, 1});
    EXPECT_EQ(separate.total, count.total + 128 * 64);
    EXPECT_EQ(separate.per_rank, count.per_rank);
}

TEST(ParameterCount, EverySwitchOfALayer) {
    const ParameterShape base = gpt(2, 64, 4, 128, 0);
    const std::int64_t plain = count_parameters(base, 1, {2}).total;
    const auto with = [&](auto change) {
        ParameterShape s = base;
        change(s);
        return count_parameters(s, 1, {2}).total - plain;
    };
    EXPECT_EQ(with([](auto& s) { s.gated = true; }), 2 * (256 * 64 + 256));
    EXPECT_EQ(with([](auto& s) { s.linear_bias = false; }), -2 * (64 + 256 + 64));
    EXPECT_EQ(with([](auto& s) { s.linear_bias = s.qkv_bias = false; }), -2 * (64 + 256 + 64 + 192));
    EXPECT_EQ(with([](auto& s) { s.norm_bias = false; }), -(2 * 2 + 1) * 64);
    EXPECT_EQ(with([](auto& s) { s.qk_norm = true; }), 2 * 2 * 2 * 16);
    EXPECT_EQ(with([](auto& s) { s.kv_heads = 2; }), -2 * 2 * 2 * 16 * 65);
    EXPECT_EQ(with([](auto& s) { s.head_dim = 32; }), 2 * (3 * 64 * 65 + 64 * 64));
    EXPECT_EQ(with([](auto& s) { s.positions = 10; }), 640);
    EXPECT_EQ(with([](auto& s) { s.activation_scalars = 2; }), 4);
    EXPECT_EQ(with([](auto& s) { s.post_norm = true; }), 2 * 2 * 128);
    EXPECT_EQ(with([](auto& s) { s.attention_norm = s.mlp_norm = s.final_norm = false; }), -5 * 128);
}

TEST(ParameterCount, BertHeads) {
    ParameterShape s = gpt(4, 128, 16, 30592, 512);
    s.kind = ParameterShape::Kind::bert;
    EXPECT_EQ(count_parameters(s, 1, {4}).total, 4'839'042);
    const ParameterCount full = count_parameters(s, 2, {2, 2});
    EXPECT_EQ(full.total, 4'839'042);
    s.binary_head = false;
    EXPECT_EQ(count_parameters(s, 1, {4}).total, 4'839'042 - (128 * 128 + 128 + 2 * 128 + 2));
}

TEST(ParameterCount, T5) {
    ParameterShape s = gpt(6, 512, 8, 30720, 512);
    s.kind = ParameterShape::Kind::t5;
    s.encoder_layers = 6;
    EXPECT_EQ(count_parameters(s, 1, {6}).total, 60'162'048);
}

}  // namespace
}  // namespace tera
