// `teratron bench step`: its flags, and a small run on the CPU from end to end.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/process.h"
#include "support/words.h"

namespace tera::test {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::vector<std::string> tiny(const std::vector<std::string>& more) {
    std::vector<std::string> all = words(
        "bench step gpt --num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 16 "
        "--max-position-embeddings 16 --micro-batch-size 2 --global-batch-size 4 --tokenizer-type NullTokenizer "
        "--vocab-size 99 --make-vocab-size-divisible-by 4 --device cpu --threads 2");
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

/// A dynamic loss scale begins at 2^32, where nothing but the scale would be updated.
TEST(Bench, TimedStepsInHalfPrecisionUpdateSomething) {
    const TemporaryFolder folder;
    const std::string json = (folder / "r.json").string();
    const Outcome run = teratron(tiny({"--fp16", "--warmup", "1", "--steps", "5", "--lr", "1e-2", "--json", json}));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto result = nlohmann::json::parse(read_file(json));
    EXPECT_EQ(result["skipped_steps"], 0);
    EXPECT_LT(result["last_loss"].get<double>(), result["first_loss"].get<double>());
}

TEST(Bench, AnEarlierResultSurvivesAMistake) {
    const TemporaryFolder folder;
    const std::string json = (folder / "r.json").string();
    write_file(json, "old");
    EXPECT_EQ(teratron(tiny({"--json", json, "--no-such-flag"})).exit_code, 2);
    EXPECT_EQ(read_file(json), "old");
    EXPECT_EQ(teratron(tiny({"--json", (folder / "new.json").string(), "--no-such-flag"})).exit_code, 2);
    EXPECT_FALSE(std::filesystem::exists(folder / "new.json"));
    EXPECT_EQ(teratron(tiny({"--json="})).exit_code, 2);
}

TEST(Bench, WhatItLeavesOutIsSaid) {
    const Outcome run = teratron(tiny({"--load", "/nowhere", "--steps", "1", "--warmup", "1"}));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(contains(run.err, "--load is left out")) << run.err;
}

TEST(Bench, HelpNamesItsFlags) {
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"bench", "--help"}, {"bench", "step", "-h"}, {"bench", "step", "gpt", "--help"}}) {
        const Outcome run = teratron(words);
        EXPECT_EQ(run.exit_code, 0);
        for (const char* flag : {"--warmup", "--steps", "--json", "--kernels"}) EXPECT_TRUE(contains(run.out, flag));
    }
}

TEST(Bench, RefusesInOneLine) {
    const std::pair<std::vector<std::string>, const char*> wrong[] = {
        {{"bench"}, "what to measure?"},
        {{"bench", "epoch"}, "what to measure?"},
        {{"bench", "step"}, "which model?"},
        {{"bench", "step", "--num-layers", "2"}, "which model?"},
        {{"bench", "step", "gtp"}, "gtp"},
        {{"bench", "step", "bert"}, "not built yet"},
        {tiny({"--steps", "0"}), "--steps 0"},
        {tiny({"--warmup=-1"}), "--warmup -1"},
        {tiny({"--steps"}), "--steps needs a value"},
        {tiny({"--steps", "many"}), "--steps"},
        {tiny({"--num-layer-s", "2"}), "--num-layer-s"},
        {tiny({"--global-batch-size", "3"}), "batch"},
        {tiny({"--json", "/no/such/folder/x.json"}), "/no/such/folder/x.json: cannot be written"},
        {tiny({"--tensor-model-parallel-size", "2"}), "world size"},
    };
    for (const auto& [words, part] : wrong) {
        const Outcome run = teratron(words);
        EXPECT_EQ(run.exit_code, 2) << part;
        EXPECT_EQ(line_count(run.err), 1u) << run.err;
        EXPECT_TRUE(contains(run.err, part)) << run.err;
        EXPECT_EQ(run.out, "") << part;
    }
}

