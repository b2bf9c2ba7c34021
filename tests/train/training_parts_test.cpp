// Weights and optimizer of a run: what a dry run counts is what is then taken.
#include "train/training_parts.h"

#include <gtest/gtest.h>

#include "comm/thread_comm.h"
#include "config/run_config.h"
#include "support/words.h"
#include "train/memory_plan.h"

namespace tera {
namespace {

RunConfig config_of(const std::vector<std::string>& more, int ranks = 1) {
    std::vector<std::string> all = words(
        "--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --max-position-embeddings 16 "
        "--micro-batch-size 2 --train-iters 5 --lr 1e-3");
    all.insert(all.end(), more.begin(), more.end());
    RunConfig config = parse_run_config(ModelKind::gpt, all, {});
    validate_and_derive(config, ranks);
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

TEST(TrainingParts, BuffersAreUpdatedOneAfterTheOtherIfAsked) {
    const std::string overlapped =
        "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --ddp-bucket-size 5000";
    const std::string in_step = overlapped + " --overlap-param-gather-with-optimizer-step";
    run_on_threads(2, [&](Comm& world) {
        const Mesh mesh({.dp = 2}, world);
        const auto groups = [&](const std::string& flags) {
            ThreadPool pool(1);
            const Engine engine;
            Workspace real(engine, pool);
            return TrainingParts(config_of(words(flags), 2), 100, real, {}, mesh).sync().groups().count;
        };
        EXPECT_EQ(groups(overlapped), 1);
        EXPECT_GT(groups(in_step), 3);
    });
}

TEST(MemoryPlan, SpeaksOfPowersOfTwo) {
    MemoryPlan plan;
    plan.weights = std::size_t{3} << 29;
    plan.activations = std::size_t{10} << 20;
    EXPECT_EQ(plan.text(), "weights and gradients 1.50 GiB, optimizer 0, activations 10.00 MiB, scratch 0, buffers 0");
}

/// Advice on runs that do not fit, tried by following it.
class MemoryAdvice : public testing::Test {
  protected:
    std::size_t planned(const std::string& flags) {
        const RunConfig config = config_of(words(flags));
        Workspace dry(engine_, pool_, Arena::Kind::counting);
        return plan_memory(config, 100, dry, mesh_, pipeline_shape_from(config).micro_batches).total();
    }
    std::string advice(const std::string& flags, std::size_t room) {
        const Workspace like(engine_, pool_, Arena::Kind::counting);
        return advice_to_fit(config_of(words(flags)), 100, like, mesh_, room).value_or("none");
    }
    /// `flags` with what is to be given behind them and what is to be left out not.
    static std::string followed(const std::string& flags, const std::string& advice) {
        const std::size_t without = advice.find("without ");
        const std::string give = advice.substr(0, advice.find(", without "));
        std::string out;
        bool left_out = false;
        for (const std::string& word : words(flags)) {
            if (word.starts_with("--"))
                left_out = without != advice.npos && (advice.substr(without) + " ").find(word + " ") != advice.npos;
            if (!left_out) out += " " + word;
        }
        return give.starts_with("with ") ? out + give.substr(4) : out;
    }
    /// Into the memory that `fitting` takes, and no more, `flags` are advised to go as `expected`.
    void expect_advice(const std::string& flags, const std::string& fitting, const std::string& expected) {
        SCOPED_TRACE(flags);
        const std::size_t room = planned(fitting);
        ASSERT_GT(planned(flags), room);
        const std::string said = advice(flags, room);
        EXPECT_EQ(said, expected);
        EXPECT_LE(planned(followed(flags, said)), room) << followed(flags, said);
    }

    ThreadPool pool_{1};
    const Engine engine_;
    const Mesh mesh_;
    const std::string full_ = "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
                      wide_ = "--micro-batch-size 8 --global-batch-size 8 --num-layers 8 ";
};

TEST_F(MemoryAdvice, GivesKeptMlpActivationsBackFirst) {
    const std::string keep = wide_ + "--keep-mlp-activations ";
    expect_advice(keep, wide_, "without --keep-mlp-activations");
    expect_advice(keep, wide_ + "--micro-batch-size 4", "with --micro-batch-size 4, without --keep-mlp-activations");
    expect_advice(wide_, wide_ + "--micro-batch-size 2", "with --micro-batch-size 2");
}

TEST_F(MemoryAdvice, NamesNoFlagThatIsRefusedBesideTheOthers) {
    const std::string one = "--micro-batch-size 1 --num-layers 8 ";
    expect_advice(one, one + full_, "with " + full_);
    expect_advice(one + "--recompute-activations", one + full_, "with " + full_ + ", without --recompute-activations");
    expect_advice(one + "--keep-mlp-activations --recompute-activations --recompute-modules core_attn", one + full_,
                  "with " + full_ + ", without --keep-mlp-activations --recompute-activations --recompute-modules");
    expect_advice(wide_, wide_ + "--micro-batch-size 4 " + full_, "with --micro-batch-size 1");
    EXPECT_EQ(advice(one, planned(one + full_) - 1), "none");
    const std::string block = wide_ + "--recompute-granularity full --recompute-method block --recompute-num-layers 2 ";
    expect_advice(block, block + "--micro-batch-size 4", "with --micro-batch-size 4");
    expect_advice(wide_ + full_, wide_ + full_ + " --micro-batch-size 1", "with --micro-batch-size 1");
}

TEST_F(MemoryAdvice, RebuiltLayersKeepTheirMlpActivationsToo) {
    const double activation = 8 * 16 * 4 * 32 * sizeof(float);  // of one layer: samples, tokens, MLP width
    const std::size_t more = planned(wide_ + full_ + " --keep-mlp-activations") - planned(wide_ + full_);
    EXPECT_NEAR(static_cast<double>(more), activation, 256);  // sanitizers leave room behind a tensor
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
