// Lane: a second queue of a device, for work that goes on beside the computing (communication). On the CPU there is one
// queue, the program itself, and a lane is that.
#pragma once

#include <memory>

#include "core/engine.h"

namespace tera {

class Lane {
  public:
    explicit Lane(const Engine& engine);
    ~Lane();
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

    /// The same on this lane; only communicators know of it.
    Exec on(const Exec& exec) const;
    /// What is enqueued here from now on begins when what was enqueued on exec's device so far is done.
    void follow(const Exec& exec);

    /// A place in the lane's queue.
    class Mark {
      public:
        explicit Mark(const Lane& lane);
        ~Mark();
        Mark(Mark&&) noexcept;
        /// Here: behind what was enqueued on the lane so far.
        void set();
        /// What is enqueued on exec's device from now on begins when the lane has come to the mark.
        void wait(const Exec& exec) const;

      private:
        [[maybe_unused]] const Lane* lane_;
        void* event_ = nullptr;
    };

    void* stream() const { return stream_; }

  private:
    Gpu* gpu_;
    void* stream_ = nullptr;
    [[maybe_unused]] void* followed_ = nullptr;  // only where there is a device
};

}  // namespace tera
