// Transport: how bytes get from one process to another. What the ranks make of them is comm/process_comm.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tera {

/// What a frame belongs to; the receiver holds it against what it expects.
struct FrameHeader {
    std::uint64_t group = 0;    ///< which communicator
    std::int64_t sequence = 0;  ///< number of the collective in it
    std::int64_t elements = 0;  ///< of the whole collective
    std::uint32_t call = 0;     ///< which collective
    std::uint32_t dtype = 0;
    std::uint64_t bytes = 0;  ///< that follow
};

struct Frame {
    FrameHeader header;
    std::unique_ptr<std::byte[]> data;
};

class Transport {
  public:
    virtual ~Transport() = default;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    /// Copies the bytes and does not wait for the receiver.
    virtual void send(int to, const FrameHeader& header, const std::byte* data) = 0;
    /// The next frame of this group from that rank; waits for it. Throws if the rank is gone.
    virtual Frame receive(int from, std::uint64_t group) = 0;
};

}  // namespace tera
