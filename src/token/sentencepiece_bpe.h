// BPE as SentencePiece does it: of all adjacent pairs whose concatenation is a piece, merge the one with the highest
// score, of equals the leftmost, until there is none.
//
// No piece of the usual models has a space (U+2581) behind another character. Then words, each with the spaces before
// it, cannot influence one another: they are merged one by one, and remembered. Models with other pieces are merged in
// one go.
#pragma once

#include <array>
#include <bit>
#include <string>

#include "token/pair_merger.h"
#include "token/sentencepiece_encoder.h"
#include "token/word_cache.h"

namespace tera {

/// Which pairs merge. Symbols are numbered: pieces by their ids, then characters that are only parts of pieces, and one
/// number for all other characters.
class PieceMerges {
  public:
    enum class Cut { nowhere, before_spaces, behind_spaces };

    PieceMerges(const SentencePieceModel& model, const std::string& file);

    const MergeRules& rules() const { return rules_; }
    /// `bytes` is one character.
    std::uint32_t symbol_of(std::string_view bytes) const;
    std::int32_t id_of(std::uint32_t symbol) const { return id_of_symbol_[symbol]; }
    Cut cut() const { return cut_; }

  private:
    struct CharSlot {
        std::uint32_t bytes = 0, symbol = 0;  // bytes 0: free
    };
    void index_characters(const SentencePieceModel& model);
    void find_rules(const SentencePieceModel& model, const std::string& file);
    void add_pairs(const SentencePieceModel& model, std::int32_t id, std::uint32_t merge,
                   std::vector<MergeRules::Pair>& pairs) const;
    void find_cut(const SentencePieceModel& model);

    MergeRules rules_;
    std::vector<CharSlot> chars_;  // open addressing, a power of two, at most half full
    std::size_t char_mask_ = 0;
    std::vector<std::int32_t> id_of_symbol_;
    std::uint32_t unknown_symbol_ = 0;
    Cut cut_ = Cut::nowhere;
};

class PieceMerger : public PieceEncoder {
  public:
    PieceMerger(const SentencePieceModel& model, const SentencePieceNormalizer& normalizer, const PieceMerges& merges);
    void encode(std::string_view normalized, std::vector<std::int32_t>& ids) override;

  private:
    void encode_cut(std::string_view text, std::vector<std::int32_t>& ids);
    void add_word(std::string_view word, std::vector<std::int32_t>& ids);
    void encode_words(std::vector<std::int32_t>& ids);
    void merge(std::string_view word, std::vector<std::int32_t>& ids);

    const SentencePieceModel& model_;
    const SentencePieceNormalizer& normalizer_;
    const PieceMerges& merges_;
    PieceWriter writer_, word_writer_;
    WordCache cache_;
    std::array<std::string_view, WordCache::most_words> words_;  // to be encoded together
    std::size_t word_count_ = 0;
    PairMerger merger_;
    std::vector<std::uint32_t> symbols_;  // of the word at hand
    std::vector<std::uint32_t> starts_;   // the first byte of each character
    std::vector<std::uint32_t> places_;   // the first character of each symbol that is left
};

}  // namespace tera
