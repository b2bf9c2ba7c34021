// Flags that are another way to say something: switches of older versions that stand for a value of another flag.
#pragma once

#include "config/run_config.h"

namespace tera {

/// Translates the older switches the user gave. UsageError where they contradict the newer flag.
void apply_older_names(RunConfig& config);

}  // namespace tera
