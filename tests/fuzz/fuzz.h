// Fuzz targets: one fuzz_<what>.cpp for each parser of foreign bytes. Each defines the two functions below and must
// hold for any input whatever: it is read, or refused with UsageError; nothing else.
//
// With clang they are linked to libFuzzer (coverage-guided); with any other compiler to standalone_driver.cpp, which
// mutates the seeds blindly. Both take -max_total_time=SECONDS, -seed=N and files to replay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace tera::fuzz {

/// Valid inputs, and any that once broke something: where mutation starts.
std::vector<std::string> seeds();

/// Runs a parser over the input; a refusal must be one line.
template <class Parse>
void attempt(Parse&& parse) {
    try {
        parse();
    } catch (const UsageError& refusal) {
        const std::string_view text = refusal.what();
        if (text.empty() || text.find('\n') != std::string_view::npos) __builtin_trap();
    }
}

/// A file in memory with this content, for parsers that take a path.
class MemoryFile {
  public:
    MemoryFile(const uint8_t* data, size_t size);
    ~MemoryFile();
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    std::string path() const;

  private:
    int fd_;
};

}  // namespace tera::fuzz
