// The steps that --profile marks for a profiler: the CUDA profiler's range opens when `first` steps are finished and
// closes when `last` are, as in Megatron (iterations first + 1 to last of the log).
#pragma once

#include <cstdint>
#include <exception>

#include "core/profile.h"

namespace tera {

class ProfileWindow {
  public:
    /// Never opens.
    ProfileWindow() = default;
    ProfileWindow(std::int64_t first, std::int64_t last) : on_(true), first_(first), last_(last) {}
    /// A run that stops inside the window closes it, so that the tool writes what it has.
    ~ProfileWindow() {
        try {
            if (open_) profiler_stop();
        } catch (const std::exception&) {  // the error that ends the run says more
        }
    }
    ProfileWindow(const ProfileWindow&) = delete;
    ProfileWindow& operator=(const ProfileWindow&) = delete;

    /// True if the window opens now. done: steps finished so far.
    bool before_step(std::int64_t done) {
        if (!on_ || open_ || done < first_ || done >= last_) return false;
        profiler_start();
        return open_ = true;
    }
    /// True if it closes now.
    bool after_step(std::int64_t done) { return done >= last_ && close(); }
    /// Of a run that ends inside the window; true if it was open.
    bool close() {
        if (!open_) return false;
        profiler_stop();
        open_ = false;
        return true;
    }
    bool is_open() const { return open_; }

  private:
    bool on_ = false, open_ = false;
    std::int64_t first_ = 0, last_ = 0;
};

}  // namespace tera
