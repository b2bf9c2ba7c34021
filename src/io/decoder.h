// One compression format each: gzip, zstd, xz, bzip2. A file is a row of members (frames, streams), each complete in
// itself.
#pragma once

#include <memory>
#include <span>

#include "io/byte_source.h"

namespace tera {

class Decoder {
  public:
    virtual ~Decoder() = default;
    Decoder(const Decoder&) = delete;
    Decoder& operator=(const Decoder&) = delete;

    struct Step {
        std::size_t taken = 0, made = 0;  ///< bytes of input used up, bytes of output written
        bool member_ended = false;
        const char* problem = nullptr;  ///< why the input cannot be decoded
    };
    /// Decodes as much as input and output allow, up to the end of a member.
    virtual Step decode(std::span<const char> in, std::span<char> out) = 0;
    /// Gets ready for the next member.
    virtual void restart() = 0;

  protected:
    Decoder() = default;
};

/// What a decoder may use for its window: more is refused, so that a hostile file cannot take all memory.
constexpr std::int64_t decoder_memory_limit = std::int64_t{256} << 20;

/// For any packing but plain.
std::unique_ptr<Decoder> make_decoder(Packing packing);

}  // namespace tera
