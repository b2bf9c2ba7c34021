// What ends a run before its last iteration, and what makes it save in between: signals, time, intervals, trigger
// files. The decision itself is a pure function.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace tera {

/// Remembers that a signal came instead of dying of it, as long as it lives. One at a time per process.
class SignalWatch {
  public:
    explicit SignalWatch(int signal);
    ~SignalWatch();
    SignalWatch(const SignalWatch&) = delete;
    SignalWatch& operator=(const SignalWatch&) = delete;
    bool seen() const;

  private:
    struct Saved;
    std::unique_ptr<Saved> saved_;
    int signal_;
};

/// Files a user touches to steer a running job: DIR/save and DIR/exit. No folder, or /dev/null: none.
class Triggers {
  public:
    explicit Triggers(const std::string& folder);
    bool on() const { return !folder_.empty(); }
    bool save_asked() const;
    bool exit_asked() const;
    void remove_save() const;
    void touch_exit() const;  ///< tells the launcher that no further job is needed; silent if it cannot
    std::string save_path() const { return folder_ + "/save"; }
    std::string exit_path() const { return folder_ + "/exit"; }

  private:
    std::string folder_;
};

struct ControlSettings {
    bool can_save = false;  ///< --save was given
    std::optional<std::int64_t> save_interval, exit_interval, exit_minutes;
    std::int64_t log_interval = 100;  ///< triggers are looked at every so many iterations
    std::string signal_name = "SIGTERM";
    std::string exit_trigger;  ///< path, for the message
};

/// How things stand after an iteration.
struct ControlInput {
    std::int64_t iteration = 0;
    bool signal = false;
    double minutes = 0;  ///< since the process began
    bool save_trigger = false, exit_trigger = false;
};

struct Verdict {
    bool save = false;
    bool remove_save_trigger = false;
    bool stop = false;
    std::string message;  ///< why it stops; printed with the time
};

/// In this order: signal (save, stop) · save interval · time (save, stop) · exit interval (save, stop) · every
/// log_interval iterations the triggers: save, then exit (stop without saving).
Verdict judge(const ControlSettings& settings, const ControlInput& input);

}  // namespace tera
