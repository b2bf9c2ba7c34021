// A timeline of what a GPU did, for chrome://tracing and Perfetto: a row for each queue of the device.
#pragma once

#include <string>
#include <vector>

#include "core/kernel_trace.h"

namespace tera {

/// As JSON. The process is called after the rank, times begin with the first work.
std::string timeline_text(const std::vector<DeviceWork>& work, std::int64_t rank);

/// DIR/timeline-rank3.json; the folder is made. Returns the path.
std::string write_timeline(const std::string& folder, const std::vector<DeviceWork>& work, std::int64_t rank);

}  // namespace tera
