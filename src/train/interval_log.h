// What happens between two log lines: losses of the iterations that were not skipped, how many were, and the time spent
// training (evaluation and saving not counted).
#pragma once

#include <chrono>
#include <cstdint>

#include "train/log_lines.h"
#include "train/train_step.h"

namespace tera {

class IntervalLog {
  public:
    void start_clock();
    void stop_clock();

    void add(const StepOutcome& outcome);

    /// Fills losses, skipped and nan iterations and elapsed time; sets everything back to zero unless `keep`.
    void fill(StepReport& report, bool keep = false);

  private:
    double loss_ = 0;
    std::int64_t advanced_ = 0, skipped_ = 0, nan_ = 0;
    double seconds_ = 0;
    bool running_ = false;
    std::chrono::steady_clock::time_point started_;
};

}  // namespace tera
