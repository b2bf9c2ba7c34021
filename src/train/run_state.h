// How far a run has come, and its way into and out of a checkpoint.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "config/run_config.h"
#include "optim/loss_scaler.h"
#include "optim/lr_schedule.h"
#include "train/checkpoint.h"

namespace tera {

struct RunState {
    std::int64_t iteration = 0;
    std::int64_t consumed_train_samples = 0;
    std::int64_t consumed_valid_samples = 0;
    std::int64_t skipped_train_samples = 0;
    std::int64_t schedule_samples = 0;  ///< samples of successful steps: what the learning rate depends on
    double floating_point_operations = 0;
};

/// The parts of a run whose state travels with the numbers above.
struct RunParts {
    const RunConfig& config;
    const LrSchedule& schedule;
    const std::optional<LossScaler>& scaler;
    std::int64_t optimizer_steps = 0;
};

CheckpointState checkpoint_state_of(const RunState& state, const RunParts& parts);

/// The numbers of a checkpoint. UsageError if one is missing or makes no sense.
RunState run_state_from(const CheckpointState& checkpoint);
LrSchedule schedule_from(const CheckpointState& checkpoint, const LrSchedule& otherwise);
void restore_scaler(const CheckpointState& checkpoint, std::optional<LossScaler>& scaler);
std::int64_t optimizer_steps_from(const CheckpointState& checkpoint);

}  // namespace tera
