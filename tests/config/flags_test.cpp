// The list of flags, pinned: a name or a status that changes must change tests/config/flags.txt in the same commit.
// To write the file anew: TERA_WRITE_FLAGS=1 test_config --gtest_filter=Flags.ListIsPinned
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "config/fields.h"
#include "core/error.h"

namespace tera {
namespace {

const std::string list_path = std::string(TERA_SOURCE_DIR) + "/tests/config/flags.txt";

std::string pinned_line(const Field& field) {
    std::string out;
    for (const std::string& name : field.names) out += (out.empty() ? "--" : ", --") + name;
    out += " : " + std::string(flag_status_name(field.status));
    if (!field.later_choices.empty()) {
        out += "; later:";
        for (const std::string& choice : field.later_choices) out += " " + choice;
    }
    return out;
}

TEST(Flags, ListIsPinned) {
    std::vector<std::string> lines;
    for (const Field& field : fields()) lines.push_back(pinned_line(field));
    std::sort(lines.begin(), lines.end());
    std::string now;
    for (const std::string& line : lines) now += line + "\n";
    if (std::getenv("TERA_WRITE_FLAGS") != nullptr) std::ofstream(list_path) << now;
    std::ifstream file(list_path);
    std::stringstream pinned;
    pinned << file.rdbuf();
    EXPECT_EQ(pinned.str(), now);
}

// All training flags that any script of the five systems passes.
const char* const system_flags[] = {"adam-beta1",
                                    "adam-beta2",
                                    "adam-eps",
                                    "ademamix-alpha",
                                    "ademamix-alpha-warmup",
                                    "ademamix-beta3",
                                    "ademamix-beta3-warmup",
                                    "alpha",
                                    "async-save",
                                    "attention-dropout",
                                    "batch-size",
                                    "bf16",
                                    "checkpoint-activations",
                                    "ckpt-assume-constant-structure",
                                    "ckpt-format",
                                    "ckpt-fully-parallel-load",
                                    "clip-grad",
                                    "context-parallel-size",
                                    "cross-entropy-loss-fusion",
                                    "data-cache-path",
                                    "data-impl",
                                    "data-path",
                                    "dataloader-type",
                                    "ddp-bucket-size",
                                    "DDP-impl",
                                    "decoder-seq-length",
                                    "decrease-batch-size-if-needed",
                                    "defer-embedding-wgrad-compute",
                                    "disable-bias-linear",
                                    "dist-ckpt-strictness",
                                    "distribute-checkpointed-activations",
                                    "distributed-backend",
                                    "distributed-timeout-minutes",
                                    "encoder-seq-length",
                                    "eod-mask-loss",
                                    "eval-interval",
                                    "eval-iters",
                                    "exit-duration-in-mins",
                                    "exit-signal-handler",
                                    "ffn-hidden-size",
                                    "fp16",
                                    "global-batch-size",
                                    "goldfish-h",
                                    "goldfish-k",
                                    "goldfish-loss",
                                    "group-query-attention",
                                    "hidden-dropout",
                                    "hidden-size",
                                    "hysteresis",
                                    "init-method-std",
                                    "initial-loss-scale",
                                    "kv-channels",
                                    "load",
                                    "log-batch-size-to-tensorboard",
                                    "log-interval",
                                    "log-memory-to-tensorboard",
                                    "log-params-norm",
                                    "log-progress",
                                    "log-throughput",
                                    "log-timers-to-tensorboard",
                                    "log-validation-ppl-to-tensorboard",
                                    "loss-scale-window",
                                    "lr",
                                    "lr-decay-iters",
                                    "lr-decay-samples",
                                    "lr-decay-style",
                                    "lr-warmup-fraction",
                                    "lr-warmup-iters",
                                    "lr-warmup-samples",
                                    "lr-wsd-decay-iters",
                                    "lr-wsd-decay-samples",
                                    "lr-wsd-decay-style",
                                    "main-grads-dtype",
                                    "make-vocab-size-divisible-by",
                                    "manual-gc",
                                    "manual-gc-interval",
                                    "max-position-embeddings",
                                    "merge-file",
                                    "micro-batch-size",
                                    "min-loss-scale",
                                    "min-lr",
                                    "mock-data",
                                    "model-parallel-size",
                                    "no-check-for-nan-in-loss-and-grad",
                                    "no-log-loss-scale-to-tensorboard",
                                    "no-masked-softmax-fusion",
                                    "no-position-embedding",
                                    "no-rope-fusion",
                                    "normalization",
                                    "num-attention-heads",
                                    "num-dataset-builder-threads",
                                    "num-layers",
                                    "num-layers-per-virtual-pipeline-stage",
                                    "num-query-groups",
                                    "num-workers",
                                    "optimizer",
                                    "overlap-grad-reduce",
                                    "overlap-p2p-communication-warmup-flush",
                                    "overlap-param-gather",
                                    "override-opt_param-scheduler",
                                    "pipeline-model-parallel-size",
                                    "position-embedding-type",
                                    "qk-layernorm",
                                    "qknorm-impl",
                                    "rampup-batch-size",
                                    "recompute-activations",
                                    "recompute-granularity",
                                    "reset-attention-mask",
                                    "reset-position-ids",
                                    "rope-scaling-factor",
                                    "rotary-base",
                                    "save",
                                    "save-interval",
                                    "seed",
                                    "seq-length",
                                    "sequence-parallel",
                                    "split",
                                    "swiglu",
                                    "tensor-model-parallel-size",
                                    "tensorboard-dir",
                                    "tensorboard-queue-size",
                                    "tokenizer-model",
                                    "tokenizer-type",
                                    "train-iters",
                                    "train-samples",
                                    "transformer-impl",
                                    "trigger-path",
                                    "untie-embeddings-and-output-weights",
                                    "use-distributed-optimizer",
                                    "use-flash-attn",
                                    "use-mcore-models",
                                    "use-precision-aware-optimizer",
                                    "use-rope-scaling",
                                    "vocab-extra-ids",
                                    "vocab-file",
                                    "wandb-exp-name",
                                    "wandb-project",
                                    "wandb-save-dir",
                                    "warmup",
                                    "weight-decay",
                                    "wgrad-deferral-limit",
                                    "xielu"};

TEST(Flags, EveryFlagOfTheFiveSystemsIsKnown) {
    std::set<std::string> names;
    for (const Field& field : fields()) names.insert(field.names.begin(), field.names.end());
    EXPECT_EQ(std::size(system_flags), 142u);
    for (const char* flag : system_flags) EXPECT_EQ(names.count(flag), 1u) << flag;
}

TEST(Flags, NamesAndDestinationsAreUnique) {
    std::set<std::string> names, dests;
    for (const Field& field : fields()) {
        for (const std::string& name : field.names) EXPECT_TRUE(names.insert(name).second) << name;
        EXPECT_TRUE(dests.insert(field.dest).second) << field.dest;
    }
}

TEST(Flags, EveryFlagSaysWhatItIsAbout) {
    for (const Field& field : fields()) {
        const std::string name = field.names[0];
        EXPECT_FALSE(field.help.empty() && field.reason.empty()) << name;
        EXPECT_TRUE(field.status == FlagStatus::implemented || !field.reason.empty()) << name;
        EXPECT_FALSE(field.group.empty()) << name;
        for (const std::string& choice : field.later_choices) {
            EXPECT_NE(std::find(field.choices.begin(), field.choices.end(), choice), field.choices.end())
                << name << " " << choice;
        }
    }
}

// Defaults of the reference, a sample over all types; the whole block is in arguments_test.
TEST(Flags, DefaultsPrintAsPythonDoes) {
    const RunConfig untouched;
    const auto text = [&](const std::string& dest) {
        for (const Field& field : fields()) {
            if (field.dest == dest) return python_text(untouched, field);
        }
        return std::string("no such flag");
    };
    EXPECT_EQ(text("num_layers"), "None");
    EXPECT_EQ(text("num_query_groups"), "1");
    EXPECT_EQ(text("adam_eps"), "1e-08");
    EXPECT_EQ(text("initial_loss_scale"), "4294967296");
    EXPECT_EQ(text("loss_scale_window"), "1000");
    EXPECT_EQ(text("clip_grad"), "1.0");
    EXPECT_EQ(text("add_bias_linear"), "True");
    EXPECT_EQ(text("no_save_optim"), "None");
    EXPECT_EQ(text("use_cpu_initialization"), "None");
    EXPECT_EQ(text("swiglu"), "False");
    EXPECT_EQ(text("profile_ranks"), "[0]");
    EXPECT_EQ(text("iterations_to_skip"), "[]");
    EXPECT_EQ(text("cp_comm_type"), "['p2p']");
    EXPECT_EQ(text("rampup_batch_size"), "None");
    EXPECT_EQ(text("wandb_project"), "");
    EXPECT_EQ(text("load"), "None");
    EXPECT_EQ(text("fp8_wgrad"), "True");
    EXPECT_EQ(text("lr_warmup_iters"), "0");
}

}  // namespace
}  // namespace tera
