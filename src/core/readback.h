// Readback: a small result on its way to the host while the device goes on.
//
// start() orders a copy behind the work already enqueued on the device's stream; wait() waits for that copy alone, not
// for what was enqueued after it. On the CPU start() copies at once.
#pragma once

#include <cstddef>
#include <memory>

#include "core/exec.h"

namespace tera {

class Readback {
  public:
    /// What one device does; core/cuda/readback.h has the GPU's.
    class Target {
      public:
        virtual ~Target() = default;
        virtual void start(const Exec& exec, ConstTensor from) = 0;
        virtual const void* wait() = 0;
    };

    /// Room for `bytes`; gpu null: results lie in host memory.
    explicit Readback(std::size_t bytes, Gpu* gpu);

    /// At most the bytes there is room for. A new start() overwrites what the last wait() returned.
    void start(const Exec& exec, ConstTensor from);
    /// The bytes last started; they stay until the next start(). May be asked for again.
    const void* wait();

  private:
    std::size_t room_;
    bool started_ = false;
    std::unique_ptr<Target> target_;
};

}  // namespace tera
