// Measuring a training step as `pretrain` would run it with the same flags: the same model, optimizer, step and memory,
// on random tokens.
//
// Order: set-up, first step (its end is timed from the start of the process), warm-up, timed steps, memory as it is
// then, one step phase by phase (with the device waited for after each), some steps under the kernel trace, ceilings.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "config/run_config.h"
#include "train/bench_ceilings.h"
#include "train/kernel_summary.h"

namespace tera {

struct BenchOptions {
    int warmup = 3;  ///< the first step is one of them
    int steps = 10;
    int traced_steps = 2;  ///< one if a step takes longer than a second
    /// Told what is going on, for a progress line.
    std::function<void(const std::string&)> progress = [](const std::string&) {};
};

struct BenchResult {
    RunConfig config;  ///< with its vocabulary
    std::string vocab_source, device;
    std::int64_t parameters = 0, micro_batches = 0, tokens_per_step = 0;
    int threads = 0;

    std::vector<double> step_seconds;
    int skipped_steps = 0;                    ///< of these: the loss scale was too high, and nothing was updated
    double flops_causal = 0, flops_full = 0;  ///< of one step, attention counted once below the diagonal, and whole
    double peak_tflops = 0;                   ///< dense bf16, by the device's name; 0: not known
    double first_loss = 0, last_loss = 0;

    /// Seconds since the process began: program loaded, device open, model built, first step's loss known.
    double loaded_at = 0, device_at = 0, model_at = 0, first_step_at = 0;

    std::vector<std::pair<std::string, double>> phases;  ///< milliseconds of one step
    bool traced = false;
    std::string why_not_traced;
    KernelSummary kernels;
    Ceilings ceilings;

    std::size_t planned = 0;                                  ///< bytes, before anything was allocated; 0 on the CPU
    std::vector<std::pair<std::string, std::size_t>> memory;  ///< bytes by name
    std::size_t device_used = 0, device_total = 0;            ///< as the driver sees it; 0 on the CPU
    std::size_t resident = 0;                                 ///< of the process, at its highest

    double median_seconds() const;
    double tokens_per_second(double seconds) const { return static_cast<double>(tokens_per_step) / seconds; }
};

/// `config` as parsed; what a benchmark need not be given (data, length of the run, learning rate) is filled in, then
/// it is validated as pretrain does. UsageError for anything in it that cannot be.
BenchResult bench_step(RunConfig config, const BenchOptions& options);

/// TFLOP/s of dense bf16 products by the maker's data sheet; 0 for a device that is not in the list.
double peak_bf16_tflops(const std::string& device_name);

}  // namespace tera
