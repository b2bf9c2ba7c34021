// --profile in a run.
#include "support/expect_usage_error.h"
#include "train/trainer_fixture.h"

namespace tera {
namespace {

class TrainerProfile : public TrainerRuns {};

const char* const flags = "--train-iters 4 --profile --profile-step-start 1 --profile-step-end 3";

TEST_F(TrainerProfile, OnTheCpuOneLineSaysThatNothingIsMarked) {
    const RunRecord record = run(flags);
    EXPECT_TRUE(record.finished);
    EXPECT_EQ(record.count("--profile marks steps for GPU profilers"), 1);
    EXPECT_FALSE(record.printed("> profiling from iteration"));
}

TEST_F(TrainerProfile, OnAGpuTheRangeOpensAndCloses) {
    if (Engine::gpus() == 0) GTEST_SKIP() << "no GPU here";
    device = "cuda";
    const RunRecord record = run(flags);
    EXPECT_TRUE(record.finished);
    EXPECT_EQ(record.count("> profiling from iteration 2"), 1);
    EXPECT_EQ(record.count("> profiled to iteration 3"), 1);
    EXPECT_FALSE(record.printed("--profile marks steps for GPU profilers"));
    EXPECT_FALSE(run("--train-iters 4 --profile --profile-step-start 1 --profile-step-end 3 --profile-ranks 1")
                     .printed("> profiling from iteration"));
}

TEST_F(TrainerProfile, AnEmptyRangeIsRefused) {
    expect_usage_error([&] { config_of("--train-iters 4 --profile --profile-step-start 3 --profile-step-end 3"); },
                       {"--profile-step-end 3", "--profile-step-start 3"});
}

TEST_F(TrainerProfile, AFolderThatCannotBeMadeIsSaidBeforeTraining) {
    expect_usage_error([&] { run(std::string(flags) + " --profile-timeline /proc/nowhere"); }, {"/proc/nowhere"});
}

}  // namespace
}  // namespace tera
