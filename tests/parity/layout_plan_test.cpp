// What the plan says of a layout is what a run on it takes: bytes of every kind, and bytes sent.
#include "train/layout_plan.h"

#include <gtest/gtest.h>

#include <mutex>

#include "comm/thread_comm.h"
#include "parallel/layer_plan.h"
#include "support/arena_gap.h"
#include "support/expect_usage_error.h"
#include "support/models.h"
#include "support/words.h"
#include "train/evaluate.h"
#include "train/layout_search.h"
#include "train/plan.h"
#include "train/training_parts.h"

namespace tera {
namespace {

RunConfig config_of(const std::string& flags, std::int64_t world) {
    const std::string line =
        "--num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --max-position-embeddings 16 "
        "--micro-batch-size 2 --global-batch-size 16 --tokenizer-type NullTokenizer --vocab-size 99 "
        "--make-vocab-size-divisible-by 8 --attention-dropout 0 --hidden-dropout 0 --lr 0.01 --train-iters 2 "
        "--mock-data "
        "--device cpu --threads 1 " +
        flags;
    RunConfig config = parse_run_config(ModelKind::gpt, words(line), Environment{});
    validate_and_derive(config, world);
    config.padded_vocab_size = 104;
    return config;
}

constexpr std::int64_t vocab = 100;

struct Measured {
    std::size_t weights, optimizer, activations;
    std::map<std::string, Traffic> sent;
};

/// One training step on threads; what each rank took, by rank.
std::map<int, Measured> measure(const RunConfig& config, std::int64_t micro_batches) {
    std::map<int, Measured> ranks;
    std::mutex mutex;
    run_on_threads(static_cast<int>(config.world_size), [&](Comm& world) {
        const Mesh mesh(mesh_shape_from(config), world);
        ThreadPool pool(1);
        Workspace workspace(pool), dry(workspace.engine(), pool, Arena::Kind::counting);
        (void)plan_memory(config, vocab, dry, mesh, micro_batches);
        workspace.reserve_like(dry);  // as a run does
        TrainingParts parts(config, vocab, workspace, {}, mesh);
        mesh.reset_traffic();
        BatchUpload upload(workspace.engine());
        Timers timers(0);
        Pipeline pipeline({.chunks = parts.chunks(),
                           .mesh = mesh,
                           .workspace = workspace,
                           .upload = upload,
                           .timers = timers,
                           .deferral = deferral_from(config)});
        TrainStep step({pipeline, parts.sync(), parts.optimizer(), parts.scaler(), timers}, parts.step_settings());
        test::World random(1);
        const test::TestBatch batch(random, config.seq_length, config.micro_batch_size, vocab);
        const MicroBatch view = batch.view();
        step.run([&]() -> const MicroBatch& { return view; }, micro_batches, {.learning_rate = 0.01}, 1);
        const std::map<std::string, Traffic> sent = mesh.traffic();
        evaluate(pipeline, [&]() -> const MicroBatch& { return view; }, {.iterations = 1, .micro_batches = 1});
        const std::lock_guard lock(mutex);
        ranks[world.rank()] = {parts.weights_bytes(), parts.optimizer_bytes(), workspace.kept_peak(), sent};
    });
    return ranks;
}

struct Case {
    const char* flags;
    std::int64_t world;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.flags << " on " << c.world; }

class LayoutPlanIsTrue : public ::testing::TestWithParam<Case> {};

TEST_P(LayoutPlanIsTrue, of_every_stage) {
    const RunConfig config = config_of(GetParam().flags, GetParam().world);
    const std::int64_t micro_batches = config.global_batch_size / (config.micro_batch_size * config.data_parallel_size);
    const LayoutPlan plan = plan_layout(config, vocab, micro_batches);
    const std::map<int, Measured> measured = measure(config, micro_batches);
    const MeshShape shape = mesh_shape_from(config);
    ASSERT_EQ(plan.stages.size(), static_cast<std::size_t>(shape.pp));
    for (int stage = 0; stage < shape.pp; ++stage) {
        const MemoryPlan& planned = plan.stages[static_cast<std::size_t>(stage)];
        const Measured& m = measured.at(rank_at(shape, {.pp = stage}));
        EXPECT_EQ(planned.weights, m.weights);
        EXPECT_EQ(planned.optimizer, m.optimizer);
        EXPECT_EQ(planned.activations, m.activations) << "stage " << stage;
        for (const auto& [what, traffic] : m.sent) {
            if (what == "agreement") continue;  // a few numbers
            ASSERT_TRUE(planned.sent.count(what)) << what;
            EXPECT_EQ(planned.sent.at(what).calls, traffic.calls) << what << " of stage " << stage;
            EXPECT_EQ(planned.sent.at(what).bytes, traffic.bytes) << what << " of stage " << stage;
        }
    }
}

TEST(LayoutPlan, inputs_of_recomputed_layers_are_shared_over_tensor_ranks) {
    const auto planned = [](const std::string& flags) {
        return plan_layout(config_of("--tensor-model-parallel-size 2 --recompute-granularity full --recompute-method "
                                     "uniform --recompute-num-layers 1 " +
                                         flags,
                                     2),
                           vocab, 1)
            .stages[0];
    };
    const MemoryPlan whole = planned(""), shared = planned("--distribute-saved-activations");
    const std::size_t stream = 16 * 2 * 32 * 4;  // a layer's input
    EXPECT_EQ(whole.activations - shared.activations, 4 * stream / 2 - stream - arena_gap())
        << "four halves less, one gathered";
    const auto sent = [](const MemoryPlan& m) { return m.sent.at("tensor").bytes; };
    EXPECT_EQ(sent(shared) - sent(whole), 4 * stream / 2) << "each half once, in backward";
}

TEST(LayoutPlan, a_limit_bounds_what_is_put_off) {
    const auto last_stage = [](const std::string& flags) {
        const RunConfig config = config_of("--pipeline-model-parallel-size 2 " + flags, 2);
        return plan_layout(config, vocab, 8).stages.back().activations;
    };
    const std::size_t none = last_stage(""), all = last_stage("--defer-embedding-wgrad-compute"),
                      three = last_stage("--defer-embedding-wgrad-compute --wgrad-deferral-limit 3");
    EXPECT_LT(none, three);
    EXPECT_EQ(8 * (three - none), 3 * (all - none));
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, LayoutPlanIsTrue,
    ::testing::Values(Case{"", 1}, Case{"--tensor-model-parallel-size 2", 2},
                      Case{"--tensor-model-parallel-size 2 --sequence-parallel", 4},
                      Case{"--pipeline-model-parallel-size 4", 4},
                      Case{"--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1", 4},
                      Case{"--pipeline-model-parallel-size 2 --defer-embedding-wgrad-compute "
                           "--wgrad-deferral-limit 3",
                           2},
                      Case{"--pipeline-model-parallel-size 3 --decoder-first-pipeline-num-layers 0", 3},
                      Case{"--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --recompute-granularity "
                           "full --recompute-method uniform --recompute-num-layers 1 --distribute-saved-activations",
                           4},
                      Case{"--tensor-model-parallel-size 4 --recompute-granularity full --recompute-method block "
                           "--recompute-num-layers 2 --distribute-saved-activations",
                           4},
                      Case{"--context-parallel-size 2 --use-distributed-optimizer", 4},
                      Case{"--context-parallel-size 4 --bf16 --recompute-activations", 4},
                      Case{"--context-parallel-size 4 --cp-comm-type allgather", 4},
                      Case{"--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --sequence-parallel "
                           "--use-distributed-optimizer --recompute-granularity full --recompute-method uniform "
                           "--recompute-num-layers 1",
                           8}));

TEST(LayoutPlan, a_rank_keeps_as_many_micro_batches_as_its_stage_has_after_it) {
    const LayoutPlan plan = plan_layout(config_of("--pipeline-model-parallel-size 4", 4), vocab, 8);
    for (std::size_t stage = 1; stage < 4; ++stage)
        EXPECT_LT(plan.stages[stage].activations, plan.stages[stage - 1].activations);
    EXPECT_EQ(&plan.fullest(), &plan.stages[0]);
}

TEST(LayoutPlan, a_long_step_is_planned_by_two_short_ones_and_exactly) {
    ThreadPool pool(1);
    for (const auto& [flags, ranks] :
         {std::pair{"--pipeline-model-parallel-size 4", 4},
          {"--tensor-model-parallel-size 2 --sequence-parallel", 4},
          {"--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1", 4},
          {"--pipeline-model-parallel-size 2 --context-parallel-size 2 --use-distributed-optimizer", 8},
          {"--pipeline-model-parallel-size 2 --defer-embedding-wgrad-compute", 2}}) {
        RunConfig config = config_of(flags, ranks);
        const LayoutPlan plan = plan_layout(config, vocab, 96);
        const MeshShape shape = mesh_shape_from(config);
        for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
            const auto world = make_paper_comm(rank_at(shape, {.pp = static_cast<int>(stage)}), shape.size());
            const Mesh mesh(shape, *world);
            const Engine engine;
            Workspace dry(engine, pool, Arena::Kind::counting);
            const MemoryPlan whole = plan_memory(config, vocab, dry, mesh, 96);
            EXPECT_EQ(plan.stages[stage].total(), whole.total()) << flags;
            EXPECT_EQ(plan.stages[stage].sent, whole.sent) << flags;
        }
    }
}

TEST(LayoutPlan, the_bubble_is_that_at_the_pace_of_the_slowest_stage) {
    const auto bubble = [](const std::string& flags) {
        RunConfig config = config_of("--pipeline-model-parallel-size 4 " + flags, 4);
        config.padded_vocab_size = 400;  // a head of 6·32·400 FLOPs for a token: those of one layer
        return plan_layout(config, vocab, 8).bubble;
    };
    EXPECT_DOUBLE_EQ(bubble("--num-layers 7 --decoder-last-pipeline-num-layers 1"), 3.0 / 11);
    EXPECT_DOUBLE_EQ(bubble("--num-layers 15 --num-virtual-stages-per-pipeline-rank 2 "
                            "--account-for-loss-in-pipeline-split"),
                     3.0 / 19);
    EXPECT_DOUBLE_EQ(bubble("--num-layers 8"), 1 - 9.0 / 4 / 3 * 8 / 11);
    EXPECT_DOUBLE_EQ(bubble("--num-layers 8 --decoder-first-pipeline-num-layers 5"), 1 - 9.0 / 4 / 5 * 8 / 11);
}

TEST(LayoutSearch, what_it_finds_fits_and_is_what_the_plan_says) {
    const RunConfig base = [] {
        const std::string line =
            "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8 "
            "--ffn-hidden-size 14336 --swiglu --normalization RMSNorm --disable-bias-linear --position-embedding-type "
            "rope "
            "--untie-embeddings-and-output-weights --seq-length 8192 --max-position-embeddings 8192 --micro-batch-size "
            "1 "
            "--global-batch-size 64 --tokenizer-type NullTokenizer --vocab-size 128255 --bf16 --device cpu --lr 1e-4 "
            "--train-iters 10";
        return parse_run_config(ModelKind::gpt, words(line), Environment{});
    }();
    const SearchRequest request{.gpus = 8, .memory_gib = 80};
    const std::vector<LayoutChoice> found = search_layouts(base, request);
    ASSERT_FALSE(found.empty());
    for (std::size_t i = 0; i < found.size(); ++i) {
        const LayoutChoice& c = found[i];
        EXPECT_LE(static_cast<double>(c.plan.fullest().total()), 78 * 0x1p30);
        EXPECT_GE(c.seconds, found[0].seconds);
        const LayoutPlan again = plan_layout(c.config, 128256, c.micro_batches);
        EXPECT_EQ(again.fullest().total(), c.plan.fullest().total()) << c.flags;
        EXPECT_EQ(again.fullest().sent, c.plan.fullest().sent) << c.flags;
    }
    EXPECT_TRUE(search_layouts(base, {.gpus = 8, .memory_gib = 4}).empty());
    EXPECT_NE(layouts_text(request, found).find("flags of the first: --tensor-model-parallel-size"), std::string::npos);
}

RunConfig to_search_for(const std::string& flags) {
    const std::string line =
        "--num-layers 8 --hidden-size 256 --num-attention-heads 8 --seq-length 128 --max-position-embeddings 128 "
        "--micro-batch-size 1 --tokenizer-type NullTokenizer --vocab-size 999 --bf16 --device cpu --lr 1e-4 "
        "--train-iters 10 " +
        flags;
    return parse_run_config(ModelKind::gpt, words(line), Environment{});
}

TEST(LayoutSearch, layouts_with_other_batches_are_compared_by_what_they_train_in_a_second) {
    const std::vector<LayoutChoice> found =
        search_layouts(to_search_for(""), {.gpus = 4, .memory_gib = 80, .most = 1000});
    ASSERT_GT(found.size(), 4u);
    bool longer_step_first = false;
    for (std::size_t i = 0; i < found.size(); ++i) {
        const LayoutChoice& c = found[i];
        const double tokens = static_cast<double>(c.config.global_batch_size * c.config.seq_length);
        EXPECT_DOUBLE_EQ(c.tokens_per_second_per_gpu, tokens / c.seconds / 4) << c.flags;
        if (i == 0) continue;
        EXPECT_LE(c.tokens_per_second_per_gpu, found[i - 1].tokens_per_second_per_gpu) << c.flags;
        longer_step_first = longer_step_first || c.seconds < found[i - 1].seconds;
    }
    EXPECT_TRUE(longer_step_first);
    const std::string text = layouts_text({.gpus = 4}, found);
    EXPECT_NE(text.find("tokens/s/GPU"), std::string::npos) << text;
    EXPECT_NE(text.find("batch"), std::string::npos) << text;
}

TEST(LayoutSearch, a_layout_that_cannot_run_the_whole_batch_is_left_out) {
    // 13 micro-batches do not fill groups of two stages with two chunks, but the first six of them do.
    const std::vector<LayoutChoice> found =
        search_layouts(to_search_for("--global-batch-size 26"), {.gpus = 4, .memory_gib = 80, .most = 1000});
    ASSERT_FALSE(found.empty());
    for (const LayoutChoice& c : found)
        EXPECT_FALSE(c.micro_batches == 13 && c.config.pipeline_model_parallel_size == 2 &&
                     c.config.virtual_pipeline_model_parallel_size.value_or(1) > 1)
            << c.flags;
}

TEST(LayoutSearch, says_why_no_layout_can_be) {
    expect_usage_error([] { search_layouts(to_search_for("--global-batch-size 7"), {.gpus = 22, .memory_gib = 80}); },
                       {"22 GPUs", "--global-batch-size 7"});
}

TEST(LayoutSearch, a_model_that_is_not_built_is_refused) {
    expect_usage_error([] { search_layouts(to_search_for("--xielu"), {.gpus = 4, .memory_gib = 80}); },
                       {"--xielu is not built yet"});
}

TEST(LayoutSearch, layout_flags_do_not_narrow_it) {
    const SearchRequest request{.gpus = 4, .memory_gib = 80, .most = 1000};
    const std::vector<LayoutChoice> free = search_layouts(to_search_for("--global-batch-size 16"), request);
    for (const char* flags : {"--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1",
                              "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 "
                              "--overlap-p2p-communication-warmup-flush",
                              "--pipeline-model-parallel-size 2 --decoder-first-pipeline-num-layers 3",
                              "--pipeline-model-parallel-size 2 --defer-embedding-wgrad-compute",
                              "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather"}) {
        SCOPED_TRACE(flags);
        const auto found = search_layouts(to_search_for(std::string("--global-batch-size 16 ") + flags), request);
        EXPECT_EQ(found.size(), free.size());
    }
    const auto found = search_layouts(to_search_for("--global-batch-size 16 --pipeline-model-parallel-size 2 "
                                                    "--num-layers-per-virtual-pipeline-stage 1"),
                                      request);
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found[0].replaced, "--num-layers-per-virtual-pipeline-stage") << "sizes are in the flags again";
}

