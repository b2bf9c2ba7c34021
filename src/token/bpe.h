// Byte-pair encoding of one piece of text.
//
// Rule: take the adjacent pair of symbols with the lowest rank, merge all its occurrences from left to right without
// overlap, repeat until no pair has a rank. Short pieces do just that in an array; long pieces keep the places of each
// rank in buckets, so that the work stays near linear in the length (see BpeMerger).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "token/bpe_files.h"

namespace tera {

/// Symbols are numbered: 0..255 are the bytes, then every other symbol that the merges name.
class BpeModel {
  public:
    static constexpr std::uint32_t no_rank = 0xFFFFFFFF;
    struct Merge {
        std::uint32_t rank = no_rank;
        std::uint32_t symbol = 0;
    };

    BpeModel(const BpeVocab& vocab, const BpeMerges& merges);

    Merge find(std::uint32_t left, std::uint32_t right) const {
        if ((left | right) < 256) return byte_pairs_[left << 8 | right];
        for (std::size_t at = slot_of(left, right);; at = (at + 1) & mask_) {
            const Slot& slot = slots_[at];
            if (slot.left == left && slot.right == right) return slot.merge;
            if (slot.merge.rank == no_rank) return {};
        }
    }
    /// Vocabulary id of a symbol; 0 if the vocabulary lacks it.
    std::int32_t id_of(std::uint32_t symbol) const { return id_of_symbol_[symbol]; }
    std::uint32_t rank_count() const { return rank_count_; }

  private:
    struct Slot {
        std::uint32_t left = 0, right = 0;
        Merge merge;
    };
    std::size_t slot_of(std::uint32_t left, std::uint32_t right) const {
        const std::uint64_t key = static_cast<std::uint64_t>(left) << 32 | right;
        return static_cast<std::size_t>(key * 0x9E3779B97F4A7C15 >> shift_);
    }
    void insert(std::uint32_t left, std::uint32_t right, Merge merge);

    std::vector<Merge> byte_pairs_;
    std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
    std::size_t mask_ = 0;
    int shift_ = 0;
    std::vector<std::int32_t> id_of_symbol_;
    std::uint32_t rank_count_ = 0;
};

/// Scratch memory for merging; one per thread.
class BpeMerger {
  public:
    explicit BpeMerger(const BpeModel& model) : model_(model) {}

    /// Appends the ids of a piece.
    void encode(std::string_view piece, std::vector<std::int32_t>& ids);

  private:
    void merge_short(std::string_view piece);
    void merge_long(std::string_view piece);
    void queue_pair(std::uint32_t left_at);
    void merge_at(std::uint32_t at, std::uint32_t rank);

    const BpeModel& model_;
    std::vector<std::uint32_t> symbols_;
    std::vector<std::uint32_t> ranks_;
    std::vector<std::uint32_t> next_, previous_;         // of each living symbol of a long piece
    std::vector<std::vector<std::uint32_t>> places_of_;  // by rank: where its pair was seen to begin
    std::vector<std::uint32_t> open_ranks_;              // min-heap of the ranks with places
};

}  // namespace tera
