#include "optim/lr_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "core/error.h"

namespace tera {
namespace {

std::string logged(double value, const char* format = "%.3E") {
    char text[32];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

LrSchedule schedule(double max, double min, double warmup, double decay, LrDecay style) {
    LrSchedule s;
    s.max_lr = max;
    s.min_lr = min;
    s.warmup_steps = warmup;
    s.decay_steps = decay;
    s.style = style;
    return s;
}

// Lines of published logs.
TEST(LrSchedule, WarmUpOfTheAwsRun) {
    const LrSchedule s = schedule(6.0e-5, 6.0e-6, 183105, 126953125, LrDecay::cosine);
    EXPECT_EQ(logged(s.learning_rate(50)), "1.638E-08");
    EXPECT_EQ(logged(s.learning_rate(52)), "1.704E-08");
    EXPECT_EQ(logged(s.learning_rate(54)), "1.769E-08");
    EXPECT_EQ(s.learning_rate(0), 0.0);
}

TEST(LrSchedule, WarmUpOfTheJscRuns) {
    const LrSchedule s = schedule(1e-4, 1e-5, 216320, 126953125, LrDecay::cosine);
    const char* small[] = {"4.438E-07", "8.876E-07", "1.331E-06", "1.775E-06", "2.219E-06"};
    const char* large[] = {"4.734E-06", "9.467E-06", "1.420E-05", "1.893E-05", "2.367E-05"};
    for (int i = 1; i <= 5; ++i) {
        EXPECT_EQ(logged(s.learning_rate(10.0 * i * 96)), small[i - 1]);
        EXPECT_EQ(logged(s.learning_rate(10.0 * i * 1024)), large[i - 1]);
    }
}

TEST(LrSchedule, LinearAndCosine) {
    const LrSchedule linear = schedule(1.0, 0.1, 10, 110, LrDecay::linear);
    EXPECT_DOUBLE_EQ(linear.learning_rate(5), 0.5);
    EXPECT_DOUBLE_EQ(linear.learning_rate(10), 1.0);
    EXPECT_DOUBLE_EQ(linear.learning_rate(60), 0.1 + 0.5 * 0.9);
    EXPECT_DOUBLE_EQ(linear.learning_rate(110), 0.1);
    EXPECT_DOUBLE_EQ(linear.learning_rate(111), 0.1);
    const LrSchedule cosine = schedule(1.0, 0.1, 10, 110, LrDecay::cosine);
    EXPECT_DOUBLE_EQ(cosine.learning_rate(60), 0.55);
    EXPECT_DOUBLE_EQ(cosine.learning_rate(35), 0.1 + 0.9 * 0.5 * (std::cos(M_PI / 4) + 1));
    EXPECT_DOUBLE_EQ(cosine.learning_rate(1000), 0.1);
}

TEST(LrSchedule, ConstantNeverEnds) {
    const LrSchedule s = schedule(0.3, 0.1, 0, 100, LrDecay::constant);
    EXPECT_EQ(s.learning_rate(0), 0.3);
    EXPECT_EQ(s.learning_rate(1e9), 0.3);
}

TEST(LrSchedule, InverseSquareRoot) {
    const LrSchedule s = schedule(1.0, 0.2, 4, 1000, LrDecay::inverse_square_root);
    EXPECT_DOUBLE_EQ(s.learning_rate(2), 0.5);
    EXPECT_DOUBLE_EQ(s.learning_rate(16), 0.5);
    EXPECT_DOUBLE_EQ(s.learning_rate(900), 0.2);  // 2/30 is below the floor
    const LrSchedule cold = schedule(1.0, 0.0, 0, 1000, LrDecay::inverse_square_root);
    EXPECT_DOUBLE_EQ(cold.learning_rate(0), 1.0);
    EXPECT_DOUBLE_EQ(cold.learning_rate(25), 0.2);
}

TEST(LrSchedule, WarmupStable) {
    LrSchedule s = schedule(1.0, 0.2, 10, 110, LrDecay::wsd);
    s.wsd_steps = 40;
    const auto at = [&](WsdDecay style, double n) {
        s.wsd_style = style;
        return s.learning_rate(n);
    };
    EXPECT_DOUBLE_EQ(at(WsdDecay::linear, 70), 1.0);
    EXPECT_DOUBLE_EQ(at(WsdDecay::linear, 80), 0.2 + 0.8 * 0.75);
    EXPECT_DOUBLE_EQ(at(WsdDecay::cosine, 90), 0.6);
    EXPECT_DOUBLE_EQ(at(WsdDecay::exponential, 90), 0.2 + 0.8 * (2 * std::sqrt(0.5) - 1));
    EXPECT_DOUBLE_EQ(at(WsdDecay::minus_sqrt, 80), 0.2 + 0.8 * 0.5);
    EXPECT_DOUBLE_EQ(at(WsdDecay::minus_sqrt, 110), 0.2);
    EXPECT_DOUBLE_EQ(at(WsdDecay::minus_sqrt, 111), 0.2);
    s.wsd_steps = 0;  // no final decay: full rate to the end, then the floor
    EXPECT_DOUBLE_EQ(at(WsdDecay::linear, 110), 1.0);
    EXPECT_DOUBLE_EQ(at(WsdDecay::linear, 111), 0.2);
    EXPECT_EQ(parse_wsd_decay("1-sqrt"), WsdDecay::minus_sqrt);
}

TEST(LrSchedule, WarmUpStartsWhereItIsTold) {
    LrSchedule s = schedule(1.0, 0.0, 10, 100, LrDecay::linear);
    s.init_lr = 0.5;
    EXPECT_DOUBLE_EQ(s.learning_rate(0), 0.5);
    EXPECT_DOUBLE_EQ(s.learning_rate(5), 0.75);
}

TEST(LrSchedule, GroupsKeepLengthsAndChangeRange) {
    const LrSchedule s = schedule(1.0, 0.1, 10, 110, LrDecay::linear);
    EXPECT_DOUBLE_EQ(s.learning_rate(60, 4.0, 2.0), 3.0);
    EXPECT_DOUBLE_EQ(s.learning_rate(5, 4.0, 2.0), 2.0);
}

TEST(LrSchedule, WeightDecayGrows) {
    LrSchedule s = schedule(1.0, 0.0, 0, 100, LrDecay::linear);
    s.start_wd = s.end_wd = 0.1;
    EXPECT_DOUBLE_EQ(s.weight_decay(0), 0.1);
    EXPECT_DOUBLE_EQ(s.weight_decay(1e6), 0.1);
    s.end_wd = 0.3;
    s.wd_steps = 100;
    s.wd_style = WdGrowth::linear;
    EXPECT_DOUBLE_EQ(s.weight_decay(25), 0.15);
    s.wd_style = WdGrowth::cosine;
    EXPECT_DOUBLE_EQ(s.weight_decay(50), 0.2);
    EXPECT_DOUBLE_EQ(s.weight_decay(0), 0.1);
    EXPECT_DOUBLE_EQ(s.weight_decay(25), 0.1 + 0.2 * 0.5 * (std::cos(M_PI * 0.75) + 1));
    EXPECT_DOUBLE_EQ(s.weight_decay(101), 0.3);
}

TEST(LrSchedule, RefusesTheImpossible) {
    EXPECT_THROW(schedule(1.0, 2.0, 0, 100, LrDecay::linear).check(), UsageError);
    EXPECT_THROW(schedule(1.0, -1.0, 0, 100, LrDecay::linear).check(), UsageError);
    EXPECT_THROW(schedule(1.0, 0.0, 100, 100, LrDecay::linear).check(), UsageError);
    EXPECT_THROW(schedule(1.0, 0.0, 0, 0, LrDecay::linear).check(), UsageError);
    LrSchedule s = schedule(1.0, 0.0, 0, 100, LrDecay::wsd);
    s.wsd_steps = 101;
    EXPECT_THROW(s.check(), UsageError);
    EXPECT_THROW(parse_lr_decay("sqrt"), UsageError);
    EXPECT_NO_THROW(schedule(1.0, 0.0, 99.5, 100, LrDecay::linear).check());
}

TEST(LrSchedule, ResumeAgreesOrIsTold) {
    const LrSchedule old = schedule(1.0, 0.1, 10, 110, LrDecay::linear);
    LrSchedule now = old;
    EXPECT_EQ(schedule_at_resume(now, old, false, false).max_lr, 1.0);
    now.max_lr = 2.0;
    EXPECT_THROW(schedule_at_resume(now, old, false, false), UsageError);
    EXPECT_EQ(schedule_at_resume(now, old, true, false).max_lr, 2.0);
    EXPECT_EQ(schedule_at_resume(now, old, false, true).max_lr, 1.0);
    now = old;
    now.style = LrDecay::cosine;
    EXPECT_THROW(schedule_at_resume(now, old, false, false), UsageError);
    now = old;
    now.decay_steps = 120;
    EXPECT_THROW(schedule_at_resume(now, old, false, false), UsageError);
    now.style = LrDecay::constant;  // the decay length means nothing to a constant rate
    LrSchedule constant = old;
    constant.style = LrDecay::constant;
    EXPECT_EQ(schedule_at_resume(now, constant, false, false).decay_steps, 120);
}

}  // namespace
}  // namespace tera
