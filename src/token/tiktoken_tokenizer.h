// Megatron's TikTokenizer: byte-level BPE by rank, special tokens before the vocabulary; and vocabularies of OpenAI and
// Meta in .tiktoken files, with their special tokens behind it. Special tokens inside texts are plain characters, and
// nothing is added to texts.
#pragma once

#include "token/bpe.h"
#include "token/pretokenize.h"
#include "token/tokenizer.h"

namespace tera {

/// What makes up one.
struct TiktokenVocab {
    std::vector<std::string> tokens;  // bytes, in the order of ranks
    std::int32_t first_id = 0;        // of the token with rank 0
    PretokenPattern pattern = PretokenPattern::tekken_v1;
    std::vector<std::pair<std::int32_t, std::string>> specials;  // ids and names; all others are those of tokens
    std::int64_t size = 0;                                       // one more than the highest id
    std::int32_t eod = -1;
    std::optional<std::int32_t> bos, eos;
};

class TiktokenTokenizer : public Tokenizer {
  public:
    explicit TiktokenTokenizer(TiktokenVocab vocab);

    std::unique_ptr<Encoder> make_encoder() const override;
    /// Special tokens give their names.
    std::string decode(std::span<const std::int32_t> ids) const override;
    std::int64_t vocab_size() const override { return vocab_.size; }
    std::int32_t eod() const override { return vocab_.eod; }
    std::optional<std::int32_t> bos() const override { return vocab_.bos; }
    std::optional<std::int32_t> eos() const override { return vocab_.eos; }
    std::string name() const override { return "TikTokenizer"; }
    std::uint32_t checksum() const override;

  private:
    TiktokenVocab vocab_;
    BpeModel model_;
};

/// A .json file with --tiktoken-pattern v1 or v2, or a .tiktoken file, packed or not: that of cl100k_base, o200k_base,
/// r50k_base or Llama 3, or another one with a --tiktoken-pattern (v1, v2, gpt2, cl100k, o200k or llama3), whose
/// <|endoftext|> is the id behind its tokens.
std::unique_ptr<Tokenizer> load_tiktoken(const TokenizerConfig& config);

}  // namespace tera
