// Cuts text into the pieces that byte-pair encoding never crosses.
//
// The pattern of GPT-2 is scanned by hand:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Every character belongs to exactly one piece. A byte that is not valid UTF-8 is a character of its own, neither
// letter nor number nor space, and stays in its piece as it is.
#pragma once

#include "token/unicode.h"

namespace tera {

/// End of the piece that begins at p; p < end.
const char* gpt2_piece_end(const char* p, const char* end, const CharClassTable& table);

}  // namespace tera
