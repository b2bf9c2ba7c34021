// Megatron's BertWordPieceLowerCase and BertWordPieceCase: BERT's words (token/bert_text.h) cut into the longest pieces
// of a vocabulary file. [BOS], [EOS] and <extra_id_i> are added behind it where they are missing; nothing is added to
// texts, and special tokens inside them are plain characters.
#pragma once

#include <array>

#include "token/tokenizer.h"
#include "token/wordpiece.h"

namespace tera {

class BertTokenizer : public Tokenizer {
  public:
    struct Options {
        bool lower_case = true;
        std::int64_t extra_ids = 0;
    };
    /// `bytes` is the vocab.txt, a token on each line; `file` is only named in errors. UsageError for a token that is
    /// there twice, and if one of [PAD] [UNK] [CLS] [SEP] [MASK] is missing.
    BertTokenizer(std::string_view bytes, const std::string& file, Options options);

    std::unique_ptr<Encoder> make_encoder() const override;
    /// Tokens with spaces between them, pieces of words joined, and no space before punctuation, as Megatron does it.
    std::string decode(std::span<const std::int32_t> ids) const override;
    std::int64_t vocab_size() const override { return static_cast<std::int64_t>(tokens_.size()); }
    std::int32_t eod() const override { return *eos(); }
    std::optional<std::int32_t> pad() const override { return pad_; }
    std::optional<std::int32_t> bos() const override { return bos_; }
    std::optional<std::int32_t> eos() const override { return eos_; }
    std::optional<std::int32_t> cls() const override { return cls_; }
    std::optional<std::int32_t> sep() const override { return sep_; }
    std::optional<std::int32_t> mask() const override { return mask_; }
    std::vector<std::int32_t> sentinels() const override { return sentinels_; }
    std::string name() const override { return options_.lower_case ? "BertWordPieceLowerCase" : "BertWordPieceCase"; }
    /// vocab.txt, with the added tokens, and tokenizer_config.json.
    std::vector<TokenizerFile> files() const override;

    /// By id; pieces that continue a word begin with ##.
    const std::vector<std::string>& tokens() const { return tokens_; }

  private:
    struct Vocab;
    BertTokenizer(Vocab vocab, const std::string& file, Options options);

    Options options_;
    std::vector<std::string> tokens_;
    std::int32_t pad_, bos_, eos_, cls_, sep_, mask_;
    std::vector<std::int32_t> sentinels_;
    WordPieceModel model_;
};

std::unique_ptr<Tokenizer> load_bert(const std::string& vocab_file, BertTokenizer::Options options);

}  // namespace tera
