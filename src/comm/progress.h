// What a rank is doing, for whoever must say which one holds up the others.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "comm/tcp.h"

namespace tera {

class Progress {
  public:
    struct State {
        std::int64_t step = 0;   ///< training step; 0: before the first
        std::int64_t calls = 0;  ///< collectives begun
        std::string call;        ///< the last one: "all_reduce of 5 f32 over 8 ranks"
        bool waiting = false;    ///< inside it
        double seconds = 0;      ///< since it was begun or ended

        /// "step 12, in all_reduce of 5 f32 over 8 ranks for 3 s".
        std::string text() const;
    };

    void begin_step(std::int64_t step);
    void begin_call(std::string call);
    void end_call();
    /// A call that a device works on: the rank is inside it until done() says otherwise. `done` may be called by any
    /// thread until the next call is begun or enqueued.
    void enqueue_call(std::string call, std::function<bool()> done);
    State now() const;

  private:
    mutable std::mutex mutex_;
    State state_;
    std::function<bool()> done_;
    Clock::time_point changed_ = Clock::now();
};

}  // namespace tera
