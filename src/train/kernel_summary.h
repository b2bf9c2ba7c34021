// Where the time of some steps went on the GPU, from the records of a trace.
//
//   span    from the start of the first kernel (or copy) to the end of the last
//   busy    the part of it in which at least one ran
//   gaps    the rest: span - busy
// All times are per step.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/kernel_trace.h"
#include "train/kernel_kinds.h"

namespace tera {

struct KernelTime {
    std::string name;  ///< shortened
    KernelKind kind = KernelKind::other;
    std::array<int, 3> grid{};  ///< thread blocks
    double calls = 0, ms = 0;   ///< per step
};

/// The time in which nothing ran between two kernels of these names, all such places together.
struct GapTime {
    std::string after, before;
    double count = 0, ms = 0;  ///< per step
    double longest_us = 0;
};

struct KernelSummary {
    double span_ms = 0, busy_ms = 0;
    double launches = 0;
    std::array<double, kernel_kinds> kind_ms{}, kind_calls{};
    std::vector<KernelTime> kernels;  ///< by name and grid, longest first
    std::vector<GapTime> gaps;        ///< longest first

    double gap_ms() const { return span_ms - busy_ms; }
    /// Time in which more than one ran, counted as often as it was doubled.
    double overlap_ms() const;
    /// `kernels` with all grids of a name together.
    std::vector<KernelTime> by_name() const;
};

/// work: by start time, of `steps` whole steps.
KernelSummary summarize(const std::vector<DeviceWork>& work, int steps);

}  // namespace tera