TEST(LayoutSearch, a_flag_for_interleaved_pipelines_stays_with_those_and_goes_from_others) {
    const std::string flag = "--overlap-p2p-communication-warmup-flush";
    const auto found = search_layouts(to_search_for("--global-batch-size 16 --pipeline-model-parallel-size 2 "
                                                    "--num-virtual-stages-per-pipeline-rank 2 " +
                                                    flag),
                                      {.gpus = 4, .memory_gib = 80, .most = 1000});
    std::size_t interleaved = 0;
    for (const LayoutChoice& c : found) {
        SCOPED_TRACE(c.flags);
        const bool chunks = c.config.virtual_pipeline_model_parallel_size.value_or(1) > 1;
        interleaved += chunks;
        EXPECT_EQ(c.flags.find(flag) != std::string::npos, chunks);
        EXPECT_EQ(c.replaced.find(flag) == std::string::npos, chunks);
        EXPECT_EQ(c.config.overlap_p2p_comm_warmup_flush, chunks);
    }
    EXPECT_GT(interleaved, 0u);
    EXPECT_LT(interleaved, found.size());
}

/// The best with so many pipeline stages of one chunk, and nothing else in parallel.
const LayoutChoice* pipeline_of(const std::vector<LayoutChoice>& found, std::int64_t stages) {
    for (const LayoutChoice& c : found) {
        if (c.config.pipeline_model_parallel_size == stages && !c.config.virtual_pipeline_model_parallel_size &&
            c.config.tensor_model_parallel_size == 1)
            return &c;
    }
    return nullptr;
}

