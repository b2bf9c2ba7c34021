#include "core/memory.h"

#include <sys/mman.h>

#include <cstring>

namespace tera {
namespace {

class HostMemory final : public MemorySource {
  public:
    Device device() const override { return Device::cpu; }
    std::byte* take(std::size_t bytes) override {
        void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) throw Error(cat("out of memory: could not get ", bytes >> 20, " MiB more for an arena"));
        madvise(p, bytes, MADV_HUGEPAGE);
        return static_cast<std::byte*>(p);
    }
    void give_back(std::byte* data, std::size_t bytes) override { munmap(data, bytes); }
    void zero(std::byte* data, std::size_t bytes) override { std::memset(data, 0, bytes); }
};

}  // namespace

MemorySource& host_memory() {
    static HostMemory memory;
    return memory;
}

}  // namespace tera
