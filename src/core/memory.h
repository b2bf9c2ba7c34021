// Where an arena's blocks come from.
#pragma once

#include <cstddef>

#include "core/tensor.h"

namespace tera {

class MemorySource {
  public:
    virtual ~MemorySource() = default;
    virtual Device device() const = 0;
    /// Throws Error when there is no more.
    virtual std::byte* take(std::size_t bytes) = 0;
    virtual void give_back(std::byte* data, std::size_t bytes) = 0;
    virtual void zero(std::byte* data, std::size_t bytes) = 0;
};

/// Anonymous memory of this process, in huge pages where the system has them.
MemorySource& host_memory();

}  // namespace tera
