// Memory of the GPU in software: plain host memory, of which is known where each allocation ends and which of its bytes
// have been written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "soft_gpu/stream_order.h"

namespace soft_gpu {

/// What a kernel or a call may not do. The text says what and where.
class Fault : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

class Memory {
  public:
    static constexpr std::size_t total_bytes = std::size_t{8} << 30;

    struct Block {
        std::byte* data;
        std::size_t bytes;
        bool of_host;  ///< pinned memory, and parameters: the host may have written all of it
        std::unique_ptr<std::byte[]> owned;
        std::vector<std::uint8_t> written;  ///< 1 for each byte that has a value; empty for memory of the host
        StreamOrder::Memory order;          ///< who touched it last; not of what was lent

        /// Of bytes in it, by the work under way.
        void touch(const void* at, std::size_t n, bool write) {
            if (owned)
                StreamOrder::get().touch(order, static_cast<std::size_t>(static_cast<const std::byte*>(at) - data), n,
                                         write);
        }
    };

    static Memory& get();

    /// Null if there is not so much left.
    std::byte* allocate(std::size_t bytes, bool of_host);
    /// Whether there was such an allocation.
    bool release(const void* data);
    /// Memory that somebody else owns, for as long as a kernel runs.
    void lend(const void* data, std::size_t bytes);
    void take_back(const void* data);

    /// The allocation that all of [data, data + bytes) lies in, or null.
    Block* find(const void* data, std::size_t bytes);
    /// `find`, or a Fault that says what is near.
    Block& must_find(const void* data, std::size_t bytes, const char* what);
    /// A Fault if it is not all in one allocation, or a byte of it was never written.
    void read(const void* data, std::size_t bytes, const char* what);
    void wrote(void* data, std::size_t bytes, const char* what);
    /// As if they were never written.
    void forget_written(void* data, std::size_t bytes);
    /// Copies bytes, and whether they have a value. Memory that is not the device's has one.
    void copy(void* to, const void* from, std::size_t bytes);

    std::size_t taken() const { return taken_; }

  private:
    std::map<const std::byte*, Block> blocks_;  ///< by their ends
    Block* last_ = nullptr;
    std::size_t taken_ = 0;
};

}  // namespace soft_gpu
