// One block of lines, tokenised.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/input_blocks.h"
#include "data/preprocess.h"
#include "data/preprocess_lines.h"
#include "data/stage_seconds.h"
#include "token/tokenizer.h"

namespace tera {

/// The documents of one key in one block, one after the other.
struct KeyTokens {
    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> sequence_lengths;
    std::vector<std::size_t> document_tokens;     // tokens of each document
    std::vector<std::size_t> document_sequences;  // sequences of each document
};

/// A record that gives no document.
struct BadRecord {
    std::int64_t number;  // in the block, from 0
    std::string why;
    std::int64_t line = 0;  // of the file, where rows and lines are counted apart
};

struct TokenBlock {
    std::vector<KeyTokens> keys;
    std::vector<std::size_t> characters;  // of each document's line, with its end
    std::vector<std::size_t> bytes;
    std::int64_t records = 0;  // good and bad
    std::vector<BadRecord> bad;
    InputFormat format = InputFormat::json_lines;
    std::vector<std::string> problems;  // of the input, behind the records
    std::optional<std::string> fatal;
    StageSeconds seconds;
    InputPlace after;

    /// No records, of so many keys. The memory stays.
    void clear(std::size_t key_count);
};

/// What one worker needs besides the block.
class BlockTokenizer {
  public:
    /// With skip_invalid, goes on behind records that give no document; else stops at the first.
    BlockTokenizer(const Tokenizer& tokenizer, const PreprocessOptions& options);

    /// Replaces `out`.
    void tokenize(const InputBlock& block, TokenBlock& out);

  private:
    void tokenize_lines(std::string_view text, TokenBlock& out);
    void tokenize_rows(const TextColumns& rows, TokenBlock& out);
    bool add_bad(const std::string& why, std::size_t good, TokenBlock& out) const;
    template <class Texts>
    void add_document(const Texts& texts, KeyTokens& out);
    void add_sequence(std::string_view text, KeyTokens& out);

    std::unique_ptr<Encoder> encoder_;
    KeyedStrings line_;
    std::optional<std::int32_t> eod_;
    std::optional<SentenceSplitter> splitter_;
    std::vector<std::string_view> sentences_;
    bool skip_bad_;
    std::chrono::steady_clock::duration encoding_{};  // in the block at hand
};

}  // namespace tera
