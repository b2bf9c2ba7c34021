#include "config/config_dump.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <sstream>

#include "config/fields.h"
#include "core/error.h"
#include "support/words.h"

namespace tera {
namespace {

RunConfig valid(const std::string& flags) {
    const std::string line =
        "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 "
        "--micro-batch-size 2"
        " --train-iters 10 --lr 1e-4 " +
        flags;
    RunConfig config = parse_run_config(ModelKind::gpt, words(line), Environment{});
    validate_and_derive(config, 1);
    return config;
}

TEST(PythonReal, PrintsAsRepr) {
    const std::pair<double, const char*> cases[] = {{0.1, "0.1"},
                                                    {1.0, "1.0"},
                                                    {1e-5, "1e-05"},
                                                    {6e-5, "6e-05"},
                                                    {0.0001, "0.0001"},
                                                    {1e-8, "1e-08"},
                                                    {1e16, "1e+16"},
                                                    {1e15, "1000000000000000.0"},
                                                    {4294967296.0, "4294967296.0"},
                                                    {0.0, "0.0"},
                                                    {-0.5, "-0.5"},
                                                    {123456.789, "123456.789"},
                                                    {1.5e-7, "1.5e-07"},
                                                    {1e100, "1e+100"}};
    for (const auto& [value, text] : cases) EXPECT_EQ(python_real(value), text);
    EXPECT_EQ(python_real(1.0 / 3), "0.3333333333333333");
}

TEST(ConfigDump, PrintsTheBlockOfMegatron) {
    const std::string block =
        arguments_block(valid("--bf16 --use-flash-attn --data-path a b --initial-loss-scale 4096"));
    std::istringstream lines(block);
    std::string line, previous;
    std::getline(lines, line);
    EXPECT_EQ(line, "------------------------ arguments ------------------------");
    for (const char* wanted : {"  adam_beta1 ...................................... 0.9",
                               "  num_layers ...................................... 4",
                               "  params_dtype .................................... torch.bfloat16",
                               "  use_flash_attn .................................. True",
                               "  data_path ....................................... ['a', 'b']",
                               "  split ........................................... 969, 30, 1",
                               "  initial_loss_scale .............................. 4096.0",
                               "  num_query_groups ................................ 1",
                               "  barrier_with_L1_time ............................ True",
                               "  load ............................................ None",
                               "  no_load_optim ................................... None",
                               "  ffn_hidden_size ................................. 256"}) {
        EXPECT_NE(block.find(std::string("\n") + wanted + "\n"), std::string::npos) << wanted;
    }
    const auto lower = [](std::string text) {
        std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
        return text;
    };
    int count = 0;
    while (std::getline(lines, line) && line.rfind("  ", 0) == 0) {
        const std::string name = lower(line.substr(2, line.find(' ', 2) - 2));
        EXPECT_LE(previous, name);
        previous = name;
        ++count;
    }
    EXPECT_EQ(line, "-------------------- end of arguments ---------------------");
    EXPECT_GT(count, 400);
}

TEST(ConfigDump, JsonKeepsTypes) {
    const nlohmann::json json = config_to_json(valid("--swiglu --data-path a b --adam-eps 1e-6 --use-flash-attn"));
    EXPECT_EQ(json["num_layers"], 4);
    EXPECT_EQ(json["swiglu"], true);
    EXPECT_EQ(json["adam_eps"], 1e-6);
    EXPECT_EQ(json["data_path"], (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(json["load"].is_null());
    EXPECT_TRUE(json["train_samples"].is_null());
    EXPECT_EQ(json["use_flash_attn"], true);
    EXPECT_EQ(json["model_kind"], "gpt");
    EXPECT_EQ(nlohmann::json::parse(json.dump()), json);
}

/// Name and verdict of every change: "+" accepted, "-" refused.
std::string verdicts(const std::string& before, const std::string& after) {
    std::string out;
    for (const ConfigChange& change : diff_configs(config_to_json(valid(before)), valid(after))) {
        out += (out.empty() ? "" : " ") + change.name + (change.refused ? "-" : "+");
        EXPECT_NE(change.old_value, change.new_value) << change.name;
    }
    return out;
}

TEST(ConfigDiff, NamesWhatChangedAndJudges) {
    EXPECT_EQ(verdicts("", ""), "");
    EXPECT_EQ(verdicts("", "--log-interval 5 --save /x --save-interval 3"), "--log-interval+ --save+ --save-interval+");
    EXPECT_EQ(verdicts("", "--qk-layernorm"), "--qk-layernorm-");
    EXPECT_EQ(verdicts("", "--swiglu"), "--ffn-hidden-size- --swiglu-");
    EXPECT_EQ(verdicts("", "--lr 2e-4"), "--lr-");
    EXPECT_EQ(verdicts("", "--lr 2e-4 --override-opt_param-scheduler"), "--lr+ --override-opt_param-scheduler+");
    EXPECT_EQ(verdicts("", "--lr 2e-4 --use-checkpoint-opt_param-scheduler"),
              "--lr+ --use-checkpoint-opt_param-scheduler+");
    EXPECT_EQ(verdicts("", "--seed 2"), "--seed+");
    EXPECT_EQ(verdicts("", "--train-iters 20"), "--train-iters-");
    EXPECT_EQ(verdicts("--lr-decay-iters 10", "--lr-decay-iters 10 --train-iters 20"), "--train-iters+");
    EXPECT_EQ(verdicts("--lr-decay-style constant", "--lr-decay-style constant --train-iters 20"), "--train-iters+");
}

TEST(ConfigDiff, ShowsValuesAsPythonDoes) {
    const std::vector<ConfigChange> changes = diff_configs(config_to_json(valid("")), valid("--lr 2e-5 --data-path a"));
    ASSERT_EQ(changes.size(), 3u);
    EXPECT_EQ(changes[0].name, "--data-path");
    EXPECT_EQ(changes[0].old_value, "None");
    EXPECT_EQ(changes[0].new_value, "['a']");
    EXPECT_EQ(changes[1].old_value, "0.0001");
    EXPECT_EQ(changes[1].new_value, "2e-05");
}

TEST(ConfigDiff, AFlagThatTurnsSomethingOffIsShownAsTheFlag) {
    const std::vector<ConfigChange> changes = diff_configs(config_to_json(valid("")), valid("--no-data-sharding"));
    ASSERT_EQ(changes.size(), 1u);
    EXPECT_EQ(changes[0].name, "--no-data-sharding");
    EXPECT_EQ(changes[0].old_value, "False");
    EXPECT_EQ(changes[0].new_value, "True");
}

TEST(ConfigDiff, TheLossScaleIsTheCheckpoints) {
    const auto reason = [](const std::string& more) {
        return diff_configs(config_to_json(valid("--fp16")), valid("--fp16 --initial-loss-scale 64 " + more))
            .at(0)
            .reason;
    };
    EXPECT_EQ(reason(""), "the loss scale goes on as the checkpoint has it");
    EXPECT_EQ(reason("--no-load-optim"), "training goes on with the new value");
}

TEST(ConfigDiff, SaysWhatChanges) {
    const auto reason = [](const std::string& flags) {
        const std::vector<ConfigChange> changes = diff_configs(config_to_json(valid("")), valid(flags));
        return changes.size() == 1 ? changes[0].reason : cat(changes.size(), " changes");
    };
    for (const char* flag : {"--reset-position-ids", "--reset-attention-mask", "--eod-mask-loss", "--vocab-file v"})
        EXPECT_EQ(reason(flag), "training goes on with the new value") << flag;
    EXPECT_EQ(reason("--seed 7"), "the order of samples changes from here on");
}

TEST(ConfigDiff, TakesTheModelFromTheCheckpoint) {
    const nlohmann::json json =
        config_to_json(valid("--swiglu --ffn-hidden-size 96 --lr 5e-4 --norm-epsilon 1e-6 --vocab-size 100"));
    std::vector<std::string> words = {"--micro-batch-size", "1", "--seq-length", "16",
                                      "--train-iters",      "3", "--num-layers", "5"};
    RunConfig config = parse_run_config(ModelKind::gpt, words, Environment{});
    take_model_arguments(json, config);
    validate_and_derive(config, 1);
    EXPECT_TRUE(config.swiglu);
    EXPECT_EQ(config.hidden_size, 64);
    EXPECT_EQ(config.ffn_hidden_size, 96);
    EXPECT_EQ(config.norm_epsilon, 1e-6);
    EXPECT_EQ(config.vocab_size, 100);
    EXPECT_EQ(config.num_layers, 5);  // what the user gives stays
    EXPECT_FALSE(config.lr.has_value());
    const auto said = [&](const char* line) {
        return std::count(config.notices.begin(), config.notices.end(), line) == 1;
    };
    EXPECT_TRUE(said("Setting hidden_size to 64 from checkpoint"));
    EXPECT_TRUE(said("Setting swiglu to True from checkpoint"));
    for (const std::string& line : config.notices) EXPECT_EQ(line.find("Setting num_layers"), std::string::npos);
}

TEST(ConfigDiff, TakesTheSequenceLengthFromTheCheckpoint) {
    const nlohmann::json json = config_to_json(valid("--hidden-dropout 0.25"));
    RunConfig config = parse_run_config(ModelKind::gpt, {"--micro-batch-size", "1"}, Environment{});
    take_model_arguments(json, config);
    validate_and_derive(config, 1);
    EXPECT_EQ(config.seq_length, valid("").seq_length);
    EXPECT_EQ(config.hidden_dropout, 0.25);
    EXPECT_EQ(config.attention_dropout, 0.1);
}

TEST(ConfigDiff, AdvisesWhatIsNotYetGiven) {
    const nlohmann::json json = config_to_json(valid(""));
    const auto reason = [&](const std::string& more) {
        return diff_configs(json, valid("--ffn-hidden-size 96" + more)).at(0).reason;
    };
    EXPECT_NE(reason("").find("or --use-checkpoint-args"), std::string::npos);
    EXPECT_NE(reason(" --use-checkpoint-args --load x").find("leave the flag out"), std::string::npos);
}

}  // namespace
}  // namespace tera
