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
#include "token/piece_cache.h"

namespace tera {

struct HfBpeOptions {
    std::int32_t unknown = -1;       // id; below 0: characters outside the vocabulary vanish
    bool fuse_unknown = false;       // unknown characters in a row are one token
    bool byte_fallback = false;      // before the unknown token
    bool whole_piece_first = false;  // a piece that is in the vocabulary is not merged
};

class HfBpeModel {
  public:
    static constexpr std::uint32_t no_rank = 0xFFFFFFFF;
    struct Merge {
        std::uint32_t rank = no_rank;
        std::int32_t id = -1;
    };
    using Vocab = std::unordered_map<std::string, std::int32_t>;

    /// Halves and wholes of all merges must be in the vocabulary. The rank of a merge is its place; of equal ones the
    /// last counts.
    HfBpeModel(Vocab vocab, const std::vector<std::pair<std::string, std::string>>& merges, HfBpeOptions options);

    Merge find(std::int32_t left, std::int32_t right) const {
        const std::uint64_t key = key_of(left, right);
        for (std::size_t at = key * 0x9E3779B97F4A7C15 >> shift_;; at = (at + 1) & mask_) {
            const Slot& slot = slots_[at];
            if (slot.key == key) return slot.merge;
            if (slot.merge.rank == no_rank) return {};
        }
    }
    std::int32_t id_of(const std::string& text) const {
        const auto found = vocab_.find(text);
        return found == vocab_.end() ? -1 : found->second;
    }
    /// Id of a character; below 0: not in the vocabulary.
    std::int32_t id_of_char(std::uint32_t c) const { return char_ids_[block_of_[c >> 8] * 256u + (c & 255)]; }
    std::int32_t id_of_byte(unsigned char byte) const { return byte_ids_[byte]; }
    std::size_t rank_count() const { return rank_count_; }
    const HfBpeOptions& options() const { return options_; }

    /// End of the word that begins at `from`: the first place behind it where cutting changes nothing.
    std::size_t word_end(std::string_view text, std::size_t from) const;

  private:
    struct Slot {
        std::uint64_t key = 0;
        Merge merge;
    };
    static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
        return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
    }
    void insert(std::int32_t left, std::int32_t right, Merge merge);
    void index_chars();
    void find_safe_cuts(const std::vector<std::pair<std::string, std::string>>& merges);

    Vocab vocab_;
    HfBpeOptions options_;
    std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
    std::size_t mask_ = 0;
    int shift_ = 0;
    std::vector<std::uint16_t> block_of_;
    std::vector<std::int32_t> char_ids_;
    std::vector<std::int32_t> byte_ids_;
    std::size_t rank_count_ = 0;
    bool may_cut_ = false;
    std::unordered_set<std::uint32_t> joins_mark_;  // characters that stand before U+2581 inside some merge
};

class HfBpeEncoder : public HfPieceEncoder {
  public:
    /// The model must outlive the encoder.
    explicit HfBpeEncoder(const HfBpeModel& model) : model_(model) {}
    void encode(std::string_view piece, std::vector<std::int32_t>& ids) override;

  private:
    void encode_word(std::string_view word, std::vector<std::int32_t>& ids);
    void load(std::string_view word);
    void merge_short();
    void merge_long();
    void queue_pair(std::uint32_t at);
    void merge_at(std::uint32_t at, std::uint32_t rank);

    /// Where the pair of one rank was seen to begin. Places are taken from the left; those that come when some have
    /// been taken wait apart.
    struct Bucket {
        std::vector<std::uint32_t> places;
        std::vector<std::uint32_t> late;  // min-heap
        std::size_t next = 0;             // all before is taken
        bool is_sorted = false;
        bool empty() const { return next == places.size() && late.empty(); }
    };
    std::uint32_t take(Bucket& bucket);

    const HfBpeModel& model_;
    PieceCache<4, 7, 14> cache_;
    std::vector<std::int32_t> symbols_;  // ids; below 0 in a long word: merged into the one before
    std::vector<std::uint32_t> ranks_;
    std::vector<std::uint32_t> next_, previous_;
    std::vector<Bucket> buckets_;            // by rank
    std::vector<std::uint32_t> open_ranks_;  // min-heap of the ranks with places
};

}  // namespace tera
