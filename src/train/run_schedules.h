// The schedules a configuration asks for: batch size, number of iterations, learning rate, weight decay.
#pragma once

#include <cstdint>
#include <optional>

#include "config/run_config.h"
#include "optim/lr_schedule.h"
#include "train/batch_schedule.h"

namespace tera {

/// All of these take a validated configuration.
BatchSchedule make_batch_schedule(const RunConfig& config);

/// UsageError if any batch of the run does not divide, or cannot be shared out by the stages of an interleaved
/// pipeline: so that a run does not find out after days.
void check_batches(const RunConfig& config);

/// --train-iters, or what --train-samples amount to; nothing if neither is given.
std::optional<std::int64_t> training_iterations(const RunConfig& config);

/// Checked. Iterations become samples by the global batch size. UsageError without --lr or a length of the run.
LrSchedule make_lr_schedule(const RunConfig& config);

}  // namespace tera
