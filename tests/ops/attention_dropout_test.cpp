// Which probabilities attention drops. With queries of zero all are alike, and with values that are rows of the unit
// matrix they are what comes out.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/attention_dropout.h"
#include "support/world.h"

namespace tera::test {
namespace {

using namespace ops;

constexpr DropoutSite site{77, 5, 1};

/// Factors on the probabilities [S,H,S] of one sample.
std::vector<double> factors(double dropout, std::int64_t S, std::int64_t H, std::int64_t sample) {
    World w;
    const Tensor zero = w.zeros(DType::f64, {S, H * S}), unit = w.zeros(DType::f64, {S, S});
    for (std::int64_t i = 0; i < S; ++i) unit.ptr<double>()[i * S + i] = 1;
    AttentionSpec spec{.B = 1, .Sq = S, .Sk = S, .H = H, .G = 1, .K = S, .scale = 1, .causal = false};
    spec.dropout = dropout, spec.site = site, spec.sample = &sample;
    const ConstTensor q = zero, v = unit;
    std::vector<double> o = values(attention(w.ctx.temp, spec, {q, 0}, {q, 0}, {v, 0}).o);
    for (double& x : o) x *= static_cast<double>(S);
    return o;
}

TEST(AttentionDropout, eight_probabilities_share_a_call) {
    constexpr std::int64_t S = 37, H = 3, sample = 1LL << 33, pairs = 24, fours = 12;  // 37 rounded up to 48
    const std::vector<double> got = factors(0.3, S, H, sample);
    for (std::int64_t q = 0; q < S; ++q)
        for (std::int64_t h = 0; h < H; ++h)
            for (std::int64_t k = 0; k < S; ++k) {
                const std::int64_t pair = q / 16 * 8 + q % 8, four = k / 16 * 4 + k % 8 / 2;
                const U32x4 words =
                    dropout_words(site, sample, static_cast<std::uint64_t>((h * pairs + pair) * fours + four));
                const std::uint32_t word = words.v[q / 8 % 2 * 2 + k / 8 % 2],
                                    number = k % 2 ? word >> 16 : word & 0xffff;
                const double expected = number < 19661 ? 0 : 65536.0 / (65536 - 19661);  // 0.3 · 65536 = 19660.8
                EXPECT_NEAR(got[static_cast<std::size_t>((q * H + h) * S + k)], expected, 1e-13)
                    << q << " " << h << " " << k;
            }
}

TEST(AttentionDropout, those_of_a_call_do_not_know_of_each_other) {
    constexpr std::int64_t S = 128, H = 4, calls = S * H * S / 8;
    constexpr double p = 0.25;
    const std::vector<double> got = factors(p, S, H, 3);
    double both[8][8] = {};
    for (std::int64_t pair = 0; pair < S / 2; ++pair)
        for (std::int64_t h = 0; h < H; ++h)
            for (std::int64_t four = 0; four < S / 4; ++four) {
                const auto dropped = [&](std::int64_t i) {
                    const std::int64_t q = pair / 8 * 16 + pair % 8 + i / 4 * 8,
                                       k = four / 4 * 16 + four % 4 * 2 + i % 4 / 2 * 8 + i % 2;
                    return got[static_cast<std::size_t>((q * H + h) * S + k)] == 0;
                };
                for (int i = 0; i < 8; ++i)
                    for (int j = 0; j < 8; ++j) both[i][j] += dropped(i) && dropped(j) ? 1.0 / calls : 0;
            }
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) {
            const double expected = i == j ? p : p * p, deviation = std::sqrt(expected * (1 - expected) / calls);
            EXPECT_NEAR(both[i][j], expected, 5 * deviation) << i << " and " << j;
        }
}

TEST(AttentionDropout, hardly_any_and_nearly_all) {
    for (const double x : factors(1e-6, 8, 1, 3)) EXPECT_NEAR(x, 1, 1e-15);
    for (const double x : factors(1 - 1e-6, 8, 1, 3)) EXPECT_EQ(x, 0);
    AttentionSpec spec{.B = 1, .Sq = 8, .Sk = 8, .H = 1, .G = 1, .K = 8, .scale = 1};
    spec.dropout = 1 - 1e-6;
    EXPECT_EQ(AttentionDropout(spec).factor(), 65536);  // one in 65536 is kept
}

}  // namespace
}  // namespace tera::test
