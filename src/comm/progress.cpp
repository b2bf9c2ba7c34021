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
    ++state_.calls;
    changed_ = Clock::now();
}

void Progress::enqueue_call(std::string call) {
    const std::lock_guard lock(mutex_);
    state_.call = std::move(call);
    state_.waiting = false;
    ++state_.calls;
    changed_ = Clock::now();
}

void Progress::end_call() {
    const std::lock_guard lock(mutex_);
    state_.waiting = false;
    changed_ = Clock::now();
}

void Progress::watch_device(std::function<std::vector<DeviceCalls>()> calls) {
    const std::lock_guard lock(mutex_);
    device_ = std::move(calls);
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

/// Where the host goes on, the rank is where its device is.
void Progress::add_device(State& state) {
    state.device = device_();
    std::int64_t moves = 0;
    for (const DeviceCalls& calls : state.device) {
        moves += calls.begun + calls.ended;
        if (state_.waiting || !calls.open()) continue;
        state.waiting = true;
        state.call = calls.call;
    }
    if (moves != device_moves_ && !state_.waiting) changed_ = Clock::now();
    device_moves_ = moves;
}

Progress::State Progress::now() {
    const std::lock_guard lock(mutex_);
    State state = state_;
    if (device_) add_device(state);
    if (bytes_) state.sent = bytes_->sent, state.come = bytes_->come;
    state.seconds = std::chrono::duration<double>(Clock::now() - changed_).count();
    return state;
}

}  // namespace tera