TEST(Bench, DocumentsAreTreatedAsTheFlagsSay) {
    const auto loss = [](const std::vector<std::string>& flags) {
        std::vector<std::string> words{"--warmup", "1", "--steps", "1"};
        words.insert(words.end(), flags.begin(), flags.end());
        const Outcome run = teratron(tiny(words));
        EXPECT_EQ(run.exit_code, 0) << run.err;
        return run.out.substr(run.out.find("  loss "), 40);
    };
    // Each changes the loss beside the others: that documents end somewhere changes it too, whoever heeds it.
    const std::vector<std::string> all{"--reset-attention-mask", "--reset-position-ids", "--eod-mask-loss"};
    for (const std::string& without : all) {
        std::vector<std::string> others = all;
        std::erase(others, without);
        EXPECT_NE(loss(all), loss(others)) << without;
    }
}

TEST(Bench, ASmallRunOnTheCpuTellsEverything) {
    TemporaryFolder folder;
    const std::string path = (folder / "step.json").string();
    const Outcome run = teratron(tiny({"--warmup", "1", "--steps=3", "--kernels", "--json", path}));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.err, "");
    for (const char* part : {"CPU, 2 threads",
                             "2 micro-batches of 2 x 16 = 64 tokens",
                             "tokens/s",
                             "median of 3 steps",
                             "ms per step",
                             "MFU, causal count",
                             "MFU, full count",
                             "unknown",
                             "first step",
                             "forward-compute",
                             "backward-compute",
                             "optimizer-inner-step",
                             "not traced: the step ran on the CPU",
                             "GEMM 1024^3 f32",
                             "copy",
                             "qkv",
                             "proj",
                             "fc1",
                             "fc2",
                             "lm head",
                             "weights",
                             "gradients",
                             "moments",
                             "activations, kept",
                             "sum"}) {
        EXPECT_TRUE(contains(run.out, part)) << part << "\n" << run.out;
    }

    const nlohmann::json json = nlohmann::json::parse(read_file(path));
    EXPECT_EQ(json["device"], "CPU");
    EXPECT_EQ(json["batch"]["tokens_per_step"], 64);
    EXPECT_EQ(json["batch"]["micro_batches"], 2);
    EXPECT_EQ(json["step_seconds"].size(), 3u);
    EXPECT_TRUE(json["mfu_causal"].is_null());
    EXPECT_TRUE(json["kernels"].is_null());
    EXPECT_NEAR(json["tokens_per_s"].get<double>() * json["median_step_ms"].get<double>() * 1e-3, 64, 1e-6);
    // Vocabulary 99 + 1 = 100; embedding 100*32 + 16*32, per layer 12*32^2 + 13*32, last norm 64.
    const std::int64_t parameters = 100 * 32 + 16 * 32 + 2 * (12 * 32 * 32 + 13 * 32) + 64;
    EXPECT_EQ(json["model"]["parameters"], parameters);
    EXPECT_EQ(json["model"]["padded_vocab"], 100);
    const nlohmann::json& memory = json["memory_bytes"];
    EXPECT_EQ(memory["weights"], 4 * parameters);
    EXPECT_EQ(memory["gradients"], 4 * parameters);
    EXPECT_EQ(memory["main weights"], 0);  // in fp32 the values are the main weights
    EXPECT_EQ(memory["moments"], 8 * parameters);
    EXPECT_GT(memory["activations, kept"], 0);
    std::int64_t sum = 0;
    for (const auto& [name, bytes] : memory.items()) sum += name == "sum" ? 0 : bytes.get<std::int64_t>();
    EXPECT_EQ(memory["sum"], sum);
    ASSERT_EQ(json["ceilings"]["gemms"].size(), 5u);
    for (const nlohmann::json& gemm : json["ceilings"]["gemms"]) {
        for (const char* way : {"forward_tflops", "dgrad_tflops", "wgrad_tflops"}) EXPECT_GT(gemm[way], 0) << gemm;
    }
    const nlohmann::json& start = json["start_s"];
    EXPECT_LE(start["loaded"], start["device"]);
    EXPECT_LE(start["model"], start["first_step"]);
    // Random tokens out of 100: the first loss is that of a guess.
    EXPECT_NEAR(json["first_loss"].get<double>(), std::log(100.0), 0.3);
    const double causal = json["tflops_causal"], full = json["tflops_full"];
    EXPECT_LT(causal, full);
}

}  // namespace
}  // namespace tera::test
