// A process that a launcher started as one of several ranks.
#pragma once

#include <functional>

#include "cli/commands.h"
#include "comm/process_world.h"
#include "config/run_config.h"

namespace tera {

/// Where this process stands: --rank, --world-size, --local-rank, --master-addr and --master-port, and for what they do
/// not say the launcher's variables; written to config. UsageError if flags and launcher contradict each other. Without
/// --rank the launcher says how many ranks there are, and --world-size may only repeat it.
RankPlace place_of(RunConfig& config);

/// What a process does before it meets the others; it sets `place` as soon as it is known. An error is told to them and
/// thrown on: they need not wait for this rank. `flags` may be what the error is about.
void before_meeting(const CommandArgs& flags, const RankPlace& place, const std::function<void()>& work);

/// Meets the other ranks and works with them. An error of the work is told to all, who leave with its exit code, and is
/// thrown on; a UsageError with the name of this rank in front.
void with_world(const RunConfig& config, const RankPlace& place, const std::function<void(ProcessWorld&)>& work);

}  // namespace tera
