// The exact bytes of every console line, pinned by the examples in the format descriptions.
#include "train/log_lines.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "core/error.h"
#include "train/format_text.h"

namespace tera {
namespace {

class LogLines : public testing::Test {
  protected:
    void SetUp() override {
        setenv("TZ", "UTC", 1);
        tzset();
        report.time = {1743508800, 123456};  // 2025-04-01 12:00:00
        report.iteration = 100;
        report.train_iters = 500;
        report.consumed_samples = 6400;
        report.elapsed_ms = 512.34;
        report.learning_rate = 1.5e-4;
        report.global_batch_size = 64;
        report.losses = {{"lm loss", 7.123456}};
        report.grad_norm = 1.234;
        report.num_zeros = 0.0;
        report.seq_length = 1024;
    }
    StepReport report;
};

TEST_F(LogLines, Core012) {
    EXPECT_EQ(training_line(LogFormat::core_0_12, report),
              " [2025-04-01 12:00:00] iteration      100/     500 | consumed samples:         6400 | elapsed time per "
              "iteration (ms): 512.3 | learning rate: 1.500000E-04 | global batch size:    64 | lm loss: 7.123456E+00 "
              "| loss scale: 1.0 | grad norm: 1.234 | num zeros: 0.0 | number of skipped iterations:   0 | number of "
              "nan iterations:   0 |");
}

TEST_F(LogLines, Core012WithEveryOptionalField) {
    report.skipped_samples = 32;
    report.throughput = 123.45;
    report.decoupled_learning_rate = 3e-5;
    report.losses = {{"lm loss", 7.123456}, {"load_balancing_loss", 0.5}};
    report.num_zeros = 12.0;
    report.params_norm = 98.7654;
    EXPECT_EQ(training_line(LogFormat::core_0_12, report),
              " [2025-04-01 12:00:00] iteration      100/     500 | consumed samples:         6400 | skipped samples:  "
              "         32 | elapsed time per iteration (ms): 512.3 | throughput per GPU (TFLOP/s/GPU): 123.5 | "
              "learning rate: 1.500000E-04 | decoupled learning rate: 3.000000E-05 | global batch size:    64 | lm "
              "loss: 7.123456E+00 | load_balancing_loss: 5.000000E-01 | loss scale: 1.0 | grad norm: 1.234 | num "
              "zeros: 12.0 | params norm: 98.765 | number of skipped iterations:   0 | number of nan iterations:   0 "
              "|");
}

TEST_F(LogLines, AFullyOverflowedFp16Interval) {
    // Loss and gradient norm vanish: nothing was averaged, nothing was measured.
    report.iteration = 2;
    report.consumed_samples = 576;
    report.learning_rate = 0;
    report.global_batch_size = 288;
    report.losses = {{"lm loss", 0.0}};
    report.loss_scale = 2147483648.0;
    report.grad_norm.reset();
    report.num_zeros.reset();
    report.skipped_iterations = 1;
    report.fp16 = true;
    EXPECT_EQ(
        training_line(LogFormat::legacy, report),
        " iteration        2/     500 | consumed samples:          576 | elapsed time per iteration (ms): 512.3 | "
        "learning rate: 0.000E+00 | global batch size:   288 | loss scale: 2147483648.0 | number of skipped "
        "iterations:   1 | number of nan iterations:   0 |");
}

TEST_F(LogLines, NotANumberIsNotPrinted) {
    report.losses = {{"lm loss", NAN}};
    EXPECT_EQ(training_line(LogFormat::core_0_12, report).find("lm loss"), std::string::npos);
    report.losses = {{"lm loss", 0.0}};
    EXPECT_EQ(training_line(LogFormat::core_0_12, report).find("lm loss"), std::string::npos);
    EXPECT_NE(training_line(LogFormat::core_head, report).find("lm loss: 0.000000E+00 |"), std::string::npos);
}

TEST(FormatText, NotANumberHasNoSign) {
    EXPECT_EQ(format_text("%.6E %.1f", -NAN, NAN), "NAN nan");
    EXPECT_EQ(format_text("%.1f", -1.0), "-1.0");
}

TEST(FormatText, ReportsHaveOneWayToSayThings) {
    EXPECT_EQ(size_text(std::size_t{3} << 29), "1.50 GiB");
    EXPECT_EQ(size_text(std::size_t{5} << 20), "5.00 MiB");
    EXPECT_EQ(size_text(512.0), "0.50 KiB");
    EXPECT_EQ(size_text(std::size_t{0}), "0");
    EXPECT_EQ(grouped(999), "999");
    EXPECT_EQ(grouped(1234567), "1,234,567");
    EXPECT_EQ(grouped(-123456), "-123,456");
    EXPECT_EQ(grouped(12345, ' '), "12 345");
    EXPECT_EQ(report_line("  sum", "7"), "  sum                       7\n");
    EXPECT_EQ(report_line(std::string(40, 'x'), "7"), std::string(40, 'x') + " 7\n");
}

TEST_F(LogLines, CoreHeadHasMicrosecondsAndZerosOnlyWhenAsked) {
    EXPECT_EQ(training_line(LogFormat::core_head, report),
              " [2025-04-01 12:00:00.123456] iteration      100/     500 | consumed samples:         6400 | elapsed "
              "time per iteration (ms): 512.3 | learning rate: 1.500000E-04 | global batch size:    64 | lm loss: "
              "7.123456E+00 | loss scale: 1.0 | grad norm: 1.234 | number of skipped iterations:   0 | number of nan "
              "iterations:   0 |");
    report.num_zeros_asked = true;
    EXPECT_NE(training_line(LogFormat::core_head, report).find(" num zeros: 0.0 |"), std::string::npos);
}

TEST_F(LogLines, Legacy) {
    report.throughput = 100;  // did not exist
    report.num_zeros_asked = true;
    report.params_norm = 12.3;
    EXPECT_EQ(
        training_line(LogFormat::legacy, report),
        " iteration      100/     500 | consumed samples:         6400 | elapsed time per iteration (ms): 512.3 | "
        "learning rate: 1.500E-04 | global batch size:    64 | lm loss: 7.123456E+00 | loss scale: 1.0 | grad "
        "norm: 1.234 | num zeros: 0.0 | params norm: 12.300 | number of skipped iterations:   0 | number of nan "
        "iterations:   0 |");
}

TEST_F(LogLines, JscPatch) {
    // 96 samples in 7.2310 s are 13.276 samples per second.
    report.iteration = 10;
    report.train_iters = 3125000;
    report.consumed_samples = 960;
    report.elapsed_ms = 7231.0;
    report.learning_rate = 4.438e-7;
    report.global_batch_size = 96;
    report.jsc_tflops = 101.54;
    EXPECT_EQ(
        training_line(LogFormat::jsc, report),
        " iteration       10/ 3125000 | consumed samples:          960 | elapsed time per iteration (s): 7.2310 | "
        "learning rate: 4.438E-07 | global batch size:    96 | lm loss: 7.123456E+00 | loss scale: 1.0 | grad "
        "norm: 1.234 | number of skipped iterations:   0 | number of nan iterations:   0 | samples per second: "
        "13.276 | TFLOPs: 101.54 |");
}

TEST_F(LogLines, Swiss) {
    report.throughput = 50.04;
    report.world_size = 4;
    EXPECT_EQ(training_line(LogFormat::swiss, report),
              " [2025-04-01 12:00:00] iteration      100/     500 | consumed samples:         6400 | consumed tokens: "
              "0.007B | elapsed time per iteration (ms): 512.3 | eta: 0:03:24 | tokens/sec/gpu: 31978.8 | throughput "
              "per GPU (TFLOP/s/GPU): 50.0 | learning rate: 1.500000E-04 | global batch size:    64 | lm loss: "
              "7.123456E+00 | loss scale: 1.0 | grad norm: 1.234 | number of skipped iterations:   0 | number of nan "
              "iterations:   0 |");
    report.num_zeros = 3;
    report.elapsed_ms = 1000;
    report.train_iters = 100 + 86400 * 2 + 3661;
    const std::string line = training_line(LogFormat::swiss, report);
    EXPECT_NE(line.find(" eta: 2 days, 1:01:01 |"), std::string::npos) << line;
    EXPECT_NE(line.find(" num zeros: 3.0 |"), std::string::npos) << line;
    report.train_iters = 100 + 86400;
    EXPECT_NE(training_line(LogFormat::swiss, report).find(" eta: 1 day, 0:00:00 |"), std::string::npos);
}

TEST_F(LogLines, VersionOne) {
    EXPECT_EQ(training_line(LogFormat::v1, report),
              " iteration      100/     500 | elapsed time per iteration (ms): 512.3 | learning rate: 1.500E-04 | lm "
              "loss: 7.123456E+00 |");
    report.fp16 = true;
    report.loss_scale = 65536;
    EXPECT_EQ(training_line(LogFormat::v1, report),
              " iteration      100/     500 | elapsed time per iteration (ms): 512.3 | learning rate: 1.500E-04 | lm "
              "loss: 7.123456E+00 | loss scale: 65536.0 |");
}

TEST_F(LogLines, Evaluation) {
    const auto lines = evaluation_lines(LogFormat::core_0_12, EvalPlace::training, 1000, {{"lm loss", 5.25}});
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[1],
              " validation loss at iteration 1000 | lm loss value: 5.250000E+00 | lm loss PPL: 1.905663E+02 | ");
    EXPECT_EQ(lines[0], std::string(lines[1].size() + 1, '-'));
    EXPECT_EQ(lines[2], lines[0]);
    auto text = [](LogFormat format, EvalPlace place) {
        return evaluation_lines(format, place, 7, {{"lm loss", 25.0}})[1];
    };
    EXPECT_EQ(text(LogFormat::core_0_12, EvalPlace::end_validation),
              " validation loss at iteration 7 on validation set | lm loss value: 2.500000E+01 | lm loss PPL: "
              "4.851652E+08 | ");
    EXPECT_EQ(text(LogFormat::core_0_12, EvalPlace::end_test).substr(0, 44),
              " validation loss at iteration 7 on test set ");
    EXPECT_EQ(text(LogFormat::legacy, EvalPlace::end_validation).substr(0, 53),
              " validation loss at the end of training for val data ");
    EXPECT_EQ(text(LogFormat::legacy, EvalPlace::end_test).substr(0, 54),
              " validation loss at the end of training for test data ");
}

TEST_F(LogLines, StartUp) {
    const LayoutReport layout{16, 2, 1, 4, 2};
    EXPECT_EQ(world_size_line(LogFormat::core_0_12, layout),
              "using world size: 16, data-parallel size: 2, context-parallel size: 1, hierarchical context-parallel "
              "sizes: Nonetensor-model-parallel size: 4, encoder-tensor-model-parallel size: 0, "
              "pipeline-model-parallel size: 2, encoder-pipeline-model-parallel size: 0");
    EXPECT_EQ(world_size_line(LogFormat::legacy, layout),
              "using world size: 16, data-parallel-size: 2, tensor-model-parallel size: 4, pipeline-model-parallel "
              "size: 2 ");
    EXPECT_EQ(world_size_line(LogFormat::core_head, layout),
              "using world size: 16, data-parallel size: 2, context-parallel size: 1, hierarchical context-parallel "
              "sizes: None, tensor-model-parallel size: 4, pipeline-model-parallel size: 2");
    EXPECT_EQ(micro_batches_line(LogFormat::core_0_12, 36),
              "INFO:megatron.core.num_microbatches_calculator:setting number of microbatches to constant 36");
    EXPECT_EQ(micro_batches_line(LogFormat::legacy, 36), "setting number of micro-batches to constant 36");
    EXPECT_EQ(parameter_dtype_line("float16"), "using torch.float16 for parameters ...");
    EXPECT_EQ(padded_vocab_line(50257, 51200), " > padded vocab (size: 50257) with 943 dummy tokens (new size: 51200)");
    EXPECT_EQ(parameters_line(3, 1, 941594624),
              " > number of parameters on (tensor, pipeline) model parallel rank (3, 1): 941594624");
    EXPECT_EQ(datetime_line("after megatron is initialized", report.time),
              "[after megatron is initialized] datetime: 2025-04-01 12:00:00 ");
    EXPECT_EQ(target_size_lines({146484375, 5863680, 11520}),
              (std::vector<std::string>{" > datasets target sizes (minimum size):", "    train:      146484375",
                                        "    validation: 5863680", "    test:       11520"}));
}

TEST_F(LogLines, Memory) {
    EXPECT_EQ(
        memory_line(0, 100, {1048576.0 * 12.5, 1048576.0 * 100, 1048576.0 * 128, 1048576.0 * 256.25}),
        "[Rank 0] (after 100 iterations) memory (MB) | allocated: 12.5 | max allocated: 100.0 | reserved: 128.0 | "
        "max reserved: 256.25");
    // GPT-2 124M: 12 layers of 768, vocabulary 50304, tied.
    TheoreticalModel gpt2{12, 768, 12, 12, 64, 3072, 50304, false, false, false, 1, 1, 1};
    EXPECT_EQ(theoretical_memory_lines(gpt2),
              (std::vector<std::string>{"Number of parameters in transformer block in billions:  0.08",
                                        "Number of parameters in embedding layers in billions: 0.04",
                                        "Total number of parameters in billions: 0.12",
                                        "Number of parameters in most loaded shard in billions: 0.1236",
                                        "Theoretical memory footprints: weight and optimizer=2121.85 MB"}));
    gpt2.pipeline = 2;
    EXPECT_EQ(theoretical_memory_lines(gpt2)[4], "Number of parameters in other shards in billions: 0.0425");
}

TEST_F(LogLines, MemoryOfActivations) {
    TheoreticalModel gpt2{12, 768, 12, 12, 64, 3072, 50304, false, false, false, 2, 1, 1, true, 1024, 4, 8, 0};
    const auto from = [&](std::size_t begin) {
        const std::vector<std::string> lines = theoretical_memory_lines(gpt2);
        return std::vector<std::string>(lines.begin() + static_cast<std::ptrdiff_t>(begin), lines.end());
    };
    EXPECT_EQ(from(4), (std::vector<std::string>{"Activation memory footprint per transformer layer: 51.0 MB",
                                                 "Theoretical memory footprints: weight and optimizer=1060.92 MB, "
                                                 "activation=1012.52 MB, total=2073.44 MB\n"}));
    gpt2.pipeline = 4, gpt2.micro_batches = 3;
    EXPECT_EQ(from(5), (std::vector<std::string>{"Activation memory footprint per transformer layer: 51.0 MB",
                                                 "Number of in-flight microbatches: 3",
                                                 "Theoretical memory footprints: weight and optimizer=513.93 MB, "
                                                 "activation=463.55 MB, total=977.47 MB\n"}));
    gpt2.virtual_stages = 3;
    EXPECT_EQ(from(6), (std::vector<std::string>{"Memory penalty from interleaved schedule: 1.25",
                                                 "Number of in-flight microbatches: 5",
                                                 "Theoretical memory footprints: weight and optimizer=513.93 MB, "
                                                 "activation=772.58 MB, total=1286.50 MB\n"}));
}

TEST_F(LogLines, Progress) {
    EXPECT_EQ(progress_prefix(report.time, "4711", 64), "2025-04-01 12:00:00\tJob ID: 4711\t# GPUs: 64\t");
    const ProgressReport progress{500, 399.96, 380.01, 1.2345e20, 2.1, 8123.46, 8000.04};
    EXPECT_EQ(progress_saved(LogFormat::core_0_12, progress),
              "Saved checkpoint\tIteration: 500\tJob throughput: 400.0 TFLOP/s/GPU\tCumulative throughput: 380.0 "
              "TFLOP/s/GPU\tFloating-point operations: 1.23e+20\tTokens (in billions): 2.10");
    EXPECT_EQ(progress_saved(LogFormat::swiss, progress),
              progress_saved(LogFormat::core_0_12, progress) +
                  "\tJob token throughput: 8123.5 Tokens/s/GPU\tCumulative token throughput: 8000.0 Tokens/s/GPU");
}

TEST_F(LogLines, TimeStampReadsBack) {
    const auto back = TimeStamp::parse(report.time.text());
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->seconds, report.time.seconds);
    EXPECT_FALSE(TimeStamp::parse("yesterday").has_value());
}

TEST(LogFormat, NamesAreThoseOfTheFlag) {
    EXPECT_EQ(parse_log_format("core-0.12"), LogFormat::core_0_12);
    EXPECT_EQ(parse_log_format("swiss"), LogFormat::swiss);
    EXPECT_THROW(parse_log_format("core"), UsageError);
}

}  // namespace
}  // namespace tera
