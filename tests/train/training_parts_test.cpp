// Weights and optimizer of a run: what a dry run counts is what is then taken.
#include "train/training_parts.h"

#include <gtest/gtest.h>

#include "config/run_config.h"
#include "support/words.h"

namespace tera {
namespace {

RunConfig config_of(const std::vector<std::string>& more) {
    std::vector<std::string> all = words(
        "--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --max-position-embeddings 16 "
        "--micro-batch-size 2 --train-iters 5 --lr 1e-3");
    all.insert(all.end(), more.begin(), more.end());
    RunConfig config = parse_run_config(ModelKind::gpt, all, {});
    validate_and_derive(config, 1);
    config.padded_vocab_size = 128;
    return config;
}

TEST(TrainingParts, ADryRunCountsWhatARealOneTakes) {
    const std::vector<std::string> cases[] = {
        {}, {"--bf16"}, {"--bf16", "--main-grads-dtype", "bf16"}, {"--optimizer", "sgd"}};
    for (const std::vector<std::string>& flags : cases) {
        const RunConfig config = config_of(flags);
        ThreadPool pool(1);
        const Engine engine;
        Workspace counting(engine, pool, Arena::Kind::counting), real(engine, pool);
        const TrainingParts plan(config, 100, counting);
        const TrainingParts parts(config, 100, real);
        EXPECT_EQ(plan.parameter_count(), parts.parameter_count());
        EXPECT_EQ(plan.weights_bytes(), parts.weights_bytes());
        EXPECT_EQ(plan.optimizer_bytes(), parts.optimizer_bytes());
        EXPECT_EQ(plan.held_bytes(), 0u);
        EXPECT_GE(parts.held_bytes(), parts.weights_bytes() + parts.optimizer_bytes());
    }
    // Told how much it will be, each arena takes that in one piece, up to whole huge pages.
    const RunConfig config = config_of({"--bf16", "--hidden-size", "512"});
    ThreadPool pool(1);
    const Engine engine;
    Workspace counting(engine, pool, Arena::Kind::counting), real(engine, pool);
    const MemoryPlan plan = plan_memory(config, 100, counting);
    const TrainingParts parts(config, 100, real, plan);
    const std::size_t page = std::size_t{2} << 20;
    EXPECT_LE(parts.held_bytes(), plan.weights + plan.optimizer + 2 * page);
    const TrainingParts grown(config, 100, real);
    EXPECT_GT(grown.held_bytes(), parts.held_bytes());
}

TEST(MemoryPlan, SpeaksOfPowersOfTwo) {
    MemoryPlan plan;
    plan.weights = std::size_t{3} << 29;
    plan.activations = std::size_t{10} << 20;
    EXPECT_EQ(plan.text(), "weights and gradients 1.50 GiB, optimizer 0, activations 10.00 MiB, scratch 0, other 0");
}

TEST(TrainingParts, AreWhatTheFlagsAskFor) {
    ThreadPool pool(1);
    const Engine engine;
    Workspace workspace(engine, pool);
    TrainingParts parts(config_of({"--fp16", "--clip-grad", "0.5"}), 100, workspace);
    EXPECT_EQ(parts.params()[0]->value.dtype, DType::f16);
    ASSERT_TRUE(parts.scaler().has_value());
    EXPECT_EQ(parts.scaler()->scale(), 4294967296.0);
    EXPECT_EQ(parts.step_settings().clip_grad, 0.5);
    EXPECT_FALSE(parts.step_settings().check_for_nan);  // overflows are part of a dynamic loss scale
    EXPECT_EQ(parts.model_config().vocab, 128);
    EXPECT_EQ(parts.model_config().true_vocab, 100);
}

}  // namespace
}  // namespace tera