std::vector<std::int64_t> layers_of(const LayoutChoice& choice) {
    return plan_layers(layer_plan_request(choice.config)).layers_per_stage();
}

TEST(LayoutSearch, layers_that_do_not_split_evenly_get_uneven_stages) {
    const SearchRequest request{.gpus = 4, .memory_gib = 80, .most = 1000};
    const auto found = search_layouts(to_search_for("--num-layers 7 --global-batch-size 16"), request);
    const LayoutChoice *two = pipeline_of(found, 2), *four = pipeline_of(found, 4);
    ASSERT_TRUE(two != nullptr && four != nullptr);
    EXPECT_EQ(layers_of(*two), (std::vector<std::int64_t>{4, 3}));
    EXPECT_EQ(layers_of(*four), (std::vector<std::int64_t>{2, 2, 2, 1}));
    // What it proposes can be given.
    RunConfig again = to_search_for("--num-layers 7 --global-batch-size 16 " + four->flags);
    validate_and_derive(again, 4);
    again.padded_vocab_size = four->config.padded_vocab_size;
    EXPECT_EQ(pipeline_bubble(again, four->micro_batches), four->plan.bubble) << four->flags;
}

TEST(LayoutSearch, tensor_groups_lie_within_nodes) {
    for (const std::int64_t per_node : {3, 5, 6}) {
        const auto found = search_layouts(to_search_for("--global-batch-size 120"),
                                          {.gpus = 30, .gpus_per_node = per_node, .memory_gib = 80, .most = 1000});
        ASSERT_FALSE(found.empty());
        for (const LayoutChoice& c : found) EXPECT_EQ(per_node % c.config.tensor_model_parallel_size, 0) << c.flags;
    }
    bool any = false;
    for (const LayoutChoice& c : search_layouts(to_search_for("--global-batch-size 16"),
                                                {.gpus = 4, .gpus_per_node = 6, .memory_gib = 80, .most = 1000}))
        any = any || c.config.tensor_model_parallel_size == 4;
    EXPECT_TRUE(any) << "all four are in one node";
}

TEST(LayoutSearch, a_large_vocabulary_makes_the_last_stage_short) {
    const SearchRequest request{.gpus = 4, .memory_gib = 80, .most = 1000};
    // A head of as many FLOPs as 9 layers and a bit.
    const auto found =
        search_layouts(to_search_for("--num-layers 20 --vocab-size 40000 --global-batch-size 16"), request);
    const LayoutChoice* four = pipeline_of(found, 4);
    ASSERT_NE(four, nullptr);
    EXPECT_EQ(layers_of(*four).back(), 0) << four->flags;
    std::size_t even = 0;
    for (const LayoutChoice& c : found) even += c.flags.find("pipeline-num-layers") == std::string::npos;
    EXPECT_GT(even, 0u) << "those that a user knows stay in the list";
}

}  // namespace
}  // namespace tera
