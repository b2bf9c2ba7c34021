// The loss curve: what is read from a metrics file, and that the picture shows it.
#include <gtest/gtest.h>

#include <cmath>

#include "cli/process.h"
#include "core/error.h"
#include "train/loss_curve.h"

namespace tera::test {
namespace {

std::string training_line(int64_t iteration, double loss) {
    return cat("{\"iteration\":", iteration, ",\"consumed_samples\":", 8 * iteration, ",\"lm_loss\":", loss,
               ",\"learning_rate\":", 0.001, ",\"grad_norm\":1.5,\"tokens_per_second\":1000.0}\n");
}

std::string validation_line(int64_t iteration, double loss) {
    return cat("{\"iteration\":", iteration, ",\"validation\":{\"lm_loss\":", loss, ",\"ppl\":", std::exp(loss),
               "}}\n");
}

MetricsLog read(const std::string& content) {
    TemporaryFolder folder;
    write_file(folder / "metrics.jsonl", content);
    return read_metrics((folder / "metrics.jsonl").string());
}

TEST(LossCurve, ReadsTrainingAndValidationLines) {
    const MetricsLog log = read(training_line(10, 5) + validation_line(10, 5.5) + training_line(20, 4));
    ASSERT_EQ(log.training_loss.size(), 2u);
    ASSERT_EQ(log.validation_loss.size(), 1u);
    EXPECT_EQ(log.training_loss[1].iteration, 20);
    EXPECT_EQ(log.training_loss[1].value, 4);
    EXPECT_EQ(log.validation_loss[0].value, 5.5);
    EXPECT_EQ(log.learning_rate[0].value, 0.001);
    EXPECT_TRUE(log.resumed_at.empty());
}

TEST(LossCurve, LinesOvertakenAfterARestartAreDropped) {
    const MetricsLog log = read(training_line(10, 5) + training_line(20, 4) + validation_line(20, 4.5) +
                                training_line(30, 3) + training_line(20, 3.9) + training_line(30, 2.9));
    ASSERT_EQ(log.training_loss.size(), 3u);
    EXPECT_EQ(log.training_loss[1].value, 3.9);
    EXPECT_EQ(log.training_loss[2].value, 2.9);
    EXPECT_TRUE(log.validation_loss.empty());
    EXPECT_EQ(log.resumed_at, std::vector<int64_t>{20});
}

TEST(LossCurve, AResumeEventKeepsWhatTheCheckpointHolds) {
    const MetricsLog log =
        read(training_line(10, 5) + training_line(20, 4) + validation_line(20, 4.5) + training_line(30, 3) +
             "{\"iteration\":20,\"event\":\"resume\"}\n" + training_line(30, 2.9));
    ASSERT_EQ(log.training_loss.size(), 3u);
    EXPECT_EQ(log.training_loss[2].value, 2.9);
    EXPECT_EQ(log.validation_loss.size(), 1u);
    EXPECT_EQ(log.resumed_at, std::vector<int64_t>{21});
}

TEST(LossCurve, ALineCutShortByACrashIsPassedOver) {
    const std::string cut = training_line(20, 4).substr(0, 17);
    EXPECT_EQ(read(training_line(10, 5) + cut).training_loss.size(), 1u);
    EXPECT_THROW(read(training_line(10, 5) + cut + "\n" + training_line(20, 4)), UsageError);
}

TEST(LossCurve, ALossThatIsNoNumberIsAGap) {
    const MetricsLog log =
        read(training_line(1, 5) + "{\"iteration\":2,\"lm_loss\":null,\"learning_rate\":0.1}\n" + training_line(3, 4));
    ASSERT_EQ(log.training_loss.size(), 3u);
    EXPECT_TRUE(std::isnan(log.training_loss[1].value));
    const std::string svg = loss_curve_svg(log, "gap");
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(LossCurve, OnePointAndConstantLossStillDraw) {
    for (const std::string& content : {training_line(1, 5), training_line(1, 2) + training_line(2, 2)}) {
        const std::string svg = loss_curve_svg(read(content), "flat");
        EXPECT_EQ(svg.find("nan"), std::string::npos);
        EXPECT_EQ(svg.find("inf"), std::string::npos);
    }
}

TEST(LossCurve, AMillionLinesMakeASmallPictureThatKeepsTheSpike) {
    MetricsLog log;
    for (int64_t i = 1; i <= 1'000'000; ++i) {
        log.training_loss.push_back({i, i == 612'345 ? 99.0 : 3.0});
        log.learning_rate.push_back({i, 1e-4});
    }
    const std::string svg = loss_curve_svg(log, "long");
    EXPECT_LT(svg.size(), 200'000u);
    // The axis is fitted to 3..99 with 5 % of air, so the spike lies at 64 + 316 * 4.8 / 105.6 from the top.
    const double air = 0.05 * 96, top = 64, bottom = 380;
    const double y = top + (bottom - top) * air / (96 + air + 3);
    char text[16];
    std::snprintf(text, sizeof text, " %.1fL", y);
    EXPECT_NE(svg.find(text), std::string::npos) << text;
}

TEST(Board, WritesThePictureAndAOneLineSummary) {
    TemporaryFolder folder;
    write_file(folder / "m.jsonl", training_line(10, 5) + validation_line(10, 5.5) + training_line(20, 4));
    const Outcome run = teratron({"board", "--metrics", (folder / "m.jsonl").string(), "--svg",
                                  (folder / "loss.svg").string(), "--title", "a <run> & more"});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(run.out.find("training loss 5 to 4, best validation loss 5.5 at iteration 10"), std::string::npos);
    const std::string svg = read_file(folder / "loss.svg");
    EXPECT_EQ(svg.rfind("<svg", 0), 0u);
    EXPECT_NE(svg.find("a &lt;run&gt; &amp; more"), std::string::npos);
    EXPECT_NE(svg.find("validation loss"), std::string::npos);
    EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
}

TEST(Board, BadInputIsOneLineAndExitTwo) {
    TemporaryFolder folder;
    const std::string good = (folder / "good").string(), bad = (folder / "bad").string(), svg = (folder / "s").string();
    write_file(good, training_line(1, 5));
    write_file(bad, "not json\n");
    write_file(folder / "none", validation_line(1, 5));
    const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
        {{"board", "--metrics", bad, "--svg", svg}, "bad:1: not a metrics line"},
        {{"board", "--metrics", good + ".not", "--svg", svg}, "No such file"},
        {{"board", "--metrics", (folder / "none").string(), "--svg", svg}, "no training line"},
        {{"board", "--metrics", good, "--svg", (folder / "no/such/s").string()}, "No such file"},
        {{"board", "--metrics", good}, "--svg"},
        {{"board", "--metrics", good, "--svg", svg, "--titel", "x"}, "--title"},
    };
    for (const auto& [words, expected] : cases) {
        const Outcome run = teratron(words);
        EXPECT_EQ(run.exit_code, 2) << expected;
        EXPECT_EQ(line_count(run.err), 1u) << run.err;
        EXPECT_NE(run.err.find(expected), std::string::npos) << run.err;
        EXPECT_FALSE(std::filesystem::exists(svg));
    }
}

}  // namespace
}  // namespace tera::test
