#include "train/verify.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "comm/thread_comm.h"
#include "support/expect_usage_error.h"
#include "support/words.h"

namespace tera {
namespace {

RunConfig config_of(const std::string& flags, std::int64_t world) {
    const std::string line =
        "--seq-length 64 --max-position-embeddings 64 --micro-batch-size 4 --global-batch-size 64 " + flags;
    RunConfig config = parse_run_config(ModelKind::gpt, words(line), Environment{});
    validate_and_derive(config, world);
    return config;
}

const std::string gpt = "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --attention-dropout 0.1 ";
const std::string llama =
    "--num-layers 4 --hidden-size 128 --num-attention-heads 8 --group-query-attention --num-query-groups 2 --swiglu "
    "--position-embedding-type rope --normalization RMSNorm --disable-bias-linear --qk-layernorm "
    "--untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0 ";

TEST(Verify, layouts_that_are_right) {
    for (const auto& [flags, world] : std::vector<std::pair<std::string, std::int64_t>>{
             {gpt, 2},
             {gpt + "--tensor-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer", 4},
             {llama + "--tensor-model-parallel-size 4 --context-parallel-size 2 --reset-attention-mask", 8},
             {llama + "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 "
                      "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
              4}}) {
        SCOPED_TRACE(flags);
        const VerifyPlan plan = plan_verification(config_of(flags, world));
        EXPECT_EQ(plan.layout.mesh.size(), world);
        EXPECT_EQ(plan.training.model.layers, 4);
        const VerifyReport report = verify_layout(plan);
        EXPECT_EQ(report.first_difference, "");
        EXPECT_GE(report.lines.size(), 9u);
    }
}

TEST(Verify, a_difference_is_named) {
    const VerifyPlan plan = plan_verification(config_of(gpt + "--tensor-model-parallel-size 2", 2));
    const VerifyReport report = verify_layout(plan, 1e-20);  // not even the roundings are allowed
    EXPECT_NE(report.first_difference.find("gradients of "), std::string::npos) << report.first_difference;
}

TEST(Verify, ranks_that_disagree_are_seen_when_records_are_gathered) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto gathered = [&](double loss_of_1, double value_of_1) {
        std::array<ParityRecord, 2> records;
        run_on_threads(2, [&](Comm& world) {
            ParityRecord& mine = records[static_cast<std::size_t>(world.rank())];
            StepOutcome step;
            step.loss.loss = world.rank() == 0 ? 1.0 : loss_of_1;
            mine.add(0, step);
            mine.grads.put("half", world.rank() == 0 ? std::vector{3.0, nan} : std::vector{nan, 4.0});
            mine.weights.put("copied", {world.rank() == 0 ? 5.0 : value_of_1});
            mine.gather(world);
        });
        EXPECT_EQ(records[0].grads.all().at("half"), (std::vector{3.0, 4.0}));
        return std::pair(records[0].agreed, records[0].weights.differing().count("copied"));
    };
    EXPECT_EQ(gathered(1.0, 5.0), (std::pair<bool, std::size_t>(true, 0)));
    EXPECT_FALSE(gathered(1.5, 5.0).first);
    EXPECT_EQ(gathered(1.0, 5.5).second, 1u);
}

TEST(Verify, the_small_model_keeps_the_proportions) {
    const ParityTraining t = plan_verification(config_of(llama + "--tensor-model-parallel-size 4", 4)).training;
    EXPECT_EQ(t.model.kv_heads, 2) << "fewer than ranks, as in the flags";
    EXPECT_EQ(t.model.heads % 4, 0);
    EXPECT_TRUE(t.model.qk_norm);
    EXPECT_EQ(t.model.position, PositionKind::rope);
}

TEST(Verify, as_many_micro_batches_as_the_flags_give_as_far_as_that_is_quick) {
    const auto per_rank = [](const std::string& flags, std::int64_t world) {
        RunConfig config = parse_run_config(
            ModelKind::gpt, words(gpt + "--seq-length 64 --max-position-embeddings 64 --micro-batch-size 4 " + flags),
            Environment{});
        validate_and_derive(config, world);
        const VerifyPlan plan = plan_verification(config);
        return plan.training.micro_batches / plan.layout.mesh.dp;
    };
    const std::string pp4 = "--pipeline-model-parallel-size 4 ";
    EXPECT_EQ(per_rank("--global-batch-size 4", 1), 1);
    EXPECT_EQ(per_rank("--global-batch-size 24", 2), 3);
    EXPECT_EQ(per_rank(pp4 + "--global-batch-size 12", 4), 3) << "fewer than stages";
    EXPECT_EQ(per_rank(pp4 + "--global-batch-size 28", 4), 7) << "a last group that is not full";
    EXPECT_EQ(per_rank(pp4 + "--global-batch-size 404", 4), 9) << "101 of them also leave one over";
    EXPECT_EQ(per_rank("--global-batch-size 404", 1), 8);
    EXPECT_EQ(per_rank(pp4 + "--global-batch-size 48 --rampup-batch-size 8 8 100 --train-samples 999", 4), 12)
        << "when it is full";
    EXPECT_EQ(per_rank(pp4, 4), 8) << "its own choice";
    const std::string interleaved =
        "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 "
        "--microbatch-group-size-per-virtual-pipeline-stage 3 ";
    EXPECT_EQ(per_rank(interleaved + "--global-batch-size 80", 2), 8) << "20 in groups of 3 leave 2";
    expect_usage_error([&] { per_rank(interleaved + "--global-batch-size 40", 2); },
                       {"10 micro-batches in groups of 3 leave 1"});
}

TEST(Verify, says_what_it_made_smaller) {
    const auto has = [](const VerifyPlan& plan, const std::string& what) {
        return plan.smaller.find(what) != std::string::npos;
    };
    const VerifyPlan plan = plan_verification(config_of(llama + "--tensor-model-parallel-size 2", 2));
    for (const char* what : {"width 128 to 16", "sequence 64 to 8", "micro-batch 4 to 2", "micro-batches 16 to 8"})
        EXPECT_TRUE(has(plan, what)) << what << " not in " << plan.smaller;
    EXPECT_FALSE(has(plan_verification(config_of(gpt + "--global-batch-size 8", 1)), "micro-batches"));
    EXPECT_TRUE(has(plan, "vocabulary 50257 to 16")) << plan.smaller;
    const auto with_tokenizer = [](const std::string& type) {
        return plan_verification(config_of(gpt + "--tensor-model-parallel-size 2 --tokenizer-type " + type, 2));
    };
    EXPECT_TRUE(has(with_tokenizer("NullTokenizer --vocab-size 99"), "vocabulary 100 to 16"));
    EXPECT_FALSE(has(with_tokenizer("HuggingFaceTokenizer"), "vocabulary")) << "nothing says how large";
}

TEST(Verify, the_small_model_has_several_heads_on_a_rank_where_the_flags_do) {
    const auto heads = [](const std::string& flags, std::int64_t tp) {
        const ModelConfig m =
            plan_verification(config_of(flags + "--tensor-model-parallel-size " + std::to_string(tp), tp))
                .training.model;
        return std::pair(m.heads, m.kv_heads);
    };
    using Pair = std::pair<std::int64_t, std::int64_t>;
    EXPECT_EQ(heads(gpt, 2), Pair(4, 4)) << "two of two on each";
    EXPECT_EQ(heads(gpt, 4), Pair(4, 4));
    EXPECT_EQ(heads(llama, 1), Pair(4, 2)) << "eight heads of two groups";
    EXPECT_EQ(heads(llama, 2), Pair(4, 2));
    EXPECT_EQ(heads(llama, 4), Pair(8, 2)) << "two heads on each rank, a group on two ranks";
}

TEST(Verify, a_small_part_of_a_head_that_is_rotated_is_still_some) {
    const VerifyPlan plan =
        plan_verification(config_of("--num-layers 1 --hidden-size 256 --num-attention-heads 2 "
                                    "--position-embedding-type rope --rotary-percent 0.05",
                                    2));
    EXPECT_EQ(verify_layout(plan).first_difference, "");
}

TEST(Verify, what_overlaps_is_what_the_flags_say) {
    const std::string zero = gpt + "--use-distributed-optimizer --overlap-grad-reduce ";
    EXPECT_FALSE(plan_verification(config_of(zero, 2)).layout.overlap_gather);
    const ParityLayout gathers = plan_verification(config_of(zero + "--overlap-param-gather", 2)).layout;
    EXPECT_TRUE(gathers.overlap_gather);
    EXPECT_FALSE(gathers.gather_in_update);
    const VerifyPlan in_update =
        plan_verification(config_of(zero + "--overlap-param-gather --overlap-param-gather-with-optimizer-step", 2));
    EXPECT_TRUE(in_update.layout.gather_in_update);
    EXPECT_NE(in_update.layout.name(), gathers.name());
    EXPECT_EQ(verify_layout(in_update).first_difference, "");
    EXPECT_TRUE(plan_verification(config_of(gpt, 2)).layout.tp_overlap);
    EXPECT_FALSE(plan_verification(config_of(gpt + "--no-async-tensor-model-parallel-allreduce", 2)).layout.tp_overlap);
    const std::string interleaved =
        "--num-layers 8 --hidden-size 64 --num-attention-heads 4 "
        "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 1 ";
    const auto ahead = [&](const std::string& flags) {
        const ReceiveAhead a = plan_verification(config_of(interleaved + flags, 4)).layout.ahead;
        return std::pair(a.turns, a.ends);
    };
    EXPECT_EQ(ahead(""), std::pair(true, false));
    EXPECT_EQ(ahead("--overlap-p2p-communication-warmup-flush"), std::pair(true, true));
    EXPECT_EQ(ahead("--no-overlap-p2p-communication"), std::pair(false, false));
}

TEST(Verify, layers_are_shared_out_as_the_flags_say) {
    const VerifyPlan plan = plan_verification(
        config_of("--num-layers 5 --hidden-size 64 --num-attention-heads 4 --pipeline-model-parallel-size 2 "
                  "--decoder-last-pipeline-num-layers 2 --overlap-grad-reduce",
                  2));
    EXPECT_EQ(plan.layout.last_stage_layers, 2);
    EXPECT_TRUE(plan.layout.overlap);
    EXPECT_EQ(verify_layout(plan).first_difference, "");
}

}  // namespace
}  // namespace tera
