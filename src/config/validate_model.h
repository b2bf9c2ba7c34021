// The part of validation that is about the model: proportions, layers, attention, MLP, positions, sequence length.
#pragma once

#include "config/run_config.h"

namespace tera {

/// UsageError for sizes so large that their products would overflow.
void check_proportions(const RunConfig& config, int64_t world_size);

/// Everything about the model's shape. Needs the layout (derive_layout) first.
void derive_model(RunConfig& config);

}  // namespace tera
