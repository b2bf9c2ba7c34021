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

#include "token/piece_cache.h"
#include "token/sentencepiece_encoder.h"

namespace tera {

/// Which pairs merge. Symbols are numbered: pieces by their ids, then characters that are only parts of pieces, and one
/// number for all other characters.
class PieceMerges {
  public:
    static constexpr std::uint32_t no_rank = 0xFFFFFFFF;
    struct Merge {
        std::uint32_t rank = no_rank;  // of the score; the highest score has 0
        std::uint32_t symbol = 0;
    };
    enum class Cut { nowhere, before_spaces, behind_spaces };

    PieceMerges(const SentencePieceModel& model, const std::string& file);

    Merge find(std::uint32_t left, std::uint32_t right) const {
        for (std::size_t at = slot_of(left, right);; at = (at + 1) & mask_) {
            const Slot& slot = slots_[at];
            if (slot.left == left && slot.right == right) return slot.merge;
            if (slot.merge.rank == no_rank) return {};
        }
    }
    /// `bytes` is one character.
    std::uint32_t symbol_of(std::string_view bytes) const;
    std::int32_t id_of(std::uint32_t symbol) const { return id_of_symbol_[symbol]; }
    std::uint32_t rank_count() const { return rank_count_; }
    Cut cut() const { return cut_; }

  private:
    struct Slot {
        std::uint32_t left = 0, right = 0;
        Merge merge;
    };
    struct CharSlot {
        std::uint32_t bytes = 0, symbol = 0;  // bytes 0: free
    };
    std::size_t slot_of(std::uint32_t left, std::uint32_t right) const {
        const std::uint64_t key = static_cast<std::uint64_t>(left) << 32 | right;
        return static_cast<std::size_t>(key * 0x9E3779B97F4A7C15 >> shift_);
    }
    void index_characters(const SentencePieceModel& model);
    void add_pairs(const SentencePieceModel& model, std::int32_t id, std::uint32_t rank);
    void insert(std::uint32_t left, std::uint32_t right, Merge merge);
    void find_cut(const SentencePieceModel& model);

    std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
    std::size_t mask_ = 0;
    int shift_ = 0;
    std::vector<CharSlot> chars_;  // open addressing as well
    std::size_t char_mask_ = 0;
    std::vector<std::int32_t> id_of_symbol_;
    std::uint32_t unknown_symbol_ = 0;
    std::uint32_t rank_count_ = 0;
    Cut cut_ = Cut::nowhere;
};

class PieceMerger : public PieceEncoder {
  public:
    PieceMerger(const SentencePieceModel& model, const SentencePieceNormalizer& normalizer, const PieceMerges& merges);
    void encode(std::string_view normalized, std::vector<std::int32_t>& ids) override;

  private:
    void encode_cut(std::string_view text, std::vector<std::int32_t>& ids);
    void encode_word(std::string_view word, std::vector<std::int32_t>& ids);
    void merge(std::string_view word);
    void merge_short();
    void merge_long();
    void queue_pair(std::uint32_t at);

    using ShortCache = PieceCache<2, 11, 15>;  // 4 MiB of 64-byte slots
    using LongCache = PieceCache<4, 23, 13>;   // 2 MiB of 128-byte slots
    /// Places of one rank, handed out in rising order. They mostly come in that order; the others wait in a heap.
    struct Places {
        std::vector<std::uint32_t> rising, heap;
        std::size_t next = 0;
        bool empty() const { return next == rising.size() && heap.empty(); }
        void push(std::uint32_t place);
        std::uint32_t pop();
    };

    const SentencePieceModel& model_;
    const SentencePieceNormalizer& normalizer_;
    const PieceMerges& merges_;
    PieceWriter writer_, word_writer_;
    ShortCache short_cache_;
    LongCache long_cache_;
    std::vector<std::int32_t> word_ids_;
    // The symbols of the word at hand: number, first byte, rank of the pair with the next.
    std::vector<std::uint32_t> symbols_, starts_, ranks_;
    std::vector<std::uint32_t> next_, previous_;
    std::vector<Places> places_of_;  // by rank
    std::vector<std::uint32_t> open_ranks_;
};

}  // namespace tera
