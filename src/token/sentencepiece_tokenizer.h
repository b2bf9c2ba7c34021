// Megatron's three tokenizers over a SentencePiece model.
//
// SentencePieceTokenizer     adds <CLS> <SEP> <EOD> <MASK>, the pad, bos and eos pieces and <extra_id_i> to the pieces
//                            where they are missing, and finds all of these inside text; eod is <EOD>
// GPTSentencePieceTokenizer  the pieces as they are; eod is the eos piece
// Llama2Tokenizer            the same with the bos piece in front of every text, empty ones too
#pragma once

#include "token/piece_trie.h"
#include "token/sentencepiece_encoder.h"
#include "token/tokenizer.h"

namespace tera {

enum class SentencePieceFlavour { megatron, gpt, llama2 };

class SentencePieceTokenizer : public Tokenizer {
  public:
    /// `bytes` is the content of the .model file; `file` is only named in errors.
    SentencePieceTokenizer(std::string bytes, const std::string& file, SentencePieceFlavour flavour,
                           std::int64_t extra_ids = 0);

    std::unique_ptr<Encoder> make_encoder() const override;
    std::string decode(std::span<const std::int32_t> ids) const override;
    std::int64_t vocab_size() const override { return core_.model().size() + static_cast<std::int64_t>(added_.size()); }
    std::int32_t eod() const override { return eod_; }
    std::optional<std::int32_t> pad() const override { return pad_; }
    std::optional<std::int32_t> bos() const override { return bos_; }
    std::optional<std::int32_t> eos() const override { return eos_; }
    std::optional<std::int32_t> cls() const override { return cls_; }
    std::optional<std::int32_t> sep() const override { return sep_; }
    std::optional<std::int32_t> mask() const override { return mask_; }
    std::vector<std::int32_t> sentinels() const override { return sentinels_; }
    std::string name() const override;
    /// tokenizer.model.
    std::vector<TokenizerFile> files() const override { return {{"tokenizer.model", bytes_}}; }

    struct Special {
        std::string text;
        std::int32_t id;
    };
    const std::vector<Special>& specials() const { return specials_; }
    /// From their texts to their places in specials().
    const PieceTrie& special_texts() const { return special_texts_; }
    const SentencePieceCore& core() const { return core_; }
    SentencePieceFlavour flavour() const { return flavour_; }

  private:
    std::int32_t add_special(const std::string& text);
    void add_specials(std::int64_t extra_ids);

    std::string bytes_;
    SentencePieceCore core_;
    SentencePieceFlavour flavour_;
    std::vector<std::string> added_;  // texts of the ids behind the pieces
    std::vector<Special> specials_;   // in the order they were added
    PieceTrie special_texts_;
    std::int32_t eod_ = -1;
    std::optional<std::int32_t> pad_, bos_, eos_, cls_, sep_, mask_;
    std::vector<std::int32_t> sentinels_;
};

std::unique_ptr<Tokenizer> load_sentencepiece(const std::string& path, SentencePieceFlavour flavour,
                                              std::int64_t extra_ids = 0);

}  // namespace tera
