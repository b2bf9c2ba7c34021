#include "train/interval_log.h"

#include <algorithm>
#include <cmath>

namespace tera {

void IntervalLog::start_clock() {
    started_ = std::chrono::steady_clock::now();
    running_ = true;
}

void IntervalLog::stop_clock() {
    if (running_) seconds_ += seconds_since(started_);
    running_ = false;
}

void IntervalLog::add(const StepOutcome& outcome) {
    if (outcome.skipped) {
        ++skipped_;
        // Only the losses of skipped iterations are searched: elsewhere a NaN shows in the average itself.
        if (!std::isfinite(outcome.mean_loss())) ++nan_;
        return;
    }
    ++advanced_;
    loss_ += outcome.mean_loss();
}

void IntervalLog::fill(StepReport& report, bool keep) {
    const bool was_running = running_;
    stop_clock();
    // No iteration counted: there is no loss, and a line does not print what is not a number.
    report.losses = {{"lm loss", advanced_ > 0 ? loss_ / static_cast<double>(advanced_) : std::nan("")}};
    report.skipped_iterations = skipped_;
    report.nan_iterations = nan_;
    report.elapsed_ms = 1000 * seconds_ / static_cast<double>(std::max<std::int64_t>(1, advanced_ + skipped_));
    if (!keep) {
        loss_ = seconds_ = 0;
        advanced_ = skipped_ = nan_ = 0;
    }
    if (was_running) start_clock();
}

}  // namespace tera
