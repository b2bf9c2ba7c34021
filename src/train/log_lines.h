// Every line of the console, as pure functions of the numbers in it. The exact bytes matter: the users' scripts parse
// them. The shape follows --log-format:
//
//   core-0.12   default: time stamp, learning rate %.6E, number of zeros
//   core-head   newest core: microseconds, loss printed when ≥ 0
//   legacy      2021 to 2023: no time stamp, learning rate %.3E
//   jsc         legacy with elapsed seconds, samples per second and TFLOPs (patch of the JSC benchmark)
//   swiss       core with consumed tokens, eta and tokens/sec/gpu (fork of the Swiss AI initiative)
//   v1          version 1: iteration, elapsed time, learning rate, losses, loss scale
//
// Left out on purpose, because it does not happen here and no script of the users reads it: the lines about compiling
// the dataset index builder and the fused kernels, and "> initializing torch distributed ...". Kept although the words
// are Megatron's: "using torch.float32 for parameters ..." and "time to initialize megatron", which people grep for.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tera {

enum class LogFormat { core_0_12, core_head, legacy, jsc, swiss, v1 };

/// The value of --log-format; UsageError unless it is one of the six.
LogFormat parse_log_format(const std::string& name);

/// Is this one of the formats without time stamps, in use until 2023?
bool is_old(LogFormat format);

/// A moment of wall-clock time.
struct TimeStamp {
    std::time_t seconds = 0;
    int microseconds = 0;
    static TimeStamp now();
    std::string text() const;  ///< local time, "2025-04-01 12:00:00"
    static std::optional<TimeStamp> parse(const std::string& text);
};

using NamedLosses = std::vector<std::pair<std::string, double>>;

/// The numbers of one training log line.
struct StepReport {
    TimeStamp time;
    std::int64_t iteration = 0, train_iters = 0;
    std::int64_t consumed_samples = 0, skipped_samples = 0;
    double elapsed_ms = 0;             ///< per iteration, since the last line
    std::optional<double> throughput;  ///< TFLOP/s per rank: --log-throughput
    double jsc_tflops = 0;             ///< by the formula of the JSC patch
    double learning_rate = 0;
    std::optional<double> decoupled_learning_rate;
    std::int64_t global_batch_size = 0;
    NamedLosses losses;  ///< averages over the iterations that were not skipped
    double loss_scale = 1;
    bool fp16 = false;
    std::optional<double> grad_norm;  ///< absent when the last iteration was skipped
    std::optional<double> num_zeros;
    bool num_zeros_asked = false;  ///< --log-num-zeros-in-grad
    std::optional<double> params_norm;
    std::int64_t skipped_iterations = 0, nan_iterations = 0;
    std::int64_t seq_length = 0, world_size = 1;
};

std::string training_line(LogFormat format, const StepReport& report);

// ---- start-up
// ---------------------------------------------------------------------------------------------------------

struct LayoutReport {
    std::int64_t world = 1, data = 1, context = 1, tensor = 1, pipeline = 1;
};
std::string world_size_line(LogFormat format, const LayoutReport& layout);
std::string micro_batches_line(LogFormat format, std::int64_t count);
std::string parameter_dtype_line(const std::string& dtype);  ///< "float32" -> "using torch.float32 for parameters ..."
std::string padded_vocab_line(std::int64_t size, std::int64_t padded);
std::string parameters_line(std::int64_t tensor_rank, std::int64_t pipeline_rank, std::int64_t count);
/// "[text] datetime: 2025-04-01 12:00:00 ", trailing space included.
std::string datetime_line(const std::string& text, TimeStamp time);

struct TargetSizes {
    std::int64_t train = 0, validation = 0, test = 0;
};
std::vector<std::string> target_size_lines(const TargetSizes& sizes);

// ---- evaluation
// -------------------------------------------------------------------------------------------------------

/// exp(min(20, loss)).
double perplexity(double loss);
/// Where an evaluation stands: "iteration 100" while training, "iteration 100 on validation set" at the end.
enum class EvalPlace { training, end_validation, end_test };
/// The framed line: dashes, text, dashes.
std::vector<std::string> evaluation_lines(LogFormat format, EvalPlace place, std::int64_t iteration,
                                          const NamedLosses& losses);

// ---- memory
// -----------------------------------------------------------------------------------------------------------

/// Bytes; printed in MiB as raw floats.
struct MemoryReport {
    double allocated = 0, max_allocated = 0, reserved = 0, max_reserved = 0;
};
std::string memory_line(std::int64_t rank, std::int64_t iterations, const MemoryReport& memory);

/// What Megatron's own estimate needs.
struct TheoreticalModel {
    std::int64_t layers = 0, hidden = 0, heads = 0, query_groups = 0, kv_channels = 0, ffn = 0, padded_vocab = 0;
    bool gated = false, untied = false, distributed_optimizer = false;
    std::int64_t tensor = 1, pipeline = 1, data = 1;
    /// For activations, which are reckoned with sequence parallelism and selective recompute only.
    bool with_activations = false;
    std::int64_t sequence = 0, micro_batch = 0, micro_batches = 0, virtual_stages = 0;  ///< 0: not interleaved
};
/// Megatron's estimate for half-precision weights: 18 bytes per parameter (6 + 12/data with the distributed optimizer);
/// activations after table 2 of "Reducing Activation Recomputation in Large Transformer Models" (arXiv 2205.05198).
std::vector<std::string> theoretical_memory_lines(const TheoreticalModel& model);

// ---- progress.txt
// -----------------------------------------------------------------------------------------------------

/// What a line of progress.txt begins with: time, job, ranks.
std::string progress_prefix(TimeStamp time, const std::string& job_id, std::int64_t gpus);

struct ProgressReport {
    std::int64_t iteration = 0;
    double job_tflops = 0, cumulative_tflops = 0;  ///< per rank and second
    double floating_point_operations = 0;
    double tokens_in_billions = 0;
    double job_tokens = 0, cumulative_tokens = 0;  ///< per rank and second; swiss only
};
std::string progress_saved(LogFormat format, const ProgressReport& report);

}  // namespace tera
