// Runs the trainer in this process on a tiny model and made-up data, and reads what it printed and wrote.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "core/error.h"
#include "core/transfer.h"
#include "support/temp_folder.h"
#include "support/words.h"
#include "train/host_rows.h"
#include "train/trainer.h"

namespace tera {

/// Everything a finished (or stopped) run left behind.
struct RunRecord {
    bool finished = false;
    RunState state;
    std::vector<std::string> lines;
    std::vector<double> losses;                          ///< of the metrics file, training steps only
    std::vector<nlohmann::json> metrics;                 ///< all its lines
    std::map<std::string, std::vector<char>> weights;    ///< bytes of every parameter
    std::map<std::string, std::vector<char>> optimizer;  ///< bytes of every optimizer tensor

    bool printed(const std::string& part) const { return count(part) > 0; }
    int count(const std::string& part) const {
        int n = 0;
        for (const std::string& line : lines) n += line.find(part) != std::string::npos;
        return n;
    }
    /// The value after `field` in the n-th training line.
    std::string field(const std::string& name, std::size_t n) const {
        std::size_t seen = 0;
        for (const std::string& line : lines) {
            if (line.find(" iteration ") == std::string::npos ||
                line.find("| number of skipped") == std::string::npos) {
                continue;
            }
            if (seen++ != n) continue;
            const std::size_t at = line.find(" " + name + ":");
            if (at == std::string::npos) return "";
            const std::size_t begin = at + name.size() + 2;
            std::string value = line.substr(begin, line.find(" |", begin) - begin);
            value.erase(0, value.find_first_not_of(' '));
            return value;
        }
        return "no such line";
    }
};

inline std::vector<char> bytes_of(const Exec& exec, const SplitTensor& t) {
    const HostView view(exec, t);
    const auto* const begin = reinterpret_cast<const char*>(view.tensor().data);
    return {begin, begin + view.tensor().bytes()};
}

class TrainerRuns : public testing::Test {
  protected:
    /// A model of a few thousand weights: 2 layers of 32, 2 heads, sequences of 16, batches of 4 in micro-batches of 2.
    std::string base() const {
        return "--num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --max-position-embeddings 16 "
               "--micro-batch-size 2 --global-batch-size 4 --lr 1e-2 --tokenizer-type NullTokenizer "
               "--vocab-size 100 --log-interval 1 --eval-iters 0 --num-workers 0 --threads 2 --device " +
               device + " --metrics-file " + folder + "/metrics.jsonl ";
    }

    RunConfig config_of(const std::string& flags) const {
        RunConfig config = parse_run_config(ModelKind::gpt, words(base() + data + flags), Environment{});
        validate_and_derive(config, 1);
        return config;
    }

    /// on_line sees every printed line as it comes.
    RunRecord run(const std::string& flags, const std::function<void(const std::string&)>& on_line = {}) {
        RunRecord record;
        TrainerOptions options;
        options.print = [&](const std::string& line) {
            record.lines.push_back(line);
            if (on_line) on_line(line);
        };
        options.process_start -= process_age;
        Trainer trainer(config_of(flags), options);
        record.finished = trainer.run();
        record.state = trainer.state();
        for (const Param* p : trainer.params()) record.weights[p->name] = bytes_of(trainer.exec(), p->value);
        for (const OptimizerTensor& t : trainer.optimizer().state()) {
            record.optimizer[t.param + "/" + t.kind] = bytes_of(trainer.exec(), t.tensor);
        }
        std::ifstream in(folder + "/metrics.jsonl");
        for (std::string line; std::getline(in, line);) {
            record.metrics.push_back(nlohmann::json::parse(line));
            const auto& json = record.metrics.back();
            if (json.contains("lm_loss"))
                record.losses.push_back(json["lm_loss"].is_null() ? -1 : json["lm_loss"].get<double>());
        }
        return record;
    }

    /// The message of the UsageError (or Error) that a run ends with.
    std::string failure(const std::string& flags) {
        try {
            run(flags);
        } catch (const std::exception& e) {
            return e.what();
        }
        return "no failure";
    }

    static void expect_same_training(const RunRecord& a, const RunRecord& b) {
        EXPECT_EQ(a.losses, b.losses);
        EXPECT_EQ(a.state.iteration, b.state.iteration);
        EXPECT_EQ(a.state.consumed_train_samples, b.state.consumed_train_samples);
        EXPECT_EQ(a.state.schedule_samples, b.state.schedule_samples);
        ASSERT_FALSE(a.weights.empty());
        for (const auto& [name, bytes] : a.weights) EXPECT_TRUE(bytes == b.weights.at(name)) << name;
        for (const auto& [name, bytes] : a.optimizer) EXPECT_TRUE(bytes == b.optimizer.at(name)) << name;
    }

    /// k iterations, stop, N - k iterations = N iterations: losses, weights and optimizer, bit for bit.
    void expect_resume_is_no_stop(const std::string& flags) {
        const RunRecord whole = run(flags);
        const std::string save = "--save " + folder + "/ck --load " + folder + "/ck --save-interval 100 ";
        const RunRecord first = run(flags + save + "--exit-interval 5");
        EXPECT_FALSE(first.finished);
        EXPECT_EQ(first.state.iteration, 5);
        EXPECT_EQ(first.losses, std::vector<double>(whole.losses.begin(), whole.losses.begin() + 5));
        const RunRecord second = run(flags + save);
        EXPECT_TRUE(second.finished);
        EXPECT_TRUE(second.printed("successfully loaded checkpoint"));
        expect_same_training(whole, second);
        EXPECT_EQ(whole.state.consumed_valid_samples, second.state.consumed_valid_samples);
        std::filesystem::remove_all(folder + "/ck");
    }

    const TempFolder temp{TempFolder::Where::memory};
    const std::string folder = temp.path();
    std::string data = "--mock-data ";
    std::string device = "cpu";
    std::chrono::seconds process_age{0};  ///< how long ago the process is said to have begun
};

}  // namespace tera
