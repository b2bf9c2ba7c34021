#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fuzz.h"

namespace tera::fuzz {

MemoryFile::MemoryFile(const uint8_t* data, size_t size) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (fd_ < 0 || write(fd_, data, size) != static_cast<ssize_t>(size)) __builtin_trap();
}

MemoryFile::~MemoryFile() { close(fd_); }

std::string MemoryFile::path() const { return "/proc/self/fd/" + std::to_string(fd_); }

}  // namespace tera::fuzz
