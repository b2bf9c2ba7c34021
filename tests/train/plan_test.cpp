// Every configuration of the five systems, as its launcher spells the flags, against the table of shapes and counts.
#include "train/plan.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/build_info.h"
#include "core/error.h"
#include "support/expect_usage_error.h"
#include "support/temp_folder.h"
#include "support/words.h"
#include "train/run_schedules.h"

namespace tera {
namespace {

struct Planned {
    RunConfig config;
    RunPlan plan;
};

Planned plan_of(ModelKind kind, const std::string& flags, std::int64_t world_size,
                const std::vector<std::int64_t>& at = {}) {
    Planned out;
    out.config = parse_run_config(kind, words(flags), Environment{});
    validate_and_derive(out.config, world_size);
    out.plan = make_plan(out.config, at);
    return out;
}

const std::string aws_gpt =
    " --micro-batch-size 1 --global-batch-size 288 --seq-length 2048 --max-position-embeddings 2048"
    " --train-samples 146484375 --lr-decay-samples 126953125 --lr-warmup-samples 183105 --lr 6.0e-5 --min-lr 6.0e-6"
    " --lr-decay-style cosine --log-interval 1 --eval-iters 40 --eval-interval 1000"
    " --data-path /fsx/gpt2/my-gpt2_text_document --vocab-file /fsx/gpt2/gpt2-vocab.json --merge-file "
    "/fsx/gpt2/gpt2-merges.txt"
    " --split 98,2,0 --clip-grad 1.0 --weight-decay 0.1 --adam-beta1 0.9 --adam-beta2 0.95 --init-method-std 0.006 "
    "--fp16"
    " --recompute-activations";
const std::string aws_gpt_slurm = aws_gpt + " --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2";

const std::string aws_llama =
    " --micro-batch-size 1 --global-batch-size 2048 --seq-length 4096 --max-position-embeddings 4096 --train-iters 5"
    " --lr 6.0e-5 --min-lr 6.0e-6 --lr-decay-style cosine --lr-decay-iters 45 --lr-warmup-iters 2 --log-interval 1 "
    "--eval-iters 0"
    " --data-path /fsx/my-llama2_text_document --tokenizer-type Llama2Tokenizer --tokenizer-model "
    "/fsx/llama2/tokenizer.model"
    " --split 100,0,0 --clip-grad 1.0 --weight-decay 0.1 --adam-beta1 0.9 --adam-beta2 0.95 --init-method-std 0.006 "
    "--fp16"
    " --swiglu --normalization RMSNorm --untie-embeddings-and-output-weights --no-position-embedding "
    "--position-embedding-type rope"
    " --no-rope-fusion --use-flash-attn --use-mcore-models --transformer-impl transformer_engine "
    "--no-masked-softmax-fusion"
    " --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --log-throughput --sequence-parallel";

const std::string swiss =
    " --max-position-embeddings 8192 --seq-length 8192 --group-query-attention --position-embedding-type rope "
    "--rotary-base 500000"
    " --use-rope-scaling --rope-scaling-factor 8 --make-vocab-size-divisible-by 128 --normalization RMSNorm"
    " --disable-bias-linear --attention-dropout 0.0 --hidden-dropout 0.0 --weight-decay 0.1 --clip-grad 1.0 "
    "--adam-beta1 0.9"
    " --adam-beta2 0.95 --train-iters 5000 --lr 0.00022 --min-lr 0.000022 --lr-decay-style cosine --lr-warmup-iters 200"
    " --bf16 --ckpt-format torch_dist --ckpt-fully-parallel-load --ckpt-assume-constant-structure --async-save --save "
    "/ckpt --load /ckpt"
    " --save-interval 1000 --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather "
    "--no-check-for-nan-in-loss-and-grad"
    " --cross-entropy-loss-fusion --manual-gc --manual-gc-interval 50 --log-throughput --log-progress --log-interval 1 "
    "--eval-iters 0"
    " --tensorboard-dir /tb --no-log-loss-scale-to-tensorboard --log-memory-to-tensorboard --data-cache-path /cache "
    "--split 100,0,0"
    " --data-path /a /b --reset-position-ids --reset-attention-mask --eod-mask-loss --num-workers 32 "
    "--num-dataset-builder-threads 1"
    " --dataloader-type single --exit-signal-handler --trigger-path /triggers --seed 28 --init-method-std 0.008944"
    " --distributed-timeout-minutes 60 --dist-ckpt-strictness assume_ok_unexpected --wandb-project p --wandb-exp-name e"
    " --tokenizer-type HuggingFaceTokenizer";
const std::string swiss_llama = swiss + " --swiglu --tokenizer-model nvidia/OpenMath2-Llama3.1-8B";
const std::string swiss_own =
    swiss + " --tokenizer-model alehc/swissai-tokenizer --untie-embeddings-and-output-weights";
const std::string apertus =
    swiss_own +
    " --xielu --qk-layernorm --qknorm-impl apex --optimizer ademamix --ademamix-alpha 8 --ademamix-beta3 0.9999"
    " --ademamix-alpha-warmup 100000 --ademamix-beta3-warmup 100000 --goldfish-loss --goldfish-k 50 --goldfish-h 50"
    " --use-precision-aware-optimizer --main-grads-dtype fp32";
const std::string interleaved =
    " --num-layers-per-virtual-pipeline-stage 5 --overlap-p2p-communication-warmup-flush "
    "--defer-embedding-wgrad-compute"
    " --wgrad-deferral-limit 22 --sequence-parallel";

const std::string jsc =
    " --position-embedding-type rope --micro-batch-size 1 --seq-length 2048 --max-position-embeddings 2048 "
    "--train-samples 300_000_000"
    " --lr-decay-samples 126_953_125 --lr-warmup-samples 216_320 --lr 1e-4 --min-lr 1e-5 --lr-decay-style cosine "
    "--optimizer adam"
    " --adam-beta1 0.9 --adam-beta2 0.999 --adam-eps 1e-8 --weight-decay 1e-1 --clip-grad 1.0 --hysteresis 2 "
    "--initial-loss-scale 4096"
    " --loss-scale-window 500 --min-loss-scale 1.0 --init-method-std 0.0048 --seed 42 --split 7,3,1 --eval-iters 5 "
    "--eval-interval 1000"
    " --log-interval 10 --save /o --save-interval 1500 --data-path /d --vocab-file /v.json --merge-file /m.txt"
    " --tokenizer-type GPT2BPETokenizer --distributed-backend nccl --tensorboard-dir /tb --tensorboard-queue-size 5"
    " --log-timers-to-tensorboard --log-batch-size-to-tensorboard --log-validation-ppl-to-tensorboard "
    "--sequence-parallel"
    " --recompute-activations --recompute-granularity selective --use-flash-attn --use-distributed-optimizer "
    "--log-format jsc";

const std::string bert =
    " --seq-length 512 --max-position-embeddings 512 --train-iters 3200 --lr-decay-iters 1980 --lr-warmup-fraction .01 "
    "--lr 5e-3"
    " --min-lr 1.0e-5 --lr-decay-style linear --optimizer mylamb --adam-eps 1e-6 --weight-decay 1e-2 --clip-grad 1.0 "
    "--split 949,50,1"
    " --log-interval 10 --eval-interval 100 --eval-iters 10 --fp16 --data-path my-bert_text_sentence"
    " --vocab-file /data/bert-large-uncased-vocab.txt --data-impl mmap --distributed-backend nccl";
const std::string t5 =
    " --encoder-seq-length 512 --decoder-seq-length 128 --max-position-embeddings 512 --kv-channels 64 "
    "--ffn-hidden-size 2048"
    " --vocab-extra-ids 100 --train-iters 3200 --lr-decay-iters 1980 --lr-warmup-fraction .01 --lr 5e-3 --min-lr 1.0e-5"
    " --optimizer mylamb --fp16 --data-path my-bert_text_sentence --vocab-file /data/bert-large-uncased-vocab.txt "
    "--split 949,50,1";

const std::string ultracluster =
    "--model-parallel-size 8 --num-layers 42 --hidden-size 4096 --num-attention-heads 32 --batch-size 16 --seq-length "
    "1024"
    " --max-position-embeddings 1024 --train-iters 1000 --lr-decay-iters 320000 --lr 0.00015 --min-lr 1.0e-5 "
    "--lr-decay-style cosine"
    " --warmup .01 --weight-decay 1e-2 --clip-grad 1.0 --log-interval 50 --save-interval 1000 --eval-interval 1000 "
    "--eval-iters 10"
    " --save /c --load /c --data-path /d --vocab-file /v --merge-file /m --data-impl mmap --split 949,50,1 "
    "--distributed-backend nccl"
    " --checkpoint-activations --distribute-checkpointed-activations --DDP-impl torch --num-workers 2 --fp16";

struct Row {
    const char* name;
    ModelKind kind;
    std::string flags;
    std::int64_t world, tensor, pipeline, data;
    std::int64_t head_dim, ffn, padded_vocab, micro_batches, parameters;
};

std::vector<Row> rows() {
    const ModelKind gpt = ModelKind::gpt;
    const auto size = [](int layers, int hidden, int heads) {
        return cat("--num-layers ", layers, " --hidden-size ", hidden, " --num-attention-heads ", heads);
    };
    const std::string groups4 = " --num-query-groups 4", groups8 = " --num-query-groups 8";
    return {
        {"aws-gpt3-1.7b-slurm", gpt, size(24, 2304, 24) + aws_gpt_slurm, 16, 4, 2, 2, 96, 9216, 50688, 144,
         1'651'051'008},
        {"aws-gpt3-3.6b-slurm", gpt, size(30, 3072, 32) + aws_gpt_slurm, 16, 4, 2, 2, 96, 12288, 50688, 144,
         3'560'595'456},
        {"aws-gpt3-7.5b-slurm", gpt, size(36, 4096, 32) + aws_gpt_slurm, 16, 4, 2, 2, 128, 16384, 50688, 144,
         7'465'689'088},
        {"aws-gpt3-18.4b-slurm", gpt, size(40, 6144, 48) + aws_gpt_slurm, 16, 4, 2, 2, 128, 24576, 50688, 144,
         18'446'610'432},
        {"aws-gpt3-39.1b-slurm", gpt, size(48, 8192, 64) + aws_gpt_slurm, 16, 4, 2, 2, 128, 32768, 50688, 144,
         39'091'847'168},
        {"aws-gpt3-76.1b-slurm", gpt, size(60, 10240, 80) + aws_gpt_slurm, 16, 4, 2, 2, 128, 40960, 50688, 144,
         76'045'496'320},
        {"aws-gpt3-145.6b-slurm", gpt, size(80, 12288, 96) + aws_gpt_slurm, 16, 4, 2, 2, 128, 49152, 50688, 144,
         145'615'970'304},
        {"aws-gpt3-310.1b-slurm", gpt, size(96, 16384, 128) + aws_gpt_slurm, 16, 4, 2, 2, 128, 65536, 50688, 144,
         310'122'151'936},
        {"aws-gpt3-7.5b-eks", gpt,
         size(36, 4096, 32) + aws_gpt + " --tensor-model-parallel-size=8 --pipeline-model-parallel-size=1", 8, 8, 1, 1,
         128, 16384, 51200, 288, 7'467'786'240},
        {"aws-llama2-7b", gpt, size(32, 4096, 32) + aws_llama, 16, 1, 1, 16, 128, 10880, 32000, 128, 6'689'435'648},
        {"aws-llama2-13b", gpt, size(40, 5120, 40) + aws_llama + " --tensor-model-parallel-size 2", 16, 2, 1, 8, 128,
         13632, 32000, 256, 12'900'014'080},
        {"aws-llama2-70b", gpt,
         size(80, 8192, 64) + aws_llama +
             " --group-query-attention --num-query-groups 8 --tensor-model-parallel-size 4 "
             "--pipeline-model-parallel-size 4",
         16, 4, 4, 1, 128, 21824, 32256, 2048, 55'522'748'416},
        {"swissai-llama3-300m", gpt,
         size(6, 2048, 16) + groups4 + swiss_llama +
             " --ffn-hidden-size 6144 --micro-batch-size 4 --global-batch-size 512",
         32, 1, 1, 32, 128, 6144, 128256, 4, 552'101'888},
        {"swissai-llama3-1b", gpt,
         size(16, 2048, 32) + groups8 + swiss_llama +
             " --ffn-hidden-size 8192 --micro-batch-size 3 --global-batch-size 504",
         84, 1, 1, 84, 64, 8192, 128256, 2, 1'235'814'400},
        {"swissai-llama3-3b", gpt,
         size(28, 3072, 24) + groups8 + swiss_llama +
             " --ffn-hidden-size 8192 --micro-batch-size 1 --global-batch-size 512",
         128, 1, 1, 128, 128, 8192, 128256, 4, 3'212'749'824},
        {"swissai-llama3-8b", gpt,
         size(32, 4096, 32) + groups8 + swiss_own +
             " --swiglu --ffn-hidden-size 14336 --micro-batch-size 1 --global-batch-size 128",
         64, 1, 1, 64, 128, 14336, 131072, 2, 8'053'329'920},
        {"swissai-llama3-70b", gpt,
         size(80, 8192, 64) + groups8 + swiss_own + interleaved +
             " --swiglu --ffn-hidden-size 28672 --micro-batch-size 1 --global-batch-size 1024 "
             "--tensor-model-parallel-size 4"
             " --pipeline-model-parallel-size 8",
         128, 4, 8, 4, 128, 28672, 131072, 256, 70'599'843'840},
        {"swissai-apertus-8b", gpt,
         size(32, 4096, 32) + groups8 + apertus +
             " --ffn-hidden-size 21504 --micro-batch-size 2 --global-batch-size 1024"
             " --tensor-model-parallel-size 2",
         1024, 2, 1, 512, 128, 21504, 131072, 1, 8'053'338'176},
        {"swissai-apertus-70b", gpt,
         size(80, 8192, 64) + groups8 + apertus + interleaved +
             " --ffn-hidden-size 43008 --micro-batch-size 1 --global-batch-size 4096 --tensor-model-parallel-size 4"
             " --pipeline-model-parallel-size 8",
         4096, 4, 8, 128, 128, 43008, 131072, 32, 70'599'864'480},
        {"jsc-13b-slurm", gpt,
         size(40, 5120, 32) + jsc +
             " --ffn-hidden-size 20480 --global-batch-size 1024 --bf16 --tensor-model-parallel-size 2"
             " --pipeline-model-parallel-size 4",
         32, 2, 4, 4, 160, 20480, 50432, 256, 12'843'796'480},
        {"jsc-175b-slurm", gpt,
         size(96, 12288, 96) + jsc +
             " --global-batch-size 96 --fp16 --tensor-model-parallel-size 8 --pipeline-model-parallel-size 8",
         384, 8, 8, 6, 128, 49152, 51200, 16, 174'590'681'088},
        {"anxu-bert4-mylamb-b512-short", ModelKind::bert,
         size(4, 128, 16) + bert + " --micro-batch-size 4 --global-batch-size 512", 4, 1, 1, 4, 8, 512, 30592, 32,
         4'839'042},
        {"anxu-bert24-mylamb-b32k", ModelKind::bert,
         size(24, 1024, 16) + bert + " --micro-batch-size 4 --global-batch-size 32768", 64, 1, 1, 64, 64, 4096, 30592,
         128, 336'297'858},
        {"anxu-bert85-mylamb-b2k", ModelKind::bert,
         size(85, 1024, 16) + bert + " --micro-batch-size 4 --global-batch-size 2048", 32, 1, 1, 32, 64, 4096, 30592,
         16, 1'104'667'522},
        {"anxu-t5-mylamb-b512", ModelKind::t5, size(6, 512, 8) + t5 + " --micro-batch-size 16 --global-batch-size 512",
         16, 1, 1, 16, 64, 2048, 30720, 2, 60'162'048},
        {"ultracluster-gpt2-8b", gpt, ultracluster, 64, 8, 1, 8, 128, 16384, 51200, 1, 8'671'870'976},
    };
}

TEST(Plan, EveryShapeOfTheFiveSystems) {
    for (const Row& row : rows()) {
        SCOPED_TRACE(row.name);
        const auto [config, plan] = plan_of(row.kind, row.flags, row.world);
        EXPECT_EQ(config.tensor_model_parallel_size, row.tensor);
        EXPECT_EQ(config.pipeline_model_parallel_size, row.pipeline);
        EXPECT_EQ(config.data_parallel_size, row.data);
        EXPECT_EQ(config.kv_channels, row.head_dim);
        EXPECT_EQ(config.ffn_hidden_size, row.ffn);
        EXPECT_EQ(plan.padded_vocab_size, row.padded_vocab);
        EXPECT_EQ(plan.num_micro_batches, row.micro_batches);
        EXPECT_EQ(plan.parameters.total, row.parameters);
        EXPECT_EQ(plan.parameters.per_rank.size(), static_cast<size_t>(row.pipeline));
        EXPECT_EQ(plan.parameters.per_rank[0].size(), static_cast<size_t>(row.tensor));
    }
}

TEST(Plan, CheckpointSizesOfSystemS) {
    // 14 bytes per parameter: bf16 weight, fp32 main weight and two moments.
    const auto gibibytes = [](const RunPlan& plan) {
        return static_cast<double>(plan.parameters.total) * 14 / (1 << 30);
    };
    int checked = 0;
    for (const Row& row : rows()) {
        const std::string name = row.name;
        if (name != "swissai-llama3-8b" && name != "swissai-llama3-70b") continue;
        EXPECT_NEAR(gibibytes(plan_of(row.kind, row.flags, row.world).plan),
                    name == "swissai-llama3-8b" ? 105.0 : 920.5, 0.05);
        ++checked;
    }
    EXPECT_EQ(checked, 2);
}

TEST(Plan, AwsTensorRankAndIterations) {
    const std::string flags =
        "--num-layers 36 --hidden-size 4096 --num-attention-heads 32" + aws_gpt + " --tensor-model-parallel-size 8";
    const auto [config, plan] = plan_of(ModelKind::gpt, flags, 8);
    EXPECT_EQ(plan.vocab.size, 50257);
    EXPECT_EQ(plan.padded_vocab_size - plan.vocab.size, 943);
    EXPECT_EQ(plan.parameters.per_rank[0], std::vector<std::int64_t>(8, 941'594'624));
    EXPECT_EQ(plan.train_iters, 508'626);
    EXPECT_EQ(plan.layers_per_stage, (std::vector<std::int64_t>{36}));
    // 12·L·h·f + 24·L·h² + 6·L·h·s + 6·h·V per token
    const std::int64_t per_token =
        12LL * 36 * 4096 * 16384 + 24LL * 36 * 4096 * 4096 + 6LL * 36 * 4096 * 2048 + 6LL * 4096 * 51200;
    EXPECT_EQ(plan_json(config, plan)["flops_per_iteration"].get<double>(),
              static_cast<double>(288LL * 2048 * per_token));
}

std::string logged(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3E", value);
    return text;
}

TEST(Plan, LearningRatesOfTheJscLogs) {
    const std::string small =
        "--num-layers 40 --hidden-size 5120 --num-attention-heads 32 --global-batch-size 1024" + jsc;
    const std::string large =
        "--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --global-batch-size 96" + jsc;
    const RunPlan plan13 = plan_of(ModelKind::gpt, small, 4, {10, 20, 30, 40, 50}).plan;
    const RunPlan plan175 = plan_of(ModelKind::gpt, large, 6, {10, 20, 30, 40, 50}).plan;
    const char* rates13[] = {"4.734E-06", "9.467E-06", "1.420E-05", "1.893E-05", "2.367E-05"};
    const char* rates175[] = {"4.438E-07", "8.876E-07", "1.331E-06", "1.775E-06", "2.219E-06"};
    for (size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(logged(plan13.learning_rate[i].learning_rate), rates13[i]);
        EXPECT_EQ(logged(plan175.learning_rate[i].learning_rate), rates175[i]);
    }
    EXPECT_EQ(plan13.train_iters, 292'968);
    EXPECT_EQ(plan175.train_iters, 3'125'000);
}

TEST(Plan, LearningRatesOfTheAwsLog) {
    // Two samples per iteration: 50, 52 and 54 samples.
    const std::string flags =
        "--num-layers 36 --hidden-size 4096 --num-attention-heads 32" + aws_gpt + " --global-batch-size 2";
    const RunPlan plan = plan_of(ModelKind::gpt, flags, 1, {25, 26, 27}).plan;
    EXPECT_EQ(logged(plan.learning_rate[0].learning_rate), "1.638E-08");
    EXPECT_EQ(logged(plan.learning_rate[1].learning_rate), "1.704E-08");
    EXPECT_EQ(logged(plan.learning_rate[2].learning_rate), "1.769E-08");
    EXPECT_EQ(plan.train_iters, 73'242'187);
}

TEST(Plan, WarmUpFractionIsOfTheDecay) {
    // System L: fraction of lr-decay-iters, not of train-iters, and it may be fractional.
    RunConfig config = parse_run_config(
        ModelKind::bert, words("--num-layers 4 --hidden-size 128 --num-attention-heads 16 --micro-batch-size 1" + bert),
        Environment{});
    validate_and_derive(config, 1);
    const LrSchedule schedule = make_lr_schedule(config);
    EXPECT_DOUBLE_EQ(schedule.warmup_steps, 19.8);
    EXPECT_DOUBLE_EQ(schedule.decay_steps, 1980);
}

TEST(Plan, PaddedVocabularies) {
    const std::string flags =
        "--num-layers 8 --hidden-size 128 --num-attention-heads 16 --micro-batch-size 1 --seq-length 512 "
        "--max-position-embeddings 512";
    const auto padded = [&](ModelKind kind, int tensor, const std::string& more) {
        return plan_of(kind, flags + cat(" --tensor-model-parallel-size ", tensor) + more, tensor)
            .plan.padded_vocab_size;
    };
    EXPECT_EQ(padded(ModelKind::gpt, 1, ""), 50304);
    EXPECT_EQ(padded(ModelKind::gpt, 2, ""), 50432);
    EXPECT_EQ(padded(ModelKind::gpt, 4, ""), 50688);
    EXPECT_EQ(padded(ModelKind::gpt, 8, ""), 51200);
    EXPECT_EQ(padded(ModelKind::bert, 1, ""), 30592);
    for (const int tensor : {2, 4, 8}) EXPECT_EQ(padded(ModelKind::bert, tensor, ""), 30720);
    EXPECT_EQ(padded(ModelKind::t5, 1, " --decoder-seq-length 128 --vocab-extra-ids 100"), 30720);
    EXPECT_EQ(padded(ModelKind::gpt, 1, " --tokenizer-type NullTokenizer --vocab-size 127"), 128);
    EXPECT_EQ(padded(ModelKind::gpt, 1, " --tokenizer-type NullTokenizer --vocab-size 128"), 256);
    EXPECT_EQ(padded(ModelKind::gpt, 1, " --vocab-size 1000"), 1024);
}

TEST(Plan, CountsTokenizerFilesThatAreThere) {
    const TempFolder folder;
    const std::string flags =
        "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --micro-batch-size 1 --seq-length 64 "
        "--max-position-embeddings 64";
    const auto write = [&](const std::string& name, const std::string& text) {
        std::ofstream(folder / name, std::ios::binary) << text;
        return folder / name;
    };
    const auto size = [&](ModelKind kind, const std::string& more) {
        return plan_of(kind, flags + more, 1).plan.vocab.size;
    };
    const std::string gpt2 = write("vocab.json", R"({"a": 0, "b": 1, "<|endoftext|>": 2})");
    EXPECT_EQ(size(ModelKind::gpt, " --vocab-file " + gpt2), 3);
    const std::string bert_vocab = write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[BOS]\nthe\n");
    EXPECT_EQ(size(ModelKind::bert, " --vocab-file " + bert_vocab), 8);
    EXPECT_EQ(size(ModelKind::t5, " --decoder-seq-length 8 --vocab-extra-ids 3 --vocab-file " + bert_vocab), 11);
    write(
        "tokenizer.json",
        R"({"model": {"vocab": {"a": 0, "b": 1}}, "added_tokens": [{"id": 1, "content": "b"}, {"id": 2, "content": "<s>"}]})");
    EXPECT_EQ(size(ModelKind::gpt, " --tokenizer-type HuggingFaceTokenizer --tokenizer-model " + folder.path()), 3);
    const std::string pieces =
        write("tokenizer.model",
              "\x0a\x09\x0a\x05<unk>\x18\x02\x0a\x07\x0a\x03<s>\x18\x03\x0a\x08\x0a\x04</s>\x18\x03\x0a\x03\x0a\x01x");
    EXPECT_EQ(size(ModelKind::gpt, " --tokenizer-type Llama2Tokenizer --tokenizer-model " + pieces), 4);
    const std::string broken = write("broken.model", std::string("\x0a\x30\x0a", 3));
    expect_usage_error([&] { size(ModelKind::gpt, " --tokenizer-type Llama2Tokenizer --tokenizer-model " + broken); },
                       {"broken.model", "damaged"});
    expect_usage_error([&] { size(ModelKind::gpt, " --vocab-file " + write("bad.json", "{")); }, {"bad.json"});
    expect_usage_error([&] { size(ModelKind::gpt, " --vocab-file " + folder.path()); },
                       {"--vocab-file", folder.path().c_str(), "is a folder"});
    expect_usage_error(
        [&] { size(ModelKind::gpt, " --tokenizer-type HuggingFaceTokenizer --tokenizer-model /no/such"); },
        {"--vocab-size", "/no/such"});
}

TEST(Plan, SaysWhereTheVocabularyComesFrom) {
    const std::string flags =
        "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --micro-batch-size 1 --seq-length 64 "
        "--max-position-embeddings 64";
    const auto [config, plan] = plan_of(ModelKind::gpt, flags + " --vocab-file /nowhere/vocab.json", 1);
    EXPECT_NE(plan_text(config, plan).find("/nowhere/vocab.json is not there"), std::string::npos);
    EXPECT_NE(plan_json(config, plan)["vocab_size_source"].get<std::string>().find("usual size"), std::string::npos);
}

TEST(Plan, JsonHasTheAgreedKeys) {
    const auto [config, plan] =
        plan_of(ModelKind::gpt, "--num-layers 36 --hidden-size 4096 --num-attention-heads 32" + aws_gpt_slurm, 16, {1});
    const nlohmann::json json = plan_json(config, plan);
    for (const char* key :
         {"parameters", "parameters_per_rank", "padded_vocab_size", "data_parallel_size", "num_micro_batches",
          "train_iters", "layers_per_stage", "flops_per_iteration", "learning_rate"}) {
        EXPECT_TRUE(json.contains(key)) << key;
    }
    EXPECT_EQ(json["parameters_per_rank"].size(), 2u);
    EXPECT_EQ(json["parameters_per_rank"][0].size(), 4u);
    EXPECT_EQ(json["layers_per_stage"], (std::vector<int>{18, 18}));
    EXPECT_TRUE(json["learning_rate"].contains("1"));
}

TEST(Plan, SmallSizesAreSaidInSmallUnits) {
    const auto [config, plan] = plan_of(
        ModelKind::gpt, "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --device cpu" + aws_gpt_slurm, 16);
    ASSERT_TRUE(plan.layout) << plan.layout_missing;
    const std::string text = plan_text(config, plan);
    EXPECT_EQ(text.find("0.00 "), std::string::npos) << text;
    EXPECT_NE(text.find(" MiB"), std::string::npos) << text;
}

TEST(Plan, MemoryIsCountedWhateverIsLogged) {
    const std::string model = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --device cpu" + aws_gpt_slurm;
    const auto total = [&](const std::string& flags) {
        const auto [config, plan] = plan_of(ModelKind::gpt, model + flags, 16);
        EXPECT_EQ(plan_json(config, plan)["runnable"].get<bool>(), flags.empty()) << flags;
        return plan.layout ? plan.layout->fullest().total() : 0;
    };
    EXPECT_GT(total(""), 0);
    for (const char* flags : {" --tensorboard-dir /tb", " --wandb-project p --wandb-exp-name e", " --goldfish-loss"})
        EXPECT_EQ(total(flags), total("")) << flags;
    EXPECT_EQ(total(" --xielu"), 0) << "a part of the model that is not built";
}

TEST(Plan, NamesEveryByteOfARank) {
    auto [config, plan] =
        plan_of(ModelKind::gpt, "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --device cpu" + aws_gpt, 1);
    ASSERT_TRUE(plan.layout) << plan.layout_missing;
    MemoryPlan& memory = plan.layout->stages.at(0);
    memory.messages = 1 << 20;  // a CPU has few buffers, a GPU all of them
    memory.batches = 2 << 20;
    memory.tables = 3 << 20;
    memory.libraries = 4 << 20;
    memory.rounding = 5 << 20;
    const nlohmann::json stage = plan_json(config, plan)["layout"]["stages"][0];
    EXPECT_EQ(stage["buffers"], 15 << 20);
    EXPECT_EQ(stage["buffers_by_name"], nlohmann::json({{"messages", 1 << 20},
                                                        {"batches", 2 << 20},
                                                        {"tables", 3 << 20},
                                                        {"product_library", 4 << 20},
                                                        {"rounding", 5 << 20}}));
    std::size_t sum = 0;
    for (const char* name :
         {"weights", "gradients", "main_weights", "optimizer_state", "activations", "scratch", "buffers"})
        sum += stage[name].get<std::size_t>();
    EXPECT_EQ(stage["total"], sum);
    const std::string text = plan_text(config, plan),
                      buffers =
                          ", buffers 15.00 MiB (messages 1.00 MiB, batches 2.00 MiB, tables 3.00 MiB, product "
                          "library 4.00 MiB, rounding 5.00 MiB)";
    EXPECT_NE(text.find(buffers), std::string::npos) << text;
}

TEST(Plan, SaysWhatComesOnTopOfAGpusMemory) {
    const std::string model = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --device ";
    const auto on_top = [&](const std::string& device, int ranks) {
        const auto [config, plan] = plan_of(ModelKind::gpt, model + device + aws_gpt, ranks);
        EXPECT_EQ(plan_text(config, plan).find("on top of it") != std::string::npos, device == "cuda");
        return plan_json(config, plan)["layout"]["libraries_about"].get<double>() / 0x1p30;
    };
    EXPECT_EQ(on_top("cpu", 2), 0);
    if (!build_info().cuda) GTEST_SKIP() << "built without CUDA: no GPU can be planned for";
    EXPECT_NEAR(on_top("cuda", 1), 0.54, 0.01);
    EXPECT_NEAR(on_top("cuda", 2), 1.2, 0.01);
}

TEST(Plan, SaysWhyMemoryIsNotCounted) {
    if (build_info().cuda) GTEST_SKIP() << "built with CUDA: a GPU can be planned for, be it here or not";
    const auto [config, plan] =
        plan_of(ModelKind::gpt, "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --device cuda" + aws_gpt, 1);
    EXPECT_FALSE(plan.layout);
    EXPECT_NE(plan_text(config, plan).find("memory of a rank            not counted: "), std::string::npos)
        << plan_text(config, plan);
}

/// Heads that no GPU kernel takes, or a GPU that this build cannot use.
TEST(Plan, WhatCannotBeCountedCannotRun) {
    const auto [config, plan] =
        plan_of(ModelKind::gpt,
                "--num-layers 2 --hidden-size 64 --num-attention-heads 2 --kv-channels 512 --device cuda" + aws_gpt, 1);
    ASSERT_FALSE(plan.layout_missing.empty());
    EXPECT_EQ(plan.not_runnable, plan.layout_missing);
    EXPECT_FALSE(plan_json(config, plan)["runnable"].get<bool>());
}

TEST(Plan, RefusesWhatCannotBe) {
    const auto refuse = [](const std::string& flags, std::int64_t world, std::initializer_list<const char*> parts) {
        expect_usage_error([&] { plan_of(ModelKind::gpt, flags + aws_gpt, world); }, parts);
    };
    refuse("--num-layers 64 --hidden-size 8192 --num-attention-heads 48", 1,
           {"--hidden-size 8192", "--num-attention-heads 48"});
    const std::string size = "--num-layers 36 --hidden-size 4096 --num-attention-heads 32";
    refuse(size + " --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2", 12, {"world size 12", "8"});
    refuse(size + " --pipeline-model-parallel-size 5", 5, {"36 layers", "5 pipeline stages"});
    refuse("--num-layers 36 --hidden-size 4096 --num-attention-heads 32", 5, {"--global-batch-size 288", "5"});
    expect_usage_error([&] { plan_of(ModelKind::gpt, size + aws_gpt + " --lr-warmup-samples 126953125", 1); },
                       {"warm-up"});
    const std::string with_chunks =
        "--num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --max-position-embeddings 16 "
        "--micro-batch-size 1 --global-batch-size 12 --tokenizer-type NullTokenizer --vocab-size 99 "
        "--train-samples 1000 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 ";
    expect_usage_error([&] { plan_of(ModelKind::gpt, with_chunks + "--rampup-batch-size 6 3 100", 2); },
                       {"--rampup-batch-size", "9 micro-batches"});
    EXPECT_NO_THROW(plan_of(ModelKind::gpt, with_chunks + "--rampup-batch-size 4 4 100", 2));
    expect_usage_error([&] { plan_of(ModelKind::gpt, size + aws_gpt + " --rampup-batch-size 100 94 1000", 4); },
                       {"194"});
}

}  // namespace
}  // namespace tera
