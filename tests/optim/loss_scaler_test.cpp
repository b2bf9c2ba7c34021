#include "optim/loss_scaler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tera {
namespace {

TEST(LossScaler, OverflowsFromTheStartHalveFromTheSecondOn) {
    LossScaler scaler(LossScaler::Dynamic{});
    EXPECT_EQ(scaler.scale(), 4294967296.0);
    const double after[] = {4294967296.0, 2147483648.0, 1073741824.0, 536870912.0};  // iterations 1, 2, 3, 4
    for (double expected : after) {
        scaler.update(true);
        EXPECT_EQ(scaler.scale(), expected);
    }
}

TEST(LossScaler, OnlyGrowthRefillsPatience) {
    LossScaler scaler(LossScaler::Dynamic{1024, 1, 3, 2});
    scaler.update(true);
    scaler.update(true);
    EXPECT_EQ(scaler.scale(), 512);
    scaler.update(false);
    scaler.update(false);
    scaler.update(true);  // two good steps are lost, and there is no patience left
    EXPECT_EQ(scaler.scale(), 256);
    for (int i = 0; i < 3; ++i) scaler.update(false);
    EXPECT_EQ(scaler.scale(), 512);
    EXPECT_EQ(scaler.state(), (LossScaler::State{512, 0, 2}));
    scaler.update(true);
    EXPECT_EQ(scaler.scale(), 512);
    scaler.update(true);
    EXPECT_EQ(scaler.scale(), 256);
}

TEST(LossScaler, StopsAtTheMinimumAndHasNoMaximum) {
    LossScaler low(LossScaler::Dynamic{4, 2, 1000, 1});
    for (int i = 0; i < 5; ++i) low.update(true);
    EXPECT_EQ(low.scale(), 2);
    LossScaler high(LossScaler::Dynamic{std::ldexp(1.0, 126), 1, 1, 2});
    high.update(false);
    EXPECT_EQ(high.scale(), std::ldexp(1.0, 127));
    high.update(false);
    EXPECT_EQ(high.scale(), std::numeric_limits<double>::infinity());
    EXPECT_EQ(high.inverse(), 0);
}

TEST(LossScaler, ConstantNeverMoves) {
    LossScaler scaler(1024.0);
    for (int i = 0; i < 2000; ++i) scaler.update(i % 3 == 0);
    EXPECT_EQ(scaler.scale(), 1024);
    EXPECT_EQ(scaler.inverse(), 1.0 / 1024);
    EXPECT_FALSE(scaler.dynamic());
}

TEST(LossScaler, ContinuesFromItsState) {
    LossScaler a(LossScaler::Dynamic{65536, 1, 4, 2});
    for (bool overflow : {true, false, false, true, false}) a.update(overflow);
    LossScaler b(LossScaler::Dynamic{65536, 1, 4, 2});
    b.set_state(a.state());
    for (bool overflow : {false, false, false, true, true, false}) {
        a.update(overflow);
        b.update(overflow);
        EXPECT_EQ(a.state(), b.state());
    }
}

}  // namespace
}  // namespace tera
