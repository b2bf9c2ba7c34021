// Byte-pair encoding over characters, as Hugging Face does it for models that are not byte-level (Llama 2, Mistral 7B,
// Gemma): a character outside the vocabulary is its bytes ("<0xE4>" ...) or the unknown token.
//
// Of all adjacent pairs with a rank the best is merged first, of equal ones the leftmost, one at a time. A piece may be
// a whole document here, so it is cut before each U+2581 ("▁", a space) that no merge can join to what stands before
// it; the words between are merged by themselves, which gives the same and lets them be remembered.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "token/hf_pretokenizer.h"
#include "token/pair_merger.h"
#include "token/word_cache.h"

namespace tera {

struct HfBpeOptions {
    std::int32_t unknown = -1;       // id; below 0: characters outside the vocabulary vanish
    bool fuse_unknown = false;       // unknown characters in a row are one token
    bool byte_fallback = false;      // before the unknown token
    bool whole_piece_first = false;  // a piece that is in the vocabulary is not merged
};

class HfBpeModel {
  public:
    using Vocab = std::unordered_map<std::string, std::int32_t>;

    /// Halves and wholes of all merges must be in the vocabulary. The rank of a merge is its place; of equal ones the
    /// last counts.
    HfBpeModel(Vocab vocab, const std::vector<std::pair<std::string, std::string>>& merges, HfBpeOptions options);

    /// Symbols are ids.
    const MergeRules& rules() const { return rules_; }
    std::int32_t id_of(const std::string& text) const {
        const auto found = vocab_.find(text);
        return found == vocab_.end() ? -1 : found->second;
    }
    /// Id of a character; below 0: not in the vocabulary.
    std::int32_t id_of_char(std::uint32_t c) const { return char_ids_[block_of_[c >> 8] * 256u + (c & 255)]; }
    std::int32_t id_of_byte(unsigned char byte) const { return byte_ids_[byte]; }
    const HfBpeOptions& options() const { return options_; }

    /// End of the word that begins at `from`: the first place behind it where cutting changes nothing.
    std::size_t word_end(std::string_view text, std::size_t from) const;

  private:
    void index_chars();
    void find_safe_cuts(const std::vector<std::pair<std::string, std::string>>& merges);

    Vocab vocab_;
    HfBpeOptions options_;
    MergeRules rules_;
    std::vector<std::uint16_t> block_of_;
    std::vector<std::int32_t> char_ids_;
    std::vector<std::int32_t> byte_ids_;
    bool may_cut_ = false;
    std::unordered_set<std::uint32_t> joins_mark_;  // characters that stand before U+2581 inside some merge
};

class HfBpeEncoder : public HfPieceEncoder {
  public:
    /// The model must outlive the encoder.
    explicit HfBpeEncoder(const HfBpeModel& model) : model_(model), merger_(model.rules()) {}
    void encode(std::string_view piece, std::vector<std::int32_t>& ids) override;

  private:
    void encode_word(std::string_view word, std::vector<std::int32_t>& ids);
    void load(std::string_view word);

    const HfBpeModel& model_;
    WordCache cache_;
    PairMerger merger_;
    std::vector<std::uint32_t> symbols_;
};

}  // namespace tera
