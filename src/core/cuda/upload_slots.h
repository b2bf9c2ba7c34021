// The CUDA half of core/uploader.h: pinned and device buffers in turn, and the events between the two streams. No CUDA
// header is needed to include this.
#pragma once

#include <cstddef>
#include <memory>

namespace tera {

struct Gpu;

class UploadSlots {
  public:
    /// One slot is written while another is copied.
    static constexpr int count(int held) { return held + 2; }

    /// held: a slot is read until so many more are handed out.
    UploadSlots(Gpu& gpu, int held);
    ~UploadSlots();
    UploadSlots(const UploadSlots&) = delete;
    UploadSlots& operator=(const UploadSlots&) = delete;

    struct Slot {
        std::byte* host;
        std::byte* device;
    };
    /// Makes all slots at least this large.
    void reserve(std::size_t bytes);
    /// The next slot, free to be written.
    Slot begin(std::size_t bytes);
    /// Copies the slot just written; work enqueued from now on sees it.
    void send(std::size_t bytes);

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace tera
