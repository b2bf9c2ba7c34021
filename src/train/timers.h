// Named stop-watches and the block of lines that reports them.
//
// Levels as --timing-log-level: 0 set-up, evaluation and saving; 1 forward-backward and optimizer; 2 their parts. A
// timer above the chosen level costs one comparison.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/comm.h"

namespace tera {

double seconds_since(std::chrono::steady_clock::time_point start);

class Timers {
  public:
    explicit Timers(int level) : level_(level) {}

    /// Called before a timer of level 1 or 2 is read: a device that works behind the host's back must have come this
    /// far. Only the levels that are asked for cost anything.
    void wait_with(std::function<void()> wait) { wait_ = std::move(wait); }

    /// Whether timers of this level are read at all.
    bool takes(int level) const { return level <= level_; }
    void start(const char* name, int level = 0);
    void stop(const char* name);

    /// Starts a timer and stops it at the end of the block.
    class Scope {
      public:
        Scope(Timers& timers, const char* name, int level = 0) : timers_(timers), name_(name) {
            timers_.start(name, level);
        }
        ~Scope() { timers_.stop(name_); }
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;

      private:
        Timers& timers_;
        const char* name_;
    };

    /// The block for those of `names` that have run on any rank since they were last reported, times divided by
    /// `normalizer`; it sets them back to zero. "" if none ran. option: minmax | max | all. Called by all ranks of
    /// `world`, with the same names.
    std::string report(Comm& world, const Exec& exec, const std::vector<std::string>& names, const std::string& option,
                       double normalizer = 1);

    /// Seconds a timer has gathered since it was last reported.
    double seconds(const std::string& name) const;

  private:
    struct Timer {
        std::string name;
        int level = 0;
        double seconds = 0;
        bool running = false, ran = false;
        std::chrono::steady_clock::time_point started;
    };
    Timer* find(const std::string& name);
    double take_ms(const std::string& name);
    void wait(int level) const {
        if (level > 0 && wait_) wait_();
    }

    int level_;
    std::function<void()> wait_;
    std::vector<Timer> timers_;
};

/// One timer's times over the ranks, in milliseconds; below 0 where it did not run.
struct TimerRow {
    std::string name;
    std::vector<double> per_rank_ms;
};
std::string timer_block(const std::vector<TimerRow>& rows, const std::string& option);

}  // namespace tera
