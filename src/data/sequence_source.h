// Where token sequences come from: a .bin/.idx pair or made-up data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace tera {

/// Entry i of an unaligned little-endian int32 array.
inline std::int32_t load_length(const std::byte* lengths, std::int64_t i) {
    std::int32_t length;
    std::memcpy(&length, lengths + i * 4, 4);
    return length;
}

class SequenceSource {
  public:
    virtual ~SequenceSource() = default;

    /// Name for messages and cache keys: the path prefix, empty if there is none.
    virtual const std::string& path() const = 0;
    virtual std::int64_t size() const = 0;
    /// size() little-endian int32 values, at any alignment: the number of tokens of each sequence.
    virtual const std::byte* lengths() const = 0;
    /// Copies tokens [offset, offset + count) of sequence i; safe from any number of threads.
    virtual void get(std::int64_t i, std::int64_t offset, std::int64_t count, std::int32_t* out) const = 0;

    std::int32_t sequence_length(std::int64_t i) const { return load_length(lengths(), i); }
};

}  // namespace tera
