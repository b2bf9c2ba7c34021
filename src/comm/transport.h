// Transport: how bytes get from one process to another. What the ranks make of them is comm/process_comm.h.
#pragma once

#include <atomic>
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

/// Bytes of frames, headers too. While the sums of both over all ranks differ, something is on its way.
struct FrameBytes {
    std::atomic<std::int64_t> sent{0};  ///< given to send
    std::atomic<std::int64_t> come{0};  ///< taken in, whether or not anybody has asked for the frame
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
    /// Goes on counting what this transport moves, and outlives it.
    std::shared_ptr<const FrameBytes> bytes() const { return bytes_; }

  protected:
    void count_sent(std::size_t bytes) { bytes_->sent += static_cast<std::int64_t>(bytes); }
    void count_come(std::size_t bytes) { bytes_->come += static_cast<std::int64_t>(bytes); }

  private:
    std::shared_ptr<FrameBytes> bytes_ = std::make_shared<FrameBytes>();
};

}  // namespace tera
