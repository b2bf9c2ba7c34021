// Uploader: host arrays on their way to the device, ahead of the work that reads them. Each put() copies through pinned
// memory on a stream of its own while the device still computes; slots are used in turn. On the CPU nothing is copied.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/engine.h"

namespace tera {

class Uploader {
  public:
    /// held: for how many put()s what was put is read, itself included.
    explicit Uploader(const Engine& engine, int held = 1);
    ~Uploader();
    Uploader(const Uploader&) = delete;
    Uploader& operator=(const Uploader&) = delete;

    using Bytes = std::span<const std::byte>;
    /// Where each piece can be read by work that is enqueued from now on, until so many more put()s have been called as
    /// it is held for; on the CPU the addresses are the pieces' own. An empty piece has no address.
    std::vector<const std::byte*> put(std::span<const Bytes> pieces);

    /// Takes the memory for put()s of so many bytes now.
    void reserve(std::size_t bytes_per_put);
    /// Bytes of device memory that pieces of this total size need, for planning.
    static std::size_t device_bytes(std::size_t bytes_per_put, int held = 1);

  private:
    struct Slots;
    std::unique_ptr<Slots> slots_;
};

}  // namespace tera
