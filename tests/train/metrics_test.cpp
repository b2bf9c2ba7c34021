// The files written beside the console: metrics.jsonl, progress.txt, and the block of timers.
#include "train/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "comm/thread_comm.h"
#include "core/engine.h"
#include "core/error.h"
#include "support/temp_folder.h"
#include "train/progress.h"
#include "train/timers.h"

namespace tera {
namespace {

class InFolder : public testing::Test {
  protected:
    std::string text_of(const std::string& path) {
        std::ifstream in(path);
        std::stringstream out;
        out << in.rdbuf();
        return out.str();
    }
    const TempFolder temp{TempFolder::Where::memory};
    const std::string folder = temp.path();
};

using Metrics = InFolder;
using Progress = InFolder;

StepReport step_at(std::int64_t iteration) {
    StepReport r;
    r.iteration = iteration;
    r.consumed_samples = 8 * iteration;
    r.losses = {{"lm loss", 0.1 * static_cast<double>(iteration)}};
    r.learning_rate = 1e-3;
    r.grad_norm = 0.5;
    r.elapsed_ms = 12.5;
    return r;
}

TEST_F(Metrics, OneObjectPerLine) {
    const std::string path = folder + "/deep/er/metrics.jsonl";
    MetricsFile file(path, 0);
    file.step(step_at(1), 1000);
    StepReport overflow = step_at(2);
    overflow.losses = {{"lm loss", NAN}};
    overflow.grad_norm.reset();
    overflow.loss_scale = 65536;
    overflow.skipped_iterations = 1;
    file.step(overflow, 1000);
    file.evaluation(2, "validation", {{"lm loss", 0.0}});
    // Nothing is held back: the file is complete while it is still open.
    EXPECT_EQ(text_of(path),
              "{\"iteration\":1,\"consumed_samples\":8,\"lm_loss\":0.1,\"learning_rate\":0.001,\"grad_norm\":0.5,"
              "\"loss_scale\":1.0,\"elapsed_ms\":12.5,\"tokens_per_second\":1000.0}\n"
              "{\"iteration\":2,\"consumed_samples\":16,\"lm_loss\":null,\"learning_rate\":0.001,\"grad_norm\":null,"
              "\"loss_scale\":65536.0,\"elapsed_ms\":12.5,\"tokens_per_second\":1000.0,\"skipped_iterations\":1}\n"
              "{\"iteration\":2,\"validation\":{\"lm_loss\":0.0,\"ppl\":1.0}}\n");
}

TEST_F(Metrics, ResumeKeepsWhatTheCheckpointKnowsAndDropsTheRest) {
    const std::string path = folder + "/metrics.jsonl";
    std::string first_two;
    {
        MetricsFile file(path, 0);
        for (int i = 1; i <= 2; ++i) file.step(step_at(i), 1);
        first_two = text_of(path);
        for (int i = 3; i <= 5; ++i) file.step(step_at(i), 1);
    }
    std::ofstream(path, std::ios::app) << "{\"iteration\":6,\"consum";  // cut short by a crash
    {
        MetricsFile file(path, 2);
        EXPECT_EQ(file.dropped(), 4);
        EXPECT_EQ(text_of(path), first_two + "{\"iteration\":2,\"event\":\"resume\"}\n");
        file.step(step_at(3), 1);
    }
    const std::string before = text_of(path);
    for (const char* aside : {".1", ".2"}) {  // a run from the beginning
        std::string told;
        MetricsFile fresh(path, 0, [&](const std::string& line) { told = line; });
        EXPECT_EQ(text_of(path), "");
        EXPECT_NE(told.find(path + aside), std::string::npos) << told;
        fresh.step(step_at(1), 1);
    }
    EXPECT_EQ(text_of(path + ".1"), before);
    EXPECT_FALSE(MetricsFile("", 0).on());
}

TEST_F(Metrics, WhatIsSomethingElseIsNotTouched) {
    const std::string path = folder + "/precious";
    for (const char* text : {"{\"text\": \"a\"}\n", "no JSON", "{\"iteration\":1}\nrest\n{\"iteration\":2}\n"}) {
        std::ofstream(path, std::ios::trunc) << text;
        for (const std::int64_t iteration : {0, 5}) EXPECT_THROW(MetricsFile(path, iteration), UsageError) << text;
        EXPECT_EQ(text_of(path), text);
    }
    MetricsFile null("/dev/null", 3);
    EXPECT_TRUE(null.on());
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(Metrics, AFullDiskEndsTheFileNotTheRun) {
    if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
    std::vector<std::string> told;
    MetricsFile file("/dev/full", 0, [&](const std::string& line) { told.push_back(line); });
    for (int i = 1; i <= 3; ++i) file.step(step_at(i), 1);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_NE(told[0].find("/dev/full"), std::string::npos);
    EXPECT_FALSE(file.on());
}

TEST_F(Metrics, AFolderThatCannotBeWrittenIsTheUsersToFix) {
    std::ofstream(folder + "/file") << "x";
    EXPECT_THROW(MetricsFile(folder + "/file/metrics.jsonl", 0), UsageError);
}

TEST_F(Progress, StartsAndSavesOneLineEach) {
    ProgressLog::Settings settings{folder, LogFormat::core_0_12, 4, "17", 1e12, 0};
    ProgressLog log(settings);
    log.starting();
    log.saved(100, 3e12, 1.5e9);
    std::istringstream lines(text_of(folder + "/progress.txt"));
    std::string first, second;
    std::getline(lines, first);
    std::getline(lines, second);
    EXPECT_EQ(first.substr(19), "\tJob ID: 17\t# GPUs: 4\tStarting job");
    EXPECT_EQ(second.substr(19, 23), "\tJob ID: 17\t# GPUs: 4\tS");
    EXPECT_NE(second.find("\tSaved checkpoint\tIteration: 100\tJob throughput: "), std::string::npos);
    EXPECT_NE(second.find("\tFloating-point operations: 3.00e+12\tTokens (in billions): 1.50"), std::string::npos);
}

TEST_F(Progress, CumulativeFiguresStartWithTheFirstJobOfTheSameSize) {
    const std::string path = folder + "/progress.txt";
    std::ofstream(path)
        << "2025-04-01 10:00:00\tJob ID: 1\t# GPUs: 2\tStarting job\n"
           "2025-04-01 11:00:00\tJob ID: 1\t# GPUs: 2\tSaved checkpoint\tIteration: 10\tJob throughput: "
           "1.0 TFLOP/s/GPU\tCumulative throughput: 1.0 TFLOP/s/GPU\tFloating-point operations: "
           "5.00e+15\tTokens (in billions): 1.00\n"
           "2025-04-01 12:00:00\tJob ID: 2\t# GPUs: 4\tStarting job\n"
           "2025-04-01 13:00:00\tJob ID: 3\t# GPUs: 4\tStarting job\n";
    const ProgressHistory history = read_progress(path, 4);
    EXPECT_EQ(history.start.text(), "2025-04-01 12:00:00");
    EXPECT_EQ(history.start_flops, 5e15);
    EXPECT_EQ(read_progress(path, 2).start.seconds, 0);
    EXPECT_EQ(read_progress(folder + "/none", 2).start.seconds, 0);
}

TEST(Timers, BlocksAreExact) {
    EXPECT_EQ(timer_block({{"evaluate", {1.234, 5.678}}, {"save-checkpoint", {10, 10}}}, "minmax"),
              "(min, max) time across ranks (ms):\n    evaluate .......................................: (1.23, 5.68)\n"
              "    save-checkpoint ................................: (10.00, 10.00)");
    EXPECT_EQ(timer_block({{"evaluate", {1.234, 5.678}}}, "max"),
              "max time across ranks (ms):\n    evaluate .......................................: 5.68");
    EXPECT_EQ(timer_block({{"evaluate", {1.234, 5.678}}}, "all"),
              "times across ranks (ms):\n  evaluate:\n     rank  0: 1.23\n     rank  1: 5.68");
    EXPECT_EQ(timer_block({{"evaluate", {-1, 5.678}}}, "minmax"),
              "(min, max) time across ranks (ms):\n    evaluate .......................................: (5.68, 5.68)");
    EXPECT_EQ(timer_block({}, "minmax"), "");
}

TEST(Timers, OnlyThoseUpToTheLevelRunAndReportingSetsThemBack) {
    Timers timers(1);
    { Timers::Scope scope(timers, "evaluate"); }
    { Timers::Scope scope(timers, "forward-backward", 1); }
    { Timers::Scope scope(timers, "forward-compute", 2); }
    Arena arena;
    ThreadPool pool(1);
    const std::unique_ptr<Comm> alone = make_self_comm();
    const auto report = [&](const std::vector<std::string>& names) {
        return timers.report(*alone, Engine().exec(arena, pool), names, "minmax", 10);
    };
    const std::string block = report({"forward-backward", "forward-compute"});
    EXPECT_NE(block.find("forward-backward"), std::string::npos);
    EXPECT_EQ(block.find("forward-compute"), std::string::npos);
    EXPECT_EQ(report({"forward-backward"}), "");
    EXPECT_NE(report({"evaluate"}), "");
}

TEST(Timers, ReportsAreOfAllRanksThatRanThem) {
    run_on_threads(3, [](Comm& world) {
        Timers timers(0);
        { Timers::Scope scope(timers, world.rank() == 0 ? "evaluate" : "save-checkpoint"); }
        Arena arena;
        ThreadPool pool(1);
        const std::string block =
            timers.report(world, Engine().exec(arena, pool), {"evaluate", "save-checkpoint", "optimizer"}, "all");
        EXPECT_TRUE(std::regex_match(block, std::regex("times across ranks \\(ms\\):\n"
                                                       "  evaluate:\n     rank  0: [0-9.]+\n"
                                                       "  save-checkpoint:\n     rank  1: [0-9.]+\n"
                                                       "     rank  2: [0-9.]+")))
            << block;
    });
}

}  // namespace
}  // namespace tera
