// Recorder: work that a GPU is given again and again, recorded once and then given as a whole (a CUDA graph): less time
// passes between its kernels. What was recorded reads and writes the same addresses with the same arguments each time.
// On the CPU nothing is recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/engine.h"

namespace tera {

class Recorder {
  public:
    /// A recording takes some MiB of the GPU's memory: with less left than this nothing is recorded.
    explicit Recorder(const Engine& engine, std::size_t least_left = std::size_t{256} << 20);
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    /// Everything that the work's arguments depend on.
    using Key = std::vector<std::uint64_t>;
    enum class Outcome {
        given,     ///< `give` has given it to the GPU, kernel by kernel
        recorded,  ///< `give` has been recorded, and the recording given
        played     ///< a recording was given, and `give` not called
    };
    /// The first time it is given as ever, so that whatever is only done once is done; the second time it is recorded.
    /// What comes with a new key each time is never recorded.
    Outcome run(const Key& key, const std::function<void()>& give);

  private:
    struct Recordings;
    std::unique_ptr<Recordings> recordings_;
};

}  // namespace tera
