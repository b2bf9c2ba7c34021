#include "train/control.h"

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "config/fields.h"
#include "core/error.h"
#include "train/format_text.h"

namespace tera {
namespace {

volatile std::sig_atomic_t signal_seen = 0;

void remember(int) { signal_seen = 1; }

bool file_exists(const std::string& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0;
}

bool is_multiple(std::int64_t iteration, const std::optional<std::int64_t>& interval) {
    return interval && *interval > 0 && iteration % *interval == 0;
}

}  // namespace

struct SignalWatch::Saved {
    struct sigaction action {};
};

SignalWatch::SignalWatch(int signal) : saved_(std::make_unique<Saved>()), signal_(signal) {
    signal_seen = 0;
    struct sigaction action {};
    action.sa_handler = remember;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;  // a write to disk in progress goes on
    sigaction(signal_, &action, &saved_->action);
}

SignalWatch::~SignalWatch() { sigaction(signal_, &saved_->action, nullptr); }

bool SignalWatch::seen() const { return signal_seen != 0; }

Triggers::Triggers(const std::string& folder) : folder_(folder == "/dev/null" ? "" : folder) {}

bool Triggers::save_asked() const { return on() && file_exists(save_path()); }
bool Triggers::exit_asked() const { return on() && file_exists(exit_path()); }

void Triggers::remove_save() const {
    if (on()) unlink(save_path().c_str());
}

void Triggers::touch_exit() const {
    if (!on()) return;
    if (std::FILE* file = std::fopen(exit_path().c_str(), "a")) std::fclose(file);
}

Verdict judge(const ControlSettings& settings, const ControlInput& input) {
    Verdict verdict;
    auto save = [&] { verdict.save = settings.can_save; };
    auto stop = [&](const std::string& why) {
        verdict.stop = true;
        verdict.message = why;
        return verdict;
    };
    if (input.signal) {
        save();
        return stop("exiting program after receiving " + settings.signal_name + ".");
    }
    if (is_multiple(input.iteration, settings.save_interval)) save();
    if (settings.exit_minutes && input.minutes > static_cast<double>(*settings.exit_minutes)) {
        save();
        return stop("exiting program after " + python_real(input.minutes) + " minutes");
    }
    if (is_multiple(input.iteration, settings.exit_interval)) {
        save();
        return stop(cat("exiting program at iteration ", input.iteration));
    }
    if (settings.log_interval <= 0 || input.iteration % settings.log_interval != 0) return verdict;
    if (input.save_trigger) {
        save();
        verdict.remove_save_trigger = true;
    }
    if (input.exit_trigger) return stop("exiting program after finding the exit trigger " + settings.exit_trigger);
    return verdict;
}

}  // namespace tera
