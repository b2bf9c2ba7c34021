// Recordings (CUDA graphs): what a stream is given while it is recorded, or one that waits for its events, is kept, and
// done when the recording is launched.
#pragma once

#include <driver_types.h>

#include <cstddef>
#include <functional>
#include <map>
#include <vector>

namespace soft_gpu {

class Recording {
  public:
    using Work = std::function<cudaError_t()>;

    /// The one under way; null if there is none. A thread has one at a time.
    static Recording*& under_way();
    /// Whether the stream is recorded.
    static bool has(cudaStream_t stream) { return under_way() && under_way()->streams_.count(stream) > 0; }
    /// Does the work now, unless the stream is recorded.
    static cudaError_t give(cudaStream_t stream, const Work& work);

    explicit Recording(cudaStream_t stream) : origin_(stream) { streams_[stream]; }
    bool has(cudaEvent_t event) const { return events_.count(event) > 0; }
    /// As an event is recorded or waited for; errors as CUDA has them.
    cudaError_t record(cudaEvent_t event, cudaStream_t stream, const Work& work);
    cudaError_t wait(cudaStream_t stream, cudaEvent_t event, const Work& work);
    /// All streams are back at the first one?
    cudaError_t end(cudaStream_t stream) const;
    cudaError_t play() const;

  private:
    struct Stream {
        std::size_t given = 0, joined = 0;  ///< pieces of work; those that the first stream waits for
    };
    struct Mark {
        cudaStream_t stream;
        std::size_t given;
    };
    void keep(cudaStream_t stream, const Work& work);

    cudaStream_t origin_;
    std::map<cudaStream_t, Stream> streams_;
    std::map<cudaEvent_t, Mark> events_;
    std::vector<Work> work_;
};

}  // namespace soft_gpu
