// Unigram as SentencePiece does it: the segmentation whose scores have the highest sum, by Viterbi over the whole text.
//
// The sums are 32-bit floats that run from the beginning of the text, and are brought back to zero when they get large.
// Their rounding decides between segmentations that are nearly equal, so to give the same ids the sums must run the
// same way: words cannot be looked up one by one. (Scores and limits as in SentencePiece 0.2.2; releases before 0.2.1
// round elsewhere and choose otherwise between equals.)
#pragma once

#include "token/piece_trie.h"
#include "token/sentencepiece_encoder.h"

namespace tera {

class UnigramTable {
  public:
    explicit UnigramTable(const SentencePieceModel& model);

    const PieceTrie& trie() const { return trie_; }
    /// Score of a piece of `length` bytes. User-defined pieces score so high that they are always taken.
    float score(std::int32_t id, std::size_t length) const {
        const auto at = static_cast<std::size_t>(id);
        return is_user_defined_[at] ? 0.1f * static_cast<float>(length - 1) : scores_[at];
    }
    float unknown_score() const { return unknown_score_; }

  private:
    PieceTrie trie_;  // without unused pieces
    std::vector<float> scores_;
    std::vector<bool> is_user_defined_;
    float unknown_score_;
};

class UnigramEncoder : public PieceEncoder {
  public:
    UnigramEncoder(const SentencePieceModel& model, const UnigramTable& table)
        : model_(model), table_(table), writer_(model) {}
    void encode(std::string_view normalized, std::vector<std::int32_t>& ids) override;

  private:
    void find_best(std::string_view text);
    void bring_back(std::size_t from, std::size_t last);

    /// The best way to get to the end of a character.
    struct Step {
        float score;
        std::int32_t id;
        std::uint32_t from;  // byte where its last piece begins; `unreached` if there is no way
    };
    static constexpr std::uint32_t unreached = 0xFFFFFFFF;

    const SentencePieceModel& model_;
    const UnigramTable& table_;
    PieceWriter writer_;
    std::vector<Step> steps_;
    std::vector<std::uint32_t> ends_;
};

}  // namespace tera
