// WordPiece: a word is cut from the front into the longest pieces the vocabulary has; pieces that do not begin the word
// carry a prefix ("##") there. A word that cannot be cut to its end, or is too long, is one unknown token.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "token/piece_trie.h"

namespace tera {

struct WordPieceOptions {
    std::string prefix = "##";
    std::int32_t unknown = 0;     // id
    std::size_t max_chars = 100;  // code points; a longer word is unknown
};

class WordPieceModel {
  public:
    /// Tokens must be different; their bytes are copied.
    WordPieceModel(std::span<const std::pair<std::string_view, std::int32_t>> vocab, WordPieceOptions options);

    /// Appends the ids of one word (valid UTF-8, not empty).
    void encode(std::string_view word, std::vector<std::int32_t>& ids) const;

  private:
    WordPieceOptions options_;
    PieceTrie first_, next_;  // next_ without the prefix
};

}  // namespace tera
