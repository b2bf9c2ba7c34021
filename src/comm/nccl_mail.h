// Messages in device memory between two ranks, over an NCCL communicator of the two, where the sender is number 0.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/nccl_rank.h"
#include "core/exec.h"

namespace tera {

/// Messages to one rank, on a stream of their own, from copies in memory that is used in turn.
class Outbox {
  public:
    Outbox(Rank& rank, ncclComm_t comm, std::shared_ptr<CallCounter> calls, int places, std::size_t bytes);
    ~Outbox();
    Outbox(const Outbox&) = delete;
    Outbox& operator=(const Outbox&) = delete;

    void send(ConstTensor data);

  private:
    struct Place {
        std::byte* data = nullptr;
        cudaEvent_t sent = nullptr;
    };
    Rank& rank_;
    ncclComm_t comm_;
    std::shared_ptr<CallCounter> calls_;
    std::size_t bytes_;
    cudaStream_t stream_ = nullptr;
    cudaEvent_t copied_ = nullptr;
    std::vector<Place> places_;
    std::size_t next_ = 0;
};

/// Messages from one rank.
class Inbox {
  public:
    /// bytes: of the largest that comes in ahead, on a stream of its own; 0: none does.
    Inbox(Rank& rank, ncclComm_t comm, std::shared_ptr<CallCounter> calls, std::size_t bytes);
    ~Inbox();
    Inbox(const Inbox&) = delete;
    Inbox& operator=(const Inbox&) = delete;

    /// Not before the device has come here: what receives takes multiprocessors from what computes.
    void expect(DType dtype, Shape shape);
    void receive(const Exec& exec, Tensor data);

  private:
    Rank& rank_;
    ncclComm_t comm_;
    std::shared_ptr<CallCounter> calls_;
    std::size_t bytes_;
    cudaStream_t stream_ = nullptr;
    cudaEvent_t asked_ = nullptr, arrived_ = nullptr;
    std::byte* place_ = nullptr;
    bool expected_ = false;
};

}  // namespace tera
