#include "comm/progress.h"

#include "core/error.h"

namespace tera {

std::string Progress::State::place() const {
    const std::string where = step > 0 ? cat("step ", step) : "before the first step";
    if (finished) return cat(where, ", done with its work");
    if (calls == 0) return cat(where, ", in no collective yet");
    return cat(where, waiting ? ", in " : ", after ", call);
}

std::string Progress::State::text() const {
    const auto whole = static_cast<std::int64_t>(seconds);
    if (finished || calls == 0) return place();
    return waiting ? cat(place(), " for ", whole, " s") : cat(place(), " (", whole, " s ago)");
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

void Progress::begin_wait(int rank) {
    const std::lock_guard lock(mutex_);
    state_.waits_for = rank;
    ++state_.waits;
}

void Progress::end_wait() {
    const std::lock_guard lock(mutex_);
    state_.waits_for = -1;
}

void Progress::count(std::shared_ptr<const FrameBytes> bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ = std::move(bytes);
}

void Progress::finish() {
    const std::lock_guard lock(mutex_);
    state_.finished = true;
}

Progress::State Progress::now() const {
    const std::lock_guard lock(mutex_);
    State state = state_;
    if (state.waiting && done_) state.waiting = !done_();
    if (bytes_) state.sent = bytes_->sent, state.come = bytes_->come;
    state.seconds = std::chrono::duration<double>(Clock::now() - changed_).count();
    return state;
}

}  // namespace tera
