#include "train/batch_schedule.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace tera {
namespace {

TEST(BatchSchedule, ConstantBatch) {
    const BatchSchedule schedule({288, 1, 2, false});
    EXPECT_EQ(schedule.at(0).micro_batches, 144);
    EXPECT_EQ(schedule.at(1'000'000).global_batch, 288);
    EXPECT_EQ(schedule.consumed_after(10), 2880);
}

// The figures of the systems' own logs.
TEST(BatchSchedule, IterationsFromSamples) {
    EXPECT_EQ(BatchSchedule({288, 1, 2, false}).iterations_for(146'484'375), 508'626);
    EXPECT_EQ(BatchSchedule({2, 1, 1, false}).iterations_for(146'484'375), 73'242'187);
    EXPECT_EQ(BatchSchedule({96, 1, 6, false}).iterations_for(300'000'000), 3'125'000);
    EXPECT_EQ(BatchSchedule({1024, 1, 4, false}).iterations_for(300'000'000), 292'968);
}

TEST(BatchSchedule, RefusesUnevenBatches) {
    EXPECT_THROW(BatchSchedule({10, 2, 3, false}), UsageError);
    EXPECT_THROW(BatchSchedule({4, 2, 3, true}), UsageError);
}

TEST(BatchSchedule, DecreasesAndCountsTheRest) {
    const StepBatch step = BatchSchedule({10, 2, 3, true}).at(0);
    EXPECT_EQ(step.global_batch, 10);
    EXPECT_EQ(step.running_batch, 6);
    EXPECT_EQ(step.micro_batches, 1);
    EXPECT_EQ(step.skipped(), 4);
}

TEST(BatchSchedule, RampsInEqualSteps) {
    // 16 -> 64 in steps of 16: three increments, one every 100 samples, the last batch only past 300.
    const BatchSchedule schedule({64, 4, 2, false}, BatchRamp{16, 16, 300});
    EXPECT_EQ(schedule.at(0).global_batch, 16);
    EXPECT_EQ(schedule.at(99).global_batch, 16);
    EXPECT_EQ(schedule.at(100).global_batch, 32);
    EXPECT_EQ(schedule.at(200).global_batch, 48);
    EXPECT_EQ(schedule.at(299).global_batch, 48);
    EXPECT_EQ(schedule.at(300).global_batch, 64);
    EXPECT_EQ(schedule.at(301).global_batch, 64);
    EXPECT_EQ(schedule.at(100).micro_batches, 4);
}

TEST(BatchSchedule, CountsIterationsThroughTheRamp) {
    const BatchSchedule schedule({64, 4, 2, false}, BatchRamp{16, 16, 300});
    // 7 steps of 16 reach 112, 3 of 32 reach 208, 2 of 48 reach 304; then 64 at a time, the last partial batch left
    // out.
    EXPECT_EQ(schedule.iterations_for(1000), 12 + (1000 - 304) / 64);
    EXPECT_EQ(schedule.iterations_for(100), 7);  // past 100 only after the seventh step
    EXPECT_EQ(schedule.consumed_after(7), 112);
    EXPECT_EQ(schedule.consumed_after(12), 304);
    EXPECT_EQ(schedule.consumed_after(13), 368);
}

TEST(BatchSchedule, SwissAiRamp) {
    // "1024 then 2048 after 1718272000 samples"
    const BatchSchedule schedule({2048, 1, 512, false}, BatchRamp{1024, 1024, 1'718'272'000});
    EXPECT_EQ(schedule.at(1'718'271'999).global_batch, 1024);
    EXPECT_EQ(schedule.at(1'718'272'000).global_batch, 2048);
    EXPECT_EQ(schedule.at(1'718'272'001).global_batch, 2048);
}

TEST(BatchSchedule, StretchesEqualSingleSteps) {
    const BatchRamp ramp{12, 4, 977};
    const BatchSchedule schedule({64, 1, 4, false}, ramp);
    std::int64_t consumed = 0;
    for (std::int64_t i = 0; i < 60; ++i) {
        EXPECT_EQ(schedule.consumed_after(i), consumed) << i;
        consumed += schedule.at(consumed).running_batch;
    }
    for (std::int64_t samples = 1; samples < 2000; samples += 7) {
        std::int64_t n = 0, seen = 0;
        while (seen <= ramp.samples && seen <= samples) seen += schedule.at(seen).global_batch, ++n;
        if (samples > seen) n += (samples - seen) / 64;
        EXPECT_EQ(schedule.iterations_for(samples), n) << samples;
    }
}

TEST(BatchSchedule, LongRampsTakeNoTime) {
    const BatchSchedule schedule({9, 1, 1, false}, BatchRamp{1, 1, 8'000'000'000'000'000});
    EXPECT_EQ(schedule.every_batch().back().global_batch, schedule.full().global_batch);
    // Eight stretches of 10^15 samples with 1 .. 8 samples a step, one more step past the end, then 9 a step.
    EXPECT_EQ(schedule.consumed_after(1'000'000'000'000'000), 1'000'000'000'000'000);
    EXPECT_EQ(schedule.at(schedule.consumed_after(1'000'000'000'000'001)).global_batch, 2);
    EXPECT_GT(schedule.iterations_for(9'000'000'000'000'000), 2'700'000'000'000'000);
}

TEST(BatchSchedule, RefusesImpossibleRamps) {
    EXPECT_THROW(BatchSchedule({64, 4, 2, false}, BatchRamp{64, 16, 300}), UsageError);
    EXPECT_THROW(BatchSchedule({64, 4, 2, false}, BatchRamp{16, 16, 0}), UsageError);
    EXPECT_THROW(BatchSchedule({64, 4, 2, false}, BatchRamp{16, 20, 300}), UsageError);
    const BatchSchedule uneven({64, 4, 2, false}, BatchRamp{12, 4, 300});
    EXPECT_THROW(uneven.at(0), UsageError);
    EXPECT_THROW(uneven.every_batch(), UsageError);
    EXPECT_THROW(BatchSchedule({64, 4, 2, false}, BatchRamp{16, 4, 300}).every_batch(), UsageError);
    EXPECT_EQ(BatchSchedule({64, 4, 2, true}, BatchRamp{12, 4, 300}).at(0).running_batch, 8);
}

}  // namespace
}  // namespace tera
