// What a rank is doing, for whoever must say which one holds up the others.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "comm/device_calls.h"
#include "comm/tcp.h"
#include "comm/transport.h"

namespace tera {

class Progress {
  public:
    struct State {
        std::int64_t step = 0;            ///< training step; 0: before the first
        std::int64_t calls = 0;           ///< collectives begun
        std::string call;                 ///< the last one: "all_reduce of 5 f32 over 8 ranks"
        bool waiting = false;             ///< it, or its device, is inside it
        double seconds = 0;               ///< since it was begun or ended
        int waits_for = -1;               ///< the rank whose message it needs to go on; -1: it works, or a device does
        std::int64_t waits = 0;           ///< how often it has begun to wait for a message
        std::int64_t sent = 0, come = 0;  ///< bytes, see FrameBytes
        bool finished = false;            ///< it has done its work and will send nothing more
        std::vector<DeviceCalls> device;  ///< of the communicators of its device

        /// "step 12, in all_reduce of 5 f32 over 8 ranks for 3 s".
        std::string text() const;
        /// "step 12, in all_reduce of 5 f32 over 8 ranks": the same for all who are there.
        std::string place() const;
    };

    void begin_step(std::int64_t step);
    void begin_call(std::string call);
    void end_call();
    /// A call that the device was given; the rank goes on.
    void enqueue_call(std::string call);
    /// `calls` tells what the device does, to any thread, until this is called again; empty: there is none any more.
    void watch_device(std::function<std::vector<DeviceCalls>()> calls);
    /// From here to end_wait() the rank can do nothing until a message of that rank comes.
    void begin_wait(int rank);
    void end_wait();
    void count(std::shared_ptr<const FrameBytes> bytes);
    void finish();
    State now();

  private:
    void add_device(State& state);

    std::mutex mutex_;
    State state_;
    std::function<std::vector<DeviceCalls>()> device_;
    std::int64_t device_moves_ = 0;  ///< calls begun and ended, when it was last looked at
    std::shared_ptr<const FrameBytes> bytes_;
    Clock::time_point changed_ = Clock::now();
};

}  // namespace tera
