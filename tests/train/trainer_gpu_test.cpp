// The laws of a training run on a GPU: the same twice, resume = no stop, recompute on = off, all bit for bit in
// deterministic mode; fp16 finds its scale. Skipped by name without a GPU.
#include <cmath>

#include "core/engine.h"
#include "trainer_fixture.h"

namespace tera {
namespace {

class TrainerOnGpu : public TrainerRuns {
  protected:
    void SetUp() override {
        if (Engine::gpus() == 0) GTEST_SKIP() << "no GPU in this machine";
        device = "cuda";
    }
    const std::string wide =
        "--deterministic-mode --hidden-size 256 --num-attention-heads 4 --seq-length 128 --max-position-embeddings "
        "128 ";
};

TEST_F(TrainerOnGpu, TheSameTwiceBitForBit) {
    for (const char* kind : {"", "--bf16 ", "--bf16 --attention-dropout 0 --hidden-dropout 0 ", "--fp16 "}) {
        SCOPED_TRACE(kind);
        const std::string flags = wide + "--train-iters 6 " + kind;
        expect_same_training(run(flags), run(flags));
    }
}

TEST_F(TrainerOnGpu, ResumeIsNoStopBitForBit) {
    const std::string changing =
        wide + "--train-iters 8 --lr-warmup-iters 2 --eval-interval 3 --eval-iters 1 --attention-dropout 0 ";
    const std::string llama =
        "--swiglu --position-embedding-type rope --normalization RMSNorm --untie-embeddings-and-output-weights "
        "--disable-bias-linear --group-query-attention --num-query-groups 2 --bf16 ";
    for (const std::string& kind : {std::string(), std::string("--bf16 "), llama, llama + "--main-grads-dtype bf16 ",
                                    std::string("--fp16 --initial-loss-scale 65536 "),
                                    std::string("--bf16 --optimizer ademamix "), std::string("--optimizer sgd ")}) {
        SCOPED_TRACE(kind);
        expect_resume_is_no_stop(changing + kind);
    }
}

TEST_F(TrainerOnGpu, RecomputeDoesNotChangeABit) {
    const std::string flags = wide + "--bf16 --train-iters 4 --num-layers 3 ";
    const RunRecord kept = run(flags);
    for (const char* how :
         {"--recompute-activations", "--recompute-granularity full --recompute-method uniform --recompute-num-layers 2",
          "--recompute-granularity full --recompute-method block --recompute-num-layers 2"}) {
        SCOPED_TRACE(how);
        expect_same_training(kept, run(flags + how));
    }
}

TEST_F(TrainerOnGpu, RecordingsDoNotChangeABit) {
    for (const char* kind : {"--bf16 ", "--bf16 --attention-dropout 0 --hidden-dropout 0 --global-batch-size 8 ",
                             "--fp16 --initial-loss-scale 65536 --eval-interval 5 --eval-iters 1 ",
                             "--bf16 --reset-attention-mask --eod-mask-loss ",
                             "--bf16 --recompute-granularity full --recompute-method uniform "
                             "--recompute-num-layers 1 "}) {
        SCOPED_TRACE(kind);
        const std::string flags = wide + "--train-iters 12 " + kind;
        const RunRecord recorded = run(flags + "--enable-cuda-graph ");
        expect_same_training(run(flags + "--no-cuda-graph "), recorded);
        EXPECT_EQ(recorded.printed("--enable-cuda-graph changes nothing here: with --reset-attention-mask"),
                  flags.find("--reset-attention-mask") != std::string::npos);
    }
}

TEST_F(TrainerOnGpu, WhatCannotBeRecordedIsSaidWhereItWasAskedFor) {
    const std::string line = "--enable-cuda-graph changes nothing here: ";
    const std::string flags = "--train-iters 1 ";
    EXPECT_TRUE(run(flags + "--timing-log-level 2 --enable-cuda-graph").printed(line + "--timing-log-level 2"));
    EXPECT_TRUE(run(flags + "--profile --profile-step-start 5 --profile-step-end 6 --enable-cuda-graph")
                    .printed(line + "with --profile"));
    EXPECT_FALSE(run(flags + "--enable-cuda-graph").printed(line));
    EXPECT_FALSE(run(flags + "--timing-log-level 2").printed(line));
}

TEST_F(TrainerOnGpu, RecordedMicroBatchesOfAStepAddUp) {
    // Each of three places that batches are sent to comes as the first of a step and as the second.
    // With fp16 the scale of the loss falls from step to step at first.
    for (const char* kind : {"--bf16 --train-iters 12 ", "--fp16 --train-iters 30 --initial-loss-scale 1e12 "}) {
        SCOPED_TRACE(kind);
        const std::string flags =
            std::string(kind) + "--deterministic-mode --micro-batch-size 2 --global-batch-size 4 ";
        expect_same_training(run(flags + "--no-cuda-graph "), run(flags));
    }
}

TEST_F(TrainerOnGpu, SinglePrecisionFollowsTheCpu) {
    const std::string flags = wide + "--train-iters 10 --lr 1e-3 --attention-dropout 0.1 --hidden-dropout 0.1 ";
    const RunRecord gpu = run(flags);
    device = "cpu";
    const RunRecord cpu = run(flags);
    ASSERT_EQ(gpu.losses.size(), 10u);
    ASSERT_EQ(cpu.losses.size(), 10u);
    for (std::size_t i = 0; i < cpu.losses.size(); ++i) EXPECT_NEAR(gpu.losses[i], cpu.losses[i], 1e-4 * cpu.losses[i]);
}

TEST_F(TrainerOnGpu, HalfPrecisionFindsItsScaleAndLearns) {
    const RunRecord r = run(wide + "--fp16 --train-iters 60 --lr 1e-3 ");
    EXPECT_EQ(r.field("loss scale", 0), "4294967296.0");  // the first overflow is forgiven
    EXPECT_EQ(r.field("loss scale", 1), "2147483648.0");
    EXPECT_EQ(r.field("loss scale", 2), "1073741824.0");
    EXPECT_EQ(r.field("number of skipped iterations", 0), "1");
    EXPECT_EQ(r.field("number of skipped iterations", 59), "0");
    EXPECT_LT(r.losses.back(), 0.95 * r.losses[30]);
}

TEST_F(TrainerOnGpu, ARunThatDoesNotFitSaysWhatItNeedsAndWhatWouldFit) {
    const std::string said = failure(wide + "--micro-batch-size 131072 --global-batch-size 131072 --train-iters 1 ");
    for (const char* words :
         {"out of memory: this run needs", "activations", " for it; it fits with --micro-batch-size"})
        EXPECT_NE(said.find(words), std::string::npos) << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
    EXPECT_EQ(run(wide + "--train-iters 2 ").losses.size(), 2u) << "nothing of it is left on the device";
}

}  // namespace
}  // namespace tera
