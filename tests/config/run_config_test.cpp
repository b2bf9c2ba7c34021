#include "config/run_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "core/error.h"
#include "support/expect_usage_error.h"
#include "support/temp_folder.h"
#include "support/words.h"

namespace tera {
namespace {

RunConfig parsed(const std::string& flags, ModelKind kind = ModelKind::gpt) {
    return parse_run_config(kind, words(flags), Environment{});
}

const std::string small =
    " --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 "
    "--micro-batch-size 2";

RunConfig valid(const std::string& flags, std::int64_t world = 1, ModelKind kind = ModelKind::gpt) {
    RunConfig config = parsed(small + " " + flags, kind);
    validate_and_derive(config, world);
    return config;
}

void refuses(const std::string& flags, std::initializer_list<const char*> parts, std::int64_t world = 1) {
    SCOPED_TRACE(flags);
    expect_usage_error([&] { valid(flags, world); }, parts);
}

TEST(RunConfigParse, TakesValuesIntoMembers) {
    const RunConfig c = parsed(
        "--num-layers 12 --lr=6.0e-5 --disable-bias-linear --data-path 0.3 a 0.7 b --rampup-batch-size 16 16 300_000");
    EXPECT_EQ(c.num_layers, 12);
    EXPECT_EQ(c.lr, 6.0e-5);
    EXPECT_FALSE(c.add_bias_linear);
    EXPECT_EQ(c.data_path, (std::vector<std::string>{"0.3", "a", "0.7", "b"}));
    EXPECT_EQ(c.rampup_batch_size, (std::vector<std::int64_t>{16, 16, 300'000}));
    EXPECT_EQ(c.given.count("num_layers"), 1u);
    EXPECT_EQ(c.given.count("hidden_size"), 0u);
}

TEST(RunConfigParse, OlderNames) {
    const RunConfig c = parsed(
        "--model-parallel-size 8 --batch-size 16 --warmup .01 --layernorm-epsilon 1e-6 --checkpoint-activations"
        " --override-lr-scheduler --persistent-save-interval 5 --local_rank 3");
    EXPECT_EQ(c.tensor_model_parallel_size, 8);
    EXPECT_EQ(c.micro_batch_size, 16);
    EXPECT_EQ(c.lr_warmup_fraction, 0.01);
    EXPECT_EQ(c.norm_epsilon, 1e-6);
    EXPECT_EQ(c.recompute_granularity, "full");
    EXPECT_EQ(c.recompute_method, "uniform");
    EXPECT_EQ(c.recompute_num_layers, 1);
    EXPECT_TRUE(c.override_opt_param_scheduler);
    EXPECT_EQ(c.save_interval, 5);
    EXPECT_EQ(c.local_rank, 3);
    EXPECT_EQ(parsed("--use-rotary-position-embeddings").position_embedding_type, "rope");
    EXPECT_EQ(parsed("--recompute-activations").recompute_granularity, "selective");
    EXPECT_EQ(parsed("--override-opt_param-scheduler").override_opt_param_scheduler, true);
    EXPECT_EQ(parsed("--lr-wsd-decay-style 1-sqrt").lr_wsd_decay_style, "minus_sqrt");
    expect_usage_error([] { parsed("--recompute-activations --recompute-granularity full"); },
                       {"--recompute-activations", "full"});
}

TEST(RunConfigParse, SaysWhatHasNoEffect) {
    const RunConfig c = parsed("--use-flash-attn --transformer-impl local --manual-gc-interval 0 --no-rope-fusion");
    ASSERT_EQ(c.notices.size(), 3u);  // --manual-gc-interval 0 is the default
    for (const std::string& line : c.notices) EXPECT_NE(line.find("changes nothing here"), std::string::npos) << line;
}

TEST(RunConfigParse, SaysWhatHasNoEffectWithTheOtherFlags) {
    const auto count = [](const std::string& flags) {
        const std::vector<std::string> all = valid(flags).notices;
        return std::count(all.begin(), all.end(),
                          "--recompute-num-layers 2 changes nothing without --recompute-granularity full");
    };
    EXPECT_EQ(count("--recompute-num-layers 2"), 1);
    EXPECT_EQ(count("--recompute-num-layers 2 --recompute-granularity full --recompute-method block"), 0);
    EXPECT_EQ(count(""), 0);
}

TEST(RunConfigParse, RefusesByNameButNotAtTheDefault) {
    expect_usage_error([] { parsed("--num-experts 8"); }, {"--num-experts 8", "mixture-of-experts"});
    expect_usage_error([] { parsed("--multi-latent-attention"); }, {"--multi-latent-attention"});
    expect_usage_error([] { parsed("--fp8-format hybrid"); }, {"--fp8-format hybrid", "--bf16"});
    expect_usage_error([] { parsed("--check-for-spiky-loss"); },
                       {"--check-for-spiky-loss", "leave it out", "--no-check-for-nan-in-loss-and-grad"});
    expect_usage_error([] { parsed("--check-weight-hash-across-dp-replicas-interval 5"); },
                       {"data-parallel ranks is not built; leave it out"});
    expect_usage_error([] { parsed("--rl-profile"); }, {"--rl-profile", "reinforcement"});
    expect_usage_error([] { parsed("--grpo-group-size 3 --lr 1"); }, {"--grpo-group-size"});
    EXPECT_NO_THROW(
        parsed("--num-classes 1000 --moe-router-topk 2 --fp8-margin 0 --encoder-tensor-model-parallel-size 0 "
               "--retro-attention-gate 1.0"));
}

TEST(RunConfigParse, YamlGivesTheSame) {
    const TempFolder folder;
    std::ofstream(folder / "run.yaml")
        << "num_layers: 12\nhidden-size: 3_072\ndisable-bias-linear: true\nadd_position_embedding: true\n"
           "swiglu: yes\nlr: 6.0e-5\ndata-path: [0.3, a, 0.7, b]\ntrain-data-path: x y\nload: null\n"
           "bert_binary_head: false\nuse-flash-attn: true\n";
    const std::string config = "--config " + (folder / "run.yaml");
    const RunConfig c = parsed(config + " --num-layers 24");
    EXPECT_EQ(c.num_layers, 24);  // the command line wins
    EXPECT_EQ(c.hidden_size, 3072);
    EXPECT_FALSE(c.add_bias_linear);
    EXPECT_TRUE(c.add_position_embedding);
    EXPECT_FALSE(c.bert_binary_head);
    EXPECT_TRUE(c.swiglu);
    EXPECT_EQ(c.lr, 6.0e-5);
    EXPECT_EQ(c.data_path, (std::vector<std::string>{"0.3", "a", "0.7", "b"}));
    EXPECT_EQ(c.train_data_path, (std::vector<std::string>{"x", "y"}));
    EXPECT_TRUE(c.load.empty());
    EXPECT_EQ(c.notices.size(), 1u);
}

TEST(RunConfigParse, YamlErrorsNameFileAndLine) {
    const TempFolder folder;
    const auto yaml = [&](const std::string& text) {
        std::ofstream(folder / "run.yaml") << text;
        return [&] { parsed("--config " + (folder / "run.yaml")); };
    };
    expect_usage_error(yaml("lr: 1\nhiden_size: 3\n"), {"run.yaml line 2", "hiden_size", "hidden_size"});
    expect_usage_error(yaml("num_layers: many\n"), {"run.yaml line 1", "many"});
    expect_usage_error(yaml("num_layers: [1, 2]\n"), {"line 1", "one value"});
    expect_usage_error(yaml("swiglu: maybe\n"), {"maybe"});
    expect_usage_error(yaml("normalization: BatchNorm\n"), {"BatchNorm", "RMSNorm"});
    expect_usage_error(yaml("lr: 1\nlr: 2\n"), {"line 2", "twice"});
    expect_usage_error(yaml("a: [1\n"), {"run.yaml line"});
    expect_usage_error(yaml("just text\n"), {"run.yaml"});
    expect_usage_error(yaml("num_experts: 8\n"), {"--num-experts 8"});
    expect_usage_error([] { parsed("--config /no/such.yaml"); }, {"/no/such.yaml"});
}

TEST(RunConfigDerive, SizesOfTheModel) {
    const RunConfig plain = valid("");
    EXPECT_EQ(plain.ffn_hidden_size, 256);
    EXPECT_EQ(plain.kv_channels, 16);
    EXPECT_EQ(plain.num_query_groups, 4);
    EXPECT_TRUE(plain.add_qkv_bias);
    EXPECT_EQ(plain.tokenizer_type, "GPT2BPETokenizer");
    EXPECT_EQ(plain.dataloader_type, "single");
    EXPECT_EQ(plain.params_dtype, "float32");
    EXPECT_EQ(valid("--swiglu --hidden-size 4096").ffn_hidden_size, 10880);
    EXPECT_EQ(valid("--swiglu --hidden-size 5120").ffn_hidden_size, 13632);
    EXPECT_EQ(valid("--swiglu --hidden-size 8192").ffn_hidden_size, 21824);
    EXPECT_EQ(valid("--kv-channels 10 --num-attention-heads 3").kv_channels, 10);
    EXPECT_EQ(valid("--group-query-attention --num-query-groups 2").num_query_groups, 2);
    EXPECT_EQ(valid("--group-query-attention").num_query_groups, 1);
    EXPECT_FALSE(valid("--disable-bias-linear").bias_gelu_fusion);
    EXPECT_FALSE(valid("--disable-bias-linear").add_qkv_bias);
    EXPECT_TRUE(valid("--disable-bias-linear --add-qkv-bias").add_qkv_bias);
    EXPECT_EQ(valid("--bf16").params_dtype, "bfloat16");
    EXPECT_TRUE(valid("--bf16").accumulate_allreduce_grads_in_fp32);
    EXPECT_FALSE(valid("--fp16").check_for_nan_in_loss_and_grad);
    EXPECT_TRUE(valid("--fp16 --loss-scale 128").check_for_nan_in_loss_and_grad);
    EXPECT_EQ(valid("", 1, ModelKind::bert).tokenizer_type, "BertWordPieceLowerCase");
}

TEST(RunConfigDerive, LayoutAndBatches) {
    const RunConfig c = valid(
        "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --context-parallel-size 2 --sequence-parallel",
        16);
    EXPECT_EQ(c.data_parallel_size, 2);
    EXPECT_EQ(c.global_batch_size, 4);
    EXPECT_TRUE(c.sequence_parallel);
    EXPECT_FALSE(valid("--sequence-parallel").sequence_parallel);
    const RunConfig interleaved =
        valid("--num-layers 16 --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2", 4);
    EXPECT_EQ(interleaved.virtual_pipeline_model_parallel_size, 2);
    EXPECT_FALSE(valid("").virtual_pipeline_model_parallel_size.has_value());
}

TEST(RunConfigDerive, IsIdempotent) {
    RunConfig once = valid("--fp16 --data-path a --swiglu");
    RunConfig twice = once;
    validate_and_derive(twice, 1);
    EXPECT_EQ(once.notices, twice.notices);
    EXPECT_EQ(once.num_query_groups, twice.num_query_groups);
    EXPECT_EQ(once.split, "969, 30, 1");
}

TEST(RunConfigRefuse, Sizes) {
    expect_usage_error(
        [] {
            RunConfig c = parsed("--num-layers 2");
            validate_and_derive(c, 1);
        },
        {"--hidden-size", "required"});
    refuses("--hidden-size 8192 --num-attention-heads 48", {"8192", "48", "--kv-channels"});
    refuses("--group-query-attention --num-query-groups 3", {"--num-query-groups 3"});
    refuses("--num-query-groups 2", {"--group-query-attention"});
    refuses("--seq-length 64", {"--seq-length 64", "--max-position-embeddings 32"});
    refuses("--swiglu --squared-relu", {"only one of"});
    refuses("--no-position-embedding", {"--no-position-embedding", "rope"});
    refuses("--position-embedding-type rope --rotary-percent 0.2", {"--rotary-percent"});
    refuses("--use-rope-scaling", {"--use-rope-scaling"});
    refuses("--hidden-dropout 1.5", {"--hidden-dropout"});
    refuses("--num-layers 0", {"--num-layers"});
    refuses("--hidden-size -64", {"--hidden-size", "-64"});
    EXPECT_NO_THROW(valid("--no-position-embedding --position-embedding-type rope"));
}

TEST(RunConfigRefuse, SlipsOfTheKeyboard) {
    const std::string huge = "9223372036854775807";
    for (const char* flag :
         {"--num-layers", "--hidden-size", "--ffn-hidden-size", "--kv-channels", "--vocab-size", "--micro-batch-size",
          "--global-batch-size", "--train-iters", "--train-samples", "--seq-length", "--make-vocab-size-divisible-by",
          "--tensor-model-parallel-size", "--num-attention-heads"}) {
        refuses(std::string(flag) + " " + huge, {flag, "proportion"});
    }
    refuses("--kv-channels 1048576 --num-attention-heads 65536", {"--kv-channels"});
}

TEST(RunConfigRefuse, NumbersThatCannotBeMeant) {
    const auto each = [](std::initializer_list<const char*> flags, std::initializer_list<const char*> values,
                         const char* text) {
        for (const std::string flag : flags) {
            for (const std::string value : values) refuses("--" + flag + " " + value, {flag.c_str(), text});
        }
    };
    each({"lr", "min-lr", "lr-warmup-init", "decoupled-lr", "decoupled-min-lr", "weight-decay", "clip-grad", "adam-eps",
          "init-method-std", "ademamix-alpha"},
         {"-1", "nan", "inf"}, "must be a finite number, not below 0");
    each({"initial-loss-scale", "loss-scale", "min-loss-scale", "norm-epsilon", "rope-scaling-factor"},
         {"0", "-1", "nan", "inf"}, "must be a finite number above 0");
    each({"initial-loss-scale", "loss-scale", "min-loss-scale"}, {"1e-50", "1e39"}, "that fp32 can hold");
    refuses("--loss-scale-window 2.5", {"--loss-scale-window 2.5", "whole number"});
    refuses("--profile-timeline t", {"--profile-timeline", "--profile marks"});
    each({"adam-beta1", "adam-beta2", "ademamix-beta3", "sgd-momentum", "attention-dropout", "hidden-dropout"},
         {"-0.1", "1", "nan"}, "must be at least 0 and less than 1");
    each({"lr-warmup-fraction"}, {"-0.1", "1.1", "nan"}, "must be from 0 to 1");
    each({"rotary-percent"}, {"0", "1.5", "nan"}, "must be above 0 and at most 1");
    each({"lr-warmup-iters", "lr-warmup-samples", "iterations-to-skip", "seed", "train-iters", "eval-iters",
          "ckpt-step", "keep-last", "vocab-extra-ids"},
         {"-1"}, "must not be below 0");
    each({"hysteresis", "log-interval", "save-interval", "eval-interval", "exit-interval", "rotary-base",
          "loss-scale-window", "distributed-timeout-minutes", "lr-decay-iters"},
         {"0", "-1"}, "must be at least 1");
    refuses("--iterations-to-skip 3 -2", {"--iterations-to-skip [3, -2]"});
    refuses("--lr-warmup-fraction inf", {"--lr-warmup-fraction inf"});
    refuses("--input-embeddings-multiplier nan", {"--input-embeddings-multiplier", "finite"});
    EXPECT_NO_THROW(
        valid("--adam-eps 0 --lr 0 --clip-grad 0 --sgd-momentum 0 --lr-warmup-fraction 1 --seed 0 "
              "--train-iters 0 --adam-beta1 0.9999999999"));
}

TEST(RunConfigRefuse, SizesGivenAsZero) {
    for (const char* flag : {"--global-batch-size", "--ffn-hidden-size", "--kv-channels", "--encoder-seq-length",
                             "--num-query-groups", "--encoder-num-layers", "--vocab-size", "--train-samples"}) {
        refuses(std::string(flag) + " 0", {flag, "must be at least 1"});
    }
}

TEST(RunConfigRefuse, MoreThreadsThanMakeSense) {
    for (const char* flag : {"--threads", "--num-workers"}) {
        for (const char* n : {"-1", "4097"}) refuses(std::string(flag) + " " + n, {flag, n, "from 0 to 4096"});
    }
    for (const char* n : {"0", "1000000"})
        refuses(std::string("--num-dataset-builder-threads ") + n, {"from 1 to 4096"});
    EXPECT_NO_THROW(valid("--threads 0 --num-workers 0 --num-dataset-builder-threads 4096"));
}

TEST(RunConfigRefuse, FewerSamplesThanOneBatch) {
    refuses("--train-samples 7 --global-batch-size 8", {"--train-samples 7", "one batch of 8"});
    refuses("--train-samples 3 --global-batch-size 8 --rampup-batch-size 4 2 10", {"--train-samples 3", "of 4"});
    EXPECT_NO_THROW(valid("--train-samples 8 --global-batch-size 8"));
    EXPECT_NO_THROW(valid("--train-samples 5 --global-batch-size 8 --rampup-batch-size 4 2 10"));
}

TEST(RunConfigRefuse, ListsWithoutValues) {
    expect_usage_error([] { parsed("--tiktoken-special-tokens --lr 1"); }, {"--tiktoken-special-tokens", "at least 1"});
}

TEST(RunConfigRefuse, AFolderAsConfiguration) {
    const TempFolder folder;
    expect_usage_error([&] { parsed("--config " + (folder / "")); }, {"--config", "is a folder"});
}

TEST(RunConfigRefuse, Layouts) {
    refuses("--tensor-model-parallel-size 3", {"world size 8"}, 8);
    refuses("--tensor-model-parallel-size 8", {"--num-attention-heads 4"}, 8);
    refuses("--ffn-hidden-size 130 --tensor-model-parallel-size 4", {"--ffn-hidden-size 130"}, 4);
    refuses("--context-parallel-size 3 --num-attention-heads 4",
            {"--seq-length 32 must be a multiple of 6", "--context-parallel-size 3", "the next is 36"}, 3);
    refuses("--num-layers-per-virtual-pipeline-stage 1", {"at least 2"});
    const std::string interleaved = "--num-layers 8 --pipeline-model-parallel-size 2 ";
    refuses(interleaved + "--num-layers-per-virtual-pipeline-stage 1 --account-for-embedding-in-pipeline-split",
            {"8 layers and the embedding do not split", "--pipeline-model-parallel-size 2"}, 2);
    refuses(interleaved +
                "--num-layers-per-virtual-pipeline-stage 2 --account-for-embedding-in-pipeline-split "
                "--account-for-loss-in-pipeline-split",
            {"8 layers, the embedding and the loss over 2 pipeline stages make 5 on each"}, 2);
    refuses(interleaved + "--num-layers-per-virtual-pipeline-stage 3", {"8 layers over 2 pipeline stages make 4"}, 2);
    refuses("--no-overlap-p2p-communication --num-layers-per-virtual-pipeline-stage 1 --pipeline-model-parallel-size 2",
            {"at least 3"}, 2);
    const std::string ahead = "--overlap-p2p-communication-warmup-flush ";
    refuses(ahead + "--pipeline-model-parallel-size 2",
            {"--overlap-p2p-communication-warmup-flush", "--num-layers-per-virtual-pipeline-stage"}, 2);
    refuses(ahead + "--no-overlap-p2p-communication --num-layers-per-virtual-pipeline-stage 1 " + interleaved,
            {"without --no-overlap-p2p-communication"}, 2);
    refuses("--global-batch-size 3", {"--global-batch-size 3"});
    refuses(
        "--num-layers-per-virtual-pipeline-stage 1 --pipeline-model-parallel-size 2 --global-batch-size 8 "
        "--microbatch-group-size-per-virtual-pipeline-stage 1",
        {"--microbatch-group-size-per-virtual-pipeline-stage 1", "at least 2"}, 2);
    refuses("--overlap-param-gather", {"--use-distributed-optimizer"});
    const std::string in_step = "--overlap-param-gather-with-optimizer-step";
    refuses(in_step, {in_step.c_str(), "--use-distributed-optimizer and --overlap-param-gather"});
    refuses(in_step + " --use-distributed-optimizer --overlap-grad-reduce",
            {in_step.c_str(), "--overlap-param-gather"});
    refuses(in_step + " --overlap-param-gather --overlap-grad-reduce", {"--use-distributed-optimizer"});
    EXPECT_TRUE(valid(in_step + " --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather")
                    .overlap_param_gather_with_optimizer_step);
    const std::string full = "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1 ";
    refuses("--distribute-saved-activations " + full, {"needs tensor parallelism"});
    refuses("--distribute-saved-activations " + full + "--tensor-model-parallel-size 2 --sequence-parallel",
            {"--distribute-saved-activations", "--sequence-parallel"}, 2);
    refuses("--defer-embedding-wgrad-compute", {"--pipeline-model-parallel-size"});
    refuses("--wgrad-deferral-limit -1", {"--wgrad-deferral-limit -1"});
    refuses("--expert-model-parallel-size 2", {"--num-experts"}, 2);
}

TEST(RunConfigRefuse, WaysToGetOtherRanksKeys) {
    EXPECT_EQ(valid("").cp_comm_type, std::vector<std::string>{"p2p"});
    EXPECT_EQ(valid("--cp-comm-type allgather allgather allgather allgather").cp_comm_type[3], "allgather");
    refuses("--cp-comm-type a2a", {"--cp-comm-type a2a is not built", "p2p or allgather"});
    refuses("--cp-comm-type a2a+p2p", {"--cp-comm-type a2a+p2p is not built"});
    refuses("--cp-comm-type p2p p2p", {"2 types for 4 layers"});
    refuses("--cp-comm-type p2p p2p allgather p2p", {"p2p and allgather", "one for all"});
}

TEST(RunConfigRefuse, Contradictions) {
    refuses("--train-iters 5 --train-samples 10", {"exclude each other"});
    refuses("--enable-cuda-graph --no-cuda-graph", {"exclude each other"});
    refuses("--train-iters 5 --lr-decay-samples 10", {"--lr-decay-samples", "--lr-decay-iters"});
    refuses("--train-samples 50 --lr-warmup-iters 10", {"--lr-warmup-iters"});
    refuses("--train-iters 5 --lr-warmup-fraction 0.1 --lr-warmup-iters 1", {"--lr-warmup-fraction"});
    refuses("--train-iters 5 --rampup-batch-size 2 2 100 --global-batch-size 8", {"--train-samples"});
    refuses("--train-samples 500 --rampup-batch-size 2 2 --global-batch-size 8", {"three values"});
    refuses("--train-samples 500 --rampup-batch-size 8 2 100 --global-batch-size 8", {"never reach"});
    refuses("--fp16 --bf16", {"--fp16 and --bf16"});
    refuses("--lr 1e-4 --min-lr 1e-3", {"--min-lr"});
    refuses("--lr 1 --decoupled-lr 1e-4 --decoupled-min-lr 1e-3", {"--decoupled-min-lr", "larger than --decoupled-lr"});
    refuses("--lr-decay-style WSD --train-iters 10", {"--lr-wsd-decay-iters"});
    refuses("--weight-decay-incr-style linear", {"--start-weight-decay"});
    refuses("--start-weight-decay 0.1", {"--weight-decay-incr-style"});
    refuses("--save /x", {"--save-interval"});
    refuses("--recompute-granularity full", {"--recompute-method"});
    refuses("--recompute-method block", {"--recompute-granularity full"});
    refuses("--recompute-activations --recompute-num-layers 2", {"--recompute-num-layers 2", "leave it out"});
    refuses("--mock-data --data-path a", {"--mock-data"});
    refuses("--data-path a --train-data-path b", {"once"});
    refuses("--fp32-residual-connection", {"--bf16"});
    refuses("--override-opt_param-scheduler --use-checkpoint-opt_param-scheduler", {"exclude each other"});
    refuses("--finetune", {"--load"});
    refuses("--keep-every 10", {"--keep-last"});
}

TEST(RunConfigRunnable, RefusesWhatIsNotBuilt) {
    const std::string rest = "--train-iters 5 --lr 1e-3 --mock-data";
    EXPECT_NO_THROW(require_runnable(valid(rest)));
    const auto refused = [&](const std::string& flags, std::initializer_list<const char*> parts, std::int64_t world = 1,
                             ModelKind kind = ModelKind::gpt) {
        SCOPED_TRACE(flags);
        const RunConfig config = valid(rest + " " + flags, world, kind);
        expect_usage_error([&] { require_runnable(config); }, parts);
    };
    EXPECT_NO_THROW(require_runnable(valid(rest + " --tensor-model-parallel-size 2", 2)));
    refused("--optimizer mylamb3", {"--optimizer mylamb3"});
    refused("--xielu", {"--xielu"});
    refused("--tokenizer-type SFTTokenizer", {"--tokenizer-type SFTTokenizer"});
    refused("--tensorboard-dir /x", {"--tensorboard-dir", "--metrics-file"});
    refused("", {"bert"}, 1, ModelKind::bert);
    expect_usage_error([] { require_runnable(valid("--lr 1 --mock-data")); }, {"--train-iters"});
    expect_usage_error([] { require_runnable(valid("--train-iters 5 --mock-data")); }, {"--lr"});
    expect_usage_error([] { require_runnable(valid("--train-iters 5 --lr 1")); }, {"--data-path"});
}

TEST(RunConfigEnvironment, ReadsTheLauncher) {
    setenv("RANK", "3", 1);
    setenv("WORLD_SIZE", "8", 1);
    setenv("LOCAL_RANK", "1", 1);
    const Environment env = Environment::from_process();
    EXPECT_EQ(env.rank, 3);
    EXPECT_EQ(env.world_size, 8);
    EXPECT_EQ(env.local_rank, 1);
    EXPECT_EQ(parse_run_config(ModelKind::gpt, {}, env).world_size, 8);
    EXPECT_EQ(parse_run_config(ModelKind::gpt, {"--world-size", "4"}, env).world_size, 4);
    setenv("RANK", "9", 1);
    EXPECT_THROW(Environment::from_process(), UsageError);
    setenv("RANK", "x", 1);
    EXPECT_THROW(Environment::from_process(), UsageError);
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    unsetenv("LOCAL_RANK");
    EXPECT_EQ(Environment::from_process().world_size, 1);
}

}  // namespace
}  // namespace tera
