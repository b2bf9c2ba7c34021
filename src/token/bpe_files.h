// The files of byte-level BPE: vocab.json (token -> id), merges.txt (pairs, best first) and Hugging Face's
// tokenizer.json. Tokens are in the printable alphabet of token/byte_level.h. The parse functions take bytes; `file` is
// only named in errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "token/tokenizer.h"

namespace tera {

/// Token of each id; ids are 0..size-1 without gaps.
struct BpeVocab {
    std::vector<std::string> token_of_id;
};

/// Pairs of tokens; the rank of a pair is its place.
struct BpeMerges {
    std::vector<std::pair<std::string, std::string>> pairs;
    /// What Megatron's rule (drop the first line and what follows the last newline) lost besides header and nothing;
    /// empty if nothing was lost. One line each, to be shown as warnings.
    std::vector<std::string> warnings;
};

inline constexpr std::string_view end_of_text = "<|endoftext|>";

/// UsageError unless `bytes` is a JSON object that gives each of its n tokens one id of 0..n-1.
BpeVocab parse_vocab_json(std::string_view bytes, const std::string& file);

/// UsageError unless every line but the first holds two symbols.
BpeMerges parse_merges(std::string_view bytes, const std::string& file);

std::string vocab_json_text(const BpeVocab& vocab);
std::string merges_text(const BpeMerges& merges);
/// tokenizer.json that gives the same ids in Hugging Face `tokenizers`; <|endoftext|> is a special token there.
std::string tokenizer_json_text(const BpeVocab& vocab, const BpeMerges& merges);
/// tokenizer_config.json for `transformers`.
std::string tokenizer_config_text();

/// All four files, for Hugging Face programs.
std::vector<TokenizerFile> bpe_tokenizer_files(const BpeVocab& vocab, const BpeMerges& merges);

/// Whole file; UsageError if it cannot be read or is larger than `max_bytes`.
std::string read_token_file(const std::string& path, std::size_t max_bytes = std::size_t{1} << 30);

}  // namespace tera
