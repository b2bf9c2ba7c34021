// What the NCCL communicators of one rank share, and the counters of their calls, by which others see how far this
// rank's device has come.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "comm/device_calls.h"
#include "comm/progress.h"
#include "core/cuda/gpu.h"

namespace tera {

/// The calls of one communicator, and how far the device has come, as it writes itself.
class CallCounter {
  public:
    CallCounter(std::uint64_t key, int members, std::int64_t ahead);
    ~CallCounter();
    CallCounter(const CallCounter&) = delete;
    CallCounter& operator=(const CallCounter&) = delete;

    /// A call that the stream is about to be given.
    void begin(cudaStream_t stream, std::string call);
    /// The stream was given it.
    void end(cudaStream_t stream) { write(stream, counts_->ended); }

    DeviceCalls seen();

  private:
    struct Counts {
        std::uint64_t begun, ended;
    };
    void write(cudaStream_t stream, std::uint64_t& to) const;

    std::mutex mutex_;
    CallLog log_;
    std::int64_t number_ = 0;
    Counts* counts_ = nullptr;
};

/// What all communicators of a rank have in common.
struct Rank {
    Rank(Gpu& g, Progress* p);
    ~Rank();
    Rank(const Rank&) = delete;
    Rank& operator=(const Rank&) = delete;

    /// For a new communicator of these ranks of the world.
    std::shared_ptr<CallCounter> count(const std::vector<int>& members, const char* purpose, std::int64_t ahead = 0);
    /// A call begins on that stream.
    void begin(CallCounter& counter, cudaStream_t stream, const std::string& call);

    Gpu& gpu;
    Progress* progress;
    std::vector<ncclComm_t> all;
    bool abandoned = false;

  private:
    std::vector<DeviceCalls> calls();

    std::map<std::pair<std::vector<int>, std::string>, int> made_;
    std::mutex mutex_;
    std::vector<std::weak_ptr<CallCounter>> counters_;
};

}  // namespace tera
