// What plan says of the memory of GPUs that are not here, against what runs on an NVIDIA H200 took
// (bench/results/nccl_layouts_h200_*.md and step_h200_*.md).
#include <gtest/gtest.h>

#include "core/build_info.h"
#include "core/engine.h"
#include "ops/attention.h"
#include "support/words.h"
#include "train/memory_plan.h"
#include "train/plan.h"

namespace tera {
namespace {

RunConfig config_of(const std::string& flags, std::int64_t world) {
    const std::string line =
        flags + " --device cuda --mock-data --train-iters 20 --attention-dropout 0 --hidden-dropout 0";
    RunConfig config = parse_run_config(ModelKind::gpt, words(line), Environment{});
    validate_and_derive(config, world);
    return config;
}

double planned_bytes(const std::string& flags, std::int64_t world) {
    const RunPlan plan = make_plan(config_of(flags, world), {});
    EXPECT_TRUE(plan.layout) << plan.layout_missing;
    return plan.layout ? static_cast<double>(plan.layout->stages[0].total()) : 0;
}

struct Case {
    const char* flags;
    std::int64_t world;
    double taken;  ///< bytes, by rank 0
};

void expect_taken(const std::string& model, const std::vector<Case>& cases) {
    if (!build_info().cuda) GTEST_SKIP() << "built without CUDA: no GPU can be planned for";
#ifndef TERA_WITH_CUDNN
    GTEST_SKIP() << "built without cuDNN's front end: attention takes other memory than in the runs";
#endif
    for (const Case& c : cases)
        EXPECT_NEAR(planned_bytes(model + c.flags, c.world), c.taken, 0.001 * c.taken) << c.flags;
}

TEST(PlanOfAGpuThatIsNotHere, IsWhatLayoutsTookOnOne) {
    const std::string model =
        "--num-layers 4 --hidden-size 256 --num-attention-heads 8 --group-query-attention --num-query-groups 4 "
        "--swiglu "
        "--normalization RMSNorm --position-embedding-type rope --seq-length 256 --max-position-embeddings 256 "
        "--micro-batch-size 2 --global-batch-size 8 --tokenizer-type NullTokenizer --vocab-size 1000 --lr 3e-4 ";
    expect_taken(model, {
                            {"--tensor-model-parallel-size 2", 2, 121.7e6},
                            {"--tensor-model-parallel-size 2 --sequence-parallel", 2, 117.5e6},
                            {"--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1", 2, 156.3e6},
                            {"--context-parallel-size 2 --cp-comm-type allgather", 2, 142.6e6},
                            {"--use-distributed-optimizer", 2, 144.7e6},
                            {"--tensor-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer "
                             "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
                             4, 102.8e6},
                            {"--bf16 --tensor-model-parallel-size 2 --sequence-parallel", 2, 111.2e6},
                            {"--bf16 --tensor-model-parallel-size 2 --sequence-parallel "
                             "--pipeline-model-parallel-size 2",
                             4, 98.7e6},
                            {"--bf16 --context-parallel-size 2", 2, 134.2e6},
                            {"--bf16 --pipeline-model-parallel-size 4", 4, 111.5e6},
                            {"--bf16", 2, 142.6e6},
                            {"--bf16 --use-distributed-optimizer", 2, 128.0e6},
                        });
}

TEST(PlanOfAGpuThatIsNotHere, IsWhatLargeModelsTookOnOne) {
    expect_taken("--bf16 --lr 1e-4 ",
                 {
                     {"--tokenizer-type GPT2BPETokenizer --keep-mlp-activations --make-vocab-size-divisible-by 1024 "
                      "--num-layers 24 --hidden-size 2304 --num-attention-heads 24 --seq-length 2048 "
                      "--max-position-embeddings 2048 --micro-batch-size 16",
                      1, 80.760 * 0x1p30},
                     {"--tokenizer-type NullTokenizer --vocab-size 151935 --swiglu --normalization RMSNorm "
                      "--position-embedding-type rope --disable-bias-linear --add-qkv-bias --group-query-attention "
                      "--num-query-groups 2 --keep-mlp-activations --num-layers 28 --hidden-size 1536 "
                      "--num-attention-heads 12 --ffn-hidden-size 8960 --seq-length 1024 "
                      "--max-position-embeddings 1024 --micro-batch-size 32 --global-batch-size 128",
                      1, 87.855 * 0x1p30},
                     {"--tokenizer-type NullTokenizer --vocab-size 128255 --swiglu --normalization RMSNorm "
                      "--position-embedding-type rope --disable-bias-linear --group-query-attention "
                      "--num-query-groups 8 --untie-embeddings-and-output-weights --num-layers 32 --hidden-size 4096 "
                      "--num-attention-heads 32 --ffn-hidden-size 14336 --seq-length 8192 "
                      "--max-position-embeddings 8192 --micro-batch-size 1 --global-batch-size 8 "
                      "--main-grads-dtype bf16",
                      1, 134.953 * 0x1p30},
                     {"--tokenizer-type NullTokenizer --vocab-size 128255 --swiglu --normalization RMSNorm "
                      "--position-embedding-type rope --disable-bias-linear --group-query-attention "
                      "--num-query-groups 8 --untie-embeddings-and-output-weights --num-layers 32 --hidden-size 4096 "
                      "--num-attention-heads 32 --ffn-hidden-size 14336 --seq-length 4096 "
                      "--max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 8 "
                      "--main-grads-dtype bf16 --keep-mlp-activations --attention-dropout 0 --hidden-dropout 0 "
                      "--reset-attention-mask --reset-position-ids --eod-mask-loss",
                      1, 124.84 * 0x1p30},
                 });
}

/// Gradients of documents whose heads share keys: what the library said it needs on an H200 (9.19), and our own
/// matrices beside it.
TEST(PlanOfAGpuThatIsNotHere, CountsWhatDocumentsTakeInTheLibrary) {
    if (!build_info().cuda) GTEST_SKIP() << "built without CUDA: no GPU can be planned for";
#ifndef TERA_WITH_CUDNN
    GTEST_SKIP() << "built without cuDNN's front end";
#endif
    constexpr double library = 12'725'816;
    const Engine paper = Engine::on_paper();
    ThreadPool pool(1);
    Workspace dry(paper, pool, Arena::Kind::counting);
    const Ctx ctx = dry.ctx();
    std::int32_t unused = 0;
    ops::AttentionSpec spec{.B = 3, .Sq = 500, .Sk = 500, .H = 6, .G = 2, .K = 96, .scale = 0.1};
    spec.doc_start = &unused;
    spec.documents = {16, 166, &unused};
    const std::int64_t rows = spec.B * spec.Sq, width = (spec.H + 2 * spec.G) * spec.K;
    const Tensor qkv = ctx.keep.tensor(DType::bf16, {rows, width}), d_qkv = ctx.keep.tensor(DType::bf16, {rows, width}),
                 o = ctx.keep.tensor(DType::bf16, {rows, spec.H * spec.K}),
                 lse = ctx.keep.tensor(DType::f32, {spec.B, spec.H, spec.Sq});
    const std::int64_t k = spec.H * spec.K, v = k + spec.G * spec.K;
    ops::attention_backward(ctx.temp, spec, {{d_qkv, 0}, {d_qkv, k}, {d_qkv, v}}, o, {qkv, 0}, {qkv, k}, {qkv, v},
                            {o, lse});
    const double keys_alone = static_cast<double>(4 * rows * spec.G * spec.K * 2),
                 sums_by_rows = static_cast<double>(rows * spec.H * 4);
    const double expected = library + keys_alone + sums_by_rows;
    EXPECT_NEAR(static_cast<double>(ctx.temp.arena->peak()), expected, 0.005 * expected);
}

/// cuDNN's gradients take memory with the square of the sequence if they are to be the same in every run; beyond some
/// GiB our own kernels do it, which take none.
TEST(PlanOfAGpuThatIsNotHere, CountsWhatDeterministicAttentionTakes) {
    if (!build_info().cuda) GTEST_SKIP() << "built without CUDA: no GPU can be planned for";
#ifndef TERA_WITH_CUDNN
    GTEST_SKIP() << "built without cuDNN's front end";
#endif
    const auto total = [](const std::string& flags) {
        RunConfig config = config_of(
            "--bf16 --num-layers 1 --hidden-size 2304 --num-attention-heads 24 "
            "--position-embedding-type rope --micro-batch-size 1 --lr 1e-4 "
            "--attention-dropout 0 --hidden-dropout 0 --tokenizer-type NullTokenizer "
            "--vocab-size 99 --device cuda " +
                flags,
            1);
        config.padded_vocab_size = 128;
        return static_cast<double>(plan_layout(config, 100, 1).stages[0].total());
    };
    const std::string s8k = "--seq-length 8192 --max-position-embeddings 8192 ",
                      s64k = "--seq-length 65536 --max-position-embeddings 65536 ";
    EXPECT_NEAR(total(s8k + "--deterministic-mode") - total(s8k), 24 * 8192.0 * 8192.0 * 2,
                0.1 * 24 * 8192.0 * 8192.0 * 2);
    EXPECT_LE(total(s64k + "--deterministic-mode"), total(s64k));
}

/// Long sequences, where attention's own memory counts, and deterministic mode.
TEST(PlanOfAGpuThatIsNotHere, IsThatOfTheOneThatIsHere) {
    if (Engine::gpus() == 0) GTEST_SKIP() << "no GPU in this machine";
    const auto planned = [](RunConfig config, const Engine& engine) {
        config.padded_vocab_size = 128;
        engine.set_deterministic(config.deterministic_mode);
        ThreadPool pool(1);
        Workspace dry(engine, pool, Arena::Kind::counting);
        return static_cast<double>(plan_memory(config, 100, dry).total());
    };
    const Engine here(Device::cuda), paper = Engine::on_paper();
    for (const char* flags : {"--seq-length 32768", "--seq-length 32768 --group-query-attention --num-query-groups 2",
                              "--seq-length 2048 --deterministic-mode", "--seq-length 4000 --kv-channels 96"}) {
        const RunConfig config =
            config_of(std::string("--bf16 --num-layers 1 --hidden-size 1024 --num-attention-heads 16 "
                                  "--position-embedding-type rope --micro-batch-size 1 --lr 1e-4 "
                                  "--max-position-embeddings 32768 --tokenizer-type NullTokenizer "
                                  "--vocab-size 99 ") +
                          flags,
                      1);
        const double there = planned(config, here);
        EXPECT_NEAR(planned(config, paper), there, 0.01 * there) << flags;
    }
}

}  // namespace
}  // namespace tera
