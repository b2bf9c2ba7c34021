// Main weights in two halves: nothing is lost, the value is the nearest, and what cannot be kept comes nearest.
#include "optim/main_weights.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "optim_fixture.h"

namespace tera {
namespace {

float of_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }
float value_of(SplitWeight s) { return joined({s.value, 0}); }

/// Bits from all over: every exponent and sign, with lower halves around the middle and the ends.
template <class F>
void for_many(const F& f) {
    for (std::uint32_t upper = 0; upper <= 0xffff; ++upper)
        for (const std::uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu, 0x1234u, 0xedcbu})
            f(upper << 16 | lower);
}

TEST(MainWeights, HalvesJoinToWhatWasSplit) {
    for_many([](std::uint32_t bits) {
        const float x = of_bits(bits), back = joined(split(x));
        if (std::isnan(x)) {
            ASSERT_TRUE(std::isnan(back)) << std::hex << bits;
            ASSERT_TRUE(std::isnan(value_of(split(x)))) << std::hex << bits;
        } else {
            ASSERT_EQ(bits_of(back), bits) << std::hex << bits;
        }
    });
}

TEST(MainWeights, TheValueIsTheNearestAndBetweenTwoTheOneFurtherFromZero) {
    for_many([](std::uint32_t bits) {
        const float x = of_bits(bits);
        if (std::isnan(x)) return;
        const float value = value_of(split(x)), even = static_cast<float>(bf16_t(x));
        if ((bits & 0xffff) != 0x8000)
            ASSERT_EQ(bits_of(value), bits_of(even)) << std::hex << bits;
        else
            ASSERT_EQ(bits_of(value), (bits & 0xffff0000) + 0x10000) << std::hex << bits;
    });
}

TEST(MainWeights, BesideAValueThatStaysTheNearestIsKept) {
    for_many([](std::uint32_t bits) {
        const float x = of_bits(bits);
        if (!std::isfinite(x)) return;
        const bf16_t value(x);
        const float kept = joined({value.bits, rest_beside(value.bits, x)});
        // Halfway to an even value, which is nearer to zero: the next number that rounds to it.
        const bool unreachable = (bits & 0xffff) == 0x8000 && value.bits == bits >> 16;
        ASSERT_EQ(bits_of(kept), unreachable ? bits - 1 : bits) << std::hex << bits;
    });
    const bf16_t one(1.0f);
    EXPECT_EQ(joined({one.bits, rest_beside(one.bits, 7.0f)}), of_bits(bits_of(1.0f) + 32767));
    EXPECT_EQ(joined({one.bits, rest_beside(one.bits, 0.1f)}), of_bits(bits_of(1.0f) - 32768));
    for (const float other : {-1.0f, -0.0f, std::numeric_limits<float>::infinity(), std::nanf("")})
        EXPECT_EQ(joined({one.bits, rest_beside(one.bits, other)}), 1.0f) << other;
    const bf16_t minus_zero(-0.0f);
    EXPECT_EQ(bits_of(joined({minus_zero.bits, rest_beside(minus_zero.bits, 1e-40f)})), bits_of(-0.0f));
}

TEST(MainWeights, TwoBytesBesideTheValuesAndTheStateInFp32) {
    ParamSet set;
    set.add("a", 1000, DType::bf16, DType::f32);
    Exec exec{Device::cpu, &set.arena(), &test_pool()};
    Optimizer optimizer(make_adam({}), set.list(), set.arena(), exec);
    EXPECT_EQ(Optimizer::state_bytes(*make_adam({}), whole_slices(set.list())), 2048 + 2 * 4032);
    const SplitTensor main = optimizer.main_weights()[0];
    EXPECT_EQ(main.tensor.data, set.list()[0]->value.data);
    EXPECT_EQ(main.own_bytes(), 2000u);
    EXPECT_EQ(main.dtype(), DType::f32);
}

/// Small steps add up although none of them alone changes the value.
TEST(MainWeights, StepsSmallerThanARoundingAddUp) {
    ParamSet set;
    Param& p = set.add("a", 5, DType::bf16, DType::f32);
    fill(p.value, {1, 1, 1, 1, 1});
    Exec exec{Device::cpu, &set.arena(), &test_pool()};
    Optimizer optimizer(make_sgd(0), set.list(), set.arena(), exec);
    float expected = 1;
    int moved = 0;
    for (int t = 0; t < 100; ++t) {
        const double before = values_of(p.value)[4];
        fill(p.grad, {1, 1, 1, 1, 1});
        take_step(optimizer, exec, {.lr = 1e-4});
        expected -= 1e-4f;
        ASSERT_EQ(values_of(optimizer.main_weights()[0])[4], expected);
        moved += values_of(p.value)[4] != before;
    }
    EXPECT_GT(moved, 0);
    EXPECT_LT(moved, 10);
    EXPECT_NEAR(values_of(p.value)[4], 0.99, 0.002);
}

}  // namespace
}  // namespace tera
