// Megatron's GPT2BPETokenizer: the GPT-2 pattern, then byte-level BPE. Strings like <|endoftext|> inside the text are
// plain characters; nothing is added before or after.
#pragma once

#include "token/bpe.h"
#include "token/bpe_files.h"
#include "token/tokenizer.h"

namespace tera {

class Gpt2BpeTokenizer : public Tokenizer {
  public:
    /// UsageError (naming `file`) if the vocabulary has no <|endoftext|>.
    Gpt2BpeTokenizer(BpeVocab vocab, BpeMerges merges, const std::string& file);

    std::unique_ptr<Encoder> make_encoder() const override;
    std::string decode(std::span<const std::int32_t> ids) const override;
    std::int64_t vocab_size() const override { return static_cast<std::int64_t>(vocab_.token_of_id.size()); }
    std::int32_t eod() const override { return eod_; }
    std::string name() const override { return "GPT2BPETokenizer"; }
    /// vocab.json, merges.txt, tokenizer.json, tokenizer_config.json.
    std::vector<TokenizerFile> files() const override;

  private:
    BpeVocab vocab_;
    BpeMerges merges_;
    BpeModel model_;
    std::vector<std::string> bytes_of_id_;
    std::int32_t eod_ = -1;
};

/// Reads both files; merges that Megatron's reading rule loses are named on stderr.
std::unique_ptr<Tokenizer> load_gpt2_bpe(const std::string& vocab_file, const std::string& merge_file);

}  // namespace tera
