#include "train/log_lines.h"

#include <sys/time.h>

#include <algorithm>
#include <cmath>

#include "config/fields.h"
#include "core/error.h"
#include "train/format_text.h"

namespace tera {
namespace {

using std::int64_t;

long long as_ll(int64_t n) { return static_cast<long long>(n); }

/// Seconds as Python prints a timedelta: "1:02:03", "2 days, 1:02:03".
std::string timedelta(int64_t seconds) {
    const int64_t days = seconds / 86400, rest = seconds % 86400;
    std::string text;
    if (days > 0) text = format_text("%lld day%s, ", as_ll(days), days == 1 ? "" : "s");
    return text + format_text("%lld:%02lld:%02lld", as_ll(rest / 3600), as_ll(rest / 60 % 60), as_ll(rest % 60));
}

std::string elapsed_fields(LogFormat format, const StepReport& r) {
    if (format == LogFormat::jsc) return format_text(" elapsed time per iteration (s): %.4f |", r.elapsed_ms / 1000);
    std::string line = format_text(" elapsed time per iteration (ms): %.1f |", r.elapsed_ms);
    if (format == LogFormat::swiss) {
        const double seconds = r.elapsed_ms / 1000;
        const double tokens = static_cast<double>(r.global_batch_size * r.seq_length);
        const double per_rank = seconds > 0 ? tokens / (seconds * static_cast<double>(r.world_size)) : 0;
        const double left = static_cast<double>(std::max<int64_t>(0, r.train_iters - r.iteration)) * seconds;
        line += " eta: " + timedelta(static_cast<int64_t>(left)) + " |";
        line += format_text(" tokens/sec/gpu: %.1f |", per_rank);
    }
    if (r.throughput && !is_old(format)) {
        line += format_text(" throughput per GPU (TFLOP/s/GPU): %.1f |", *r.throughput);
    }
    return line;
}

std::string loss_fields(LogFormat format, const StepReport& r) {
    std::string line;
    for (const auto& [name, value] : r.losses) {
        const bool shown = format == LogFormat::core_head ? value >= 0 : value > 0;
        if (shown) line += " " + name + format_text(": %.6E |", value);
    }
    if (format != LogFormat::v1 || r.fp16) line += format_text(" loss scale: %.1f |", r.loss_scale);
    return line;
}

std::string num_zeros_field(LogFormat format, const StepReport& r) {
    if (!r.num_zeros) return "";
    const bool shown = format == LogFormat::core_0_12 ? true
                       : format == LogFormat::swiss   ? *r.num_zeros != 0
                                                      : r.num_zeros_asked;
    if (!shown) return "";
    if (is_old(format)) return format_text(" num zeros: %.1f |", *r.num_zeros);
    return " num zeros: " + python_real(*r.num_zeros) + " |";
}

std::string v1_line(const StepReport& r) {
    return format_text(" iteration %8lld/%8lld |", as_ll(r.iteration), as_ll(r.train_iters)) +
           elapsed_fields(LogFormat::v1, r) + format_text(" learning rate: %.3E |", r.learning_rate) +
           loss_fields(LogFormat::v1, r);
}

}  // namespace

LogFormat parse_log_format(const std::string& name) {
    static const std::pair<const char*, LogFormat> names[] = {
        {"core-0.12", LogFormat::core_0_12}, {"core-head", LogFormat::core_head},
        {"legacy", LogFormat::legacy},       {"jsc", LogFormat::jsc},
        {"swiss", LogFormat::swiss},         {"v1", LogFormat::v1}};
    for (const auto& [text, format] : names) {
        if (name == text) return format;
    }
    usage_error("--log-format ", name, " is unknown; choose core-0.12, core-head, legacy, jsc, swiss or v1");
}

bool is_old(LogFormat format) {
    return format == LogFormat::legacy || format == LogFormat::jsc || format == LogFormat::v1;
}

TimeStamp TimeStamp::now() {
    timeval t{};
    gettimeofday(&t, nullptr);
    return {t.tv_sec, static_cast<int>(t.tv_usec)};
}

std::string TimeStamp::text() const {
    std::tm local{};
    localtime_r(&seconds, &local);
    char buffer[32];
    std::strftime(buffer, sizeof buffer, "%Y-%m-%d %H:%M:%S", &local);
    return buffer;
}

std::optional<TimeStamp> TimeStamp::parse(const std::string& text) {
    std::tm local{};
    if (strptime(text.c_str(), "%Y-%m-%d %H:%M:%S", &local) == nullptr) return std::nullopt;
    local.tm_isdst = -1;
    return TimeStamp{std::mktime(&local), 0};
}

std::string training_line(LogFormat format, const StepReport& r) {
    if (format == LogFormat::v1) return v1_line(r);
    std::string line;
    if (!is_old(format)) {
        line += " [" + r.time.text();
        if (format == LogFormat::core_head) line += format_text(".%06d", r.time.microseconds);
        line += "]";
    }
    line += format_text(" iteration %8lld/%8lld |", as_ll(r.iteration), as_ll(r.train_iters));
    line += format_text(" consumed samples: %12lld |", as_ll(r.consumed_samples));
    if (format == LogFormat::swiss) {
        const double tokens = static_cast<double>(r.consumed_samples) * static_cast<double>(r.seq_length);
        line += format_text(" consumed tokens: %.3fB |", tokens / 1e9);
    }
    if (r.skipped_samples > 0 && !is_old(format)) {
        line += format_text(" skipped samples: %12lld |", as_ll(r.skipped_samples));
    }
    line += elapsed_fields(format, r);
    line += is_old(format) ? format_text(" learning rate: %.3E |", r.learning_rate)
                           : format_text(" learning rate: %.6E |", r.learning_rate);
    if (r.decoupled_learning_rate && !is_old(format)) {
        line += format_text(" decoupled learning rate: %.6E |", *r.decoupled_learning_rate);
    }
    line += format_text(" global batch size: %5lld |", as_ll(r.global_batch_size));
    line += loss_fields(format, r);
    if (r.grad_norm) line += format_text(" grad norm: %.3f |", *r.grad_norm);
    line += num_zeros_field(format, r);
    if (r.params_norm) line += format_text(" params norm: %.3f |", *r.params_norm);
    line += format_text(" number of skipped iterations: %3lld |", as_ll(r.skipped_iterations));
    line += format_text(" number of nan iterations: %3lld |", as_ll(r.nan_iterations));
    if (format == LogFormat::jsc) {
        const double seconds = r.elapsed_ms / 1000;
        const double rate = seconds > 0 ? static_cast<double>(r.global_batch_size) / seconds : 0;
        line += format_text(" samples per second: %.3f | TFLOPs: %.2f |", rate, r.jsc_tflops);
    }
    return line;
}

std::string world_size_line(LogFormat format, const LayoutReport& l) {
    if (is_old(format)) {
        return cat("using world size: ", l.world, ", data-parallel-size: ", l.data,
                   ", tensor-model-parallel size: ", l.tensor, ", pipeline-model-parallel size: ", l.pipeline, " ");
    }
    const std::string begin =
        cat("using world size: ", l.world, ", data-parallel size: ", l.data, ", context-parallel size: ", l.context,
            ", hierarchical context-parallel sizes: None");
    if (format == LogFormat::core_head) {
        return cat(begin, ", tensor-model-parallel size: ", l.tensor, ", pipeline-model-parallel size: ", l.pipeline);
    }
    return cat(begin, "tensor-model-parallel size: ", l.tensor,
               ", encoder-tensor-model-parallel size: 0, pipeline-model-parallel size: ", l.pipeline,
               ", encoder-pipeline-model-parallel size: 0");
}

std::string micro_batches_line(LogFormat format, int64_t count) {
    if (is_old(format)) return cat("setting number of micro-batches to constant ", count);
    return cat("INFO:megatron.core.num_microbatches_calculator:setting number of microbatches to constant ", count);
}

std::string parameter_dtype_line(const std::string& dtype) { return "using torch." + dtype + " for parameters ..."; }

std::string padded_vocab_line(int64_t size, int64_t padded) {
    return cat(" > padded vocab (size: ", size, ") with ", padded - size, " dummy tokens (new size: ", padded, ")");
}

std::string parameters_line(int64_t tensor_rank, int64_t pipeline_rank, int64_t count) {
    return cat(" > number of parameters on (tensor, pipeline) model parallel rank (", tensor_rank, ", ", pipeline_rank,
               "): ", count);
}

std::string datetime_line(const std::string& text, TimeStamp time) {
    return "[" + text + "] datetime: " + time.text() + " ";
}

std::vector<std::string> target_size_lines(const TargetSizes& sizes) {
    return {" > datasets target sizes (minimum size):", cat("    train:      ", sizes.train),
            cat("    validation: ", sizes.validation), cat("    test:       ", sizes.test)};
}

double perplexity(double loss) { return std::exp(std::min(20.0, loss)); }

std::vector<std::string> evaluation_lines(LogFormat format, EvalPlace place, int64_t iteration,
                                          const NamedLosses& losses) {
    const bool validation = place == EvalPlace::end_validation;
    std::string where = cat("iteration ", iteration);
    if (place != EvalPlace::training && is_old(format)) {
        where = validation ? "the end of training for val data" : "the end of training for test data";
    } else if (place != EvalPlace::training) {
        where += validation ? " on validation set" : " on test set";
    }
    std::string line = " validation loss at " + where + " | ";
    for (const auto& [name, value] : losses) {
        line += name + format_text(" value: %.6E | ", value) + name + format_text(" PPL: %.6E | ", perplexity(value));
    }
    const std::string frame(line.size() + 1, '-');
    return {frame, line, frame};
}

std::string memory_line(int64_t rank, int64_t iterations, const MemoryReport& memory) {
    auto mib = [](double bytes) { return python_real(bytes / (1024.0 * 1024.0)); };
    return cat("[Rank ", rank, "] (after ", iterations, " iterations) memory (MB) | allocated: ", mib(memory.allocated),
               " | max allocated: ", mib(memory.max_allocated), " | reserved: ", mib(memory.reserved),
               " | max reserved: ", mib(memory.max_reserved));
}

namespace {

constexpr double mebi = 1024 * 1024;

/// Bytes of the first stage; adds what is said about them on the way.
double theoretical_activations(const TheoreticalModel& m, std::vector<std::string>& lines) {
    const double tokens = static_cast<double>(m.sequence * m.micro_batch), hidden = static_cast<double>(m.hidden),
                 tensor = static_cast<double>(m.tensor), pipeline = static_cast<double>(m.pipeline);
    const double of_a_layer = tokens * hidden * (18 + 4 * static_cast<double>(m.ffn) / hidden);
    lines.push_back(
        format_text("Activation memory footprint per transformer layer: %.1f MB", of_a_layer / mebi / tensor));
    double all = of_a_layer * static_cast<double>(m.layers) + (8 + hidden) * tokens * pipeline;
    std::int64_t in_flight = 0;
    if (m.virtual_stages > 0) {
        const double penalty = 1 + (pipeline - 1) / (pipeline * static_cast<double>(m.virtual_stages));
        lines.push_back(format_text("Memory penalty from interleaved schedule: %.2f", penalty));
        in_flight = static_cast<std::int64_t>(std::ceil(penalty * pipeline));
        all *= penalty;
    } else if (m.pipeline > 1) {
        in_flight = std::min(m.micro_batches, m.pipeline);
        all *= std::min(1.0, static_cast<double>(m.micro_batches) / pipeline);
    }
    if (in_flight > 0) lines.push_back(cat("Number of in-flight microbatches: ", in_flight));
    if (m.pipeline == 1) all += 4 * tokens * (hidden + static_cast<double>(m.padded_vocab));
    return all / tensor;
}

}  // namespace

std::vector<std::string> theoretical_memory_lines(const TheoreticalModel& m) {
    const double hidden = static_cast<double>(m.hidden), layers = static_cast<double>(m.layers);
    const double query = static_cast<double>(m.kv_channels * m.heads) / hidden;
    const double groups = static_cast<double>(m.query_groups) / static_cast<double>(m.heads);
    const double mlp = static_cast<double>(m.ffn) / hidden * (m.gated ? 1.5 : 1.0);
    const double block =
        2 * layers * hidden * hidden * ((1 + groups) * query + mlp + 2 / hidden + 1 / (layers * hidden));
    const double table = hidden * static_cast<double>(m.padded_vocab);
    const double embedding = m.untied ? 2 * table : table;
    const double tensor = static_cast<double>(m.tensor), pipeline = static_cast<double>(m.pipeline);
    double loaded = (block / pipeline + table) / tensor;
    if (m.untied && m.pipeline == 1) loaded += table / tensor;
    const double bytes = m.distributed_optimizer ? 6 + 12 / static_cast<double>(m.data) : 18;
    std::vector<std::string> lines = {
        format_text("Number of parameters in transformer block in billions: % .2f", block / 1e9),
        format_text("Number of parameters in embedding layers in billions: %.2f", embedding / 1e9),
        format_text("Total number of parameters in billions: %.2f", (block + embedding) / 1e9),
        format_text("Number of parameters in most loaded shard in billions: %.4f", loaded / 1e9)};
    if (m.pipeline > 1) {
        lines.push_back(
            format_text("Number of parameters in other shards in billions: %.4f", block / (pipeline * tensor) / 1e9));
    }
    const double weights = loaded * bytes / mebi;
    if (m.with_activations) {
        const double activations = theoretical_activations(m, lines) / mebi;
        lines.push_back(format_text(
            "Theoretical memory footprints: weight and optimizer=%.2f MB, activation=%.2f MB, total=%.2f MB\n", weights,
            activations, weights + activations));
    } else {
        lines.push_back(format_text("Theoretical memory footprints: weight and optimizer=%.2f MB", weights));
    }
    return lines;
}

std::string progress_prefix(TimeStamp time, const std::string& job_id, int64_t gpus) {
    return cat(time.text(), "\tJob ID: ", job_id, "\t# GPUs: ", gpus, "\t");
}

std::string progress_saved(LogFormat format, const ProgressReport& r) {
    std::string line = format_text(
        "Saved checkpoint\tIteration: %lld\tJob throughput: %.1f TFLOP/s/GPU\tCumulative throughput: %.1f "
        "TFLOP/s/GPU\tFloating-point operations: %.2e\tTokens (in billions): %.2f",
        as_ll(r.iteration), r.job_tflops, r.cumulative_tflops, r.floating_point_operations, r.tokens_in_billions);
    if (format == LogFormat::swiss) {
        line += format_text("\tJob token throughput: %.1f Tokens/s/GPU\tCumulative token throughput: %.1f Tokens/s/GPU",
                            r.job_tokens, r.cumulative_tokens);
    }
    return line;
}

}  // namespace tera
