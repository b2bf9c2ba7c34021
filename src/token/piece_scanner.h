// Cuts text into pieces many at a time: where they begin is worked out for 64 bytes at once with the masks of
// token/char_blocks.h. What a block cannot tell (pieces longer than it, spaces beyond ASCII, invalid bytes, the end of
// the text) is left to piece_end() of token/pretokenize.h, which gives the same pieces one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "token/pretokenize.h"

namespace tera {

class PieceScanner {
  public:
    /// Least room for next().
    static constexpr std::size_t least_room = 128;

    PieceScanner(PretokenPattern pattern, std::string_view text)
        : pattern_(pattern), p_(text.data()), end_(text.data() + text.size()) {}

    /// Where the next pieces begin.
    const char* position() const { return p_; }
    /// Writes where the next pieces end, in bytes from where position() was before; returns how many, 0 at the end of
    /// the text. `ends` has `room` elements, at least least_room.
    std::size_t next(std::uint32_t* ends, std::size_t room);

  private:
    template <PretokenPattern pattern>
    std::size_t scan(std::uint32_t* ends, std::size_t room);

    PretokenPattern pattern_;
    const char* p_;
    const char* end_;
};

}  // namespace tera
