#include "comm/progress.h"

#include "core/error.h"

namespace tera {

std::string Progress::State::text() const {
    const std::string where = step > 0 ? cat("step ", step) : "before the first step";
    const auto whole = static_cast<std::int64_t>(seconds);
    if (calls == 0) return cat(where, ", in no collective yet");
    return waiting ? cat(where, ", in ", call, " for ", whole, " s") : cat(where, ", ", whole, " s after ", call);
}

void Progress::begin_step(std::int64_t step) {
    const std::lock_guard lock(mutex_);
    state_.step = step;
}

void Progress::begin_call(std::string call) {
    const std::lock_guard lock(mutex_);
    state_.call = std::move(call);
    state_.waiting = true;
    done_ = {};
    ++state_.calls;
    changed_ = Clock::now();
}

void Progress::enqueue_call(std::string call, std::function<bool()> done) {
    const std::lock_guard lock(mutex_);
    state_.call = std::move(call);
    state_.waiting = true;
    done_ = std::move(done);
    ++state_.calls;
    changed_ = Clock::now();
}

void Progress::end_call() {
    const std::lock_guard lock(mutex_);
    state_.waiting = false;
    done_ = {};
    changed_ = Clock::now();
}

Progress::State Progress::now() const {
    const std::lock_guard lock(mutex_);
    State state = state_;
    if (state.waiting && done_) state.waiting = !done_();
    state.seconds = std::chrono::duration<double>(Clock::now() - changed_).count();
    return state;
}

}  // namespace tera
