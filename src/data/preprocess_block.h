// One block of lines, tokenised.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/preprocess_lines.h"
#include "token/tokenizer.h"

namespace tera {

/// The documents of one key in one block, one after the other.
struct KeyTokens {
    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> sequence_lengths;
    std::vector<std::size_t> document_tokens;     // tokens of each document
    std::vector<std::size_t> document_sequences;  // sequences of each document
};

struct TokenBlock {
    std::vector<KeyTokens> keys;
    std::vector<std::size_t> characters;  // of each line, with its end
    std::vector<std::size_t> bytes;
    std::optional<std::string> problem;  // with the line after the last good one
};

/// What one worker needs besides the block.
class BlockTokenizer {
  public:
    BlockTokenizer(const Tokenizer& tokenizer, const std::vector<std::string>& keys, bool append_eod);

    /// Stops at the first bad line.
    TokenBlock tokenize(std::string_view block);

  private:
    void add_document(const std::vector<std::string>& sentences, KeyTokens& out);

    std::unique_ptr<Encoder> encoder_;
    KeyedStrings line_;
    std::optional<std::int32_t> eod_;
};

}  // namespace tera
