#pragma once

#include "config/run_config.h"

namespace tera {

/// UsageError for the first number, given or not at its default, that lies outside what its flag can mean.
void check_ranges(const RunConfig& config);

}  // namespace tera
