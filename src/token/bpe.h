// Byte-pair encoding of one piece of text.
//
// Rule: take the adjacent pair of symbols with the lowest rank, merge all its occurrences from left to right without
// overlap, repeat until no pair has a rank. Short pieces do just that in an array; long pieces keep the places of each
// rank in buckets, so that the work stays near linear in the length (see BpeMerger).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "token/bpe_files.h"

namespace tera {

/// What the reference implementations do differently.
struct BpeOptions {
    /// Which of several pairs goes first. Tokenizers that were learnt have no pair that outranks the merges which made
    /// its halves; then both give the same.
    enum class Order {
        whole_rank,  // GPT-2 in Python: the best pair everywhere, left to right, before looking for the next best
        leftmost,    // Hugging Face, tiktoken: only its first place, then look again
    };
    Order order = Order::whole_rank;
    bool whole_piece_first = false;  // a piece that is in the vocabulary is not merged (ignore_merges, tiktoken)
    bool drop_unknown = false;       // bytes outside the vocabulary vanish before merging (Hugging Face); else id 0
};

/// Symbols are numbered: 0..255 are the bytes, then every other symbol that the merges name.
class BpeModel {
  public:
    static constexpr std::uint32_t no_rank = 0xFFFFFFFF;
    struct Merge {
        std::uint32_t rank = no_rank;
        std::uint32_t symbol = 0;
    };

    /// Tokens in the printable alphabet (token/byte_level.h). An id without a token has an empty string.
    BpeModel(const BpeVocab& vocab, const BpeMerges& merges, const BpeOptions& options = {});
    /// tiktoken: any two neighbours merge whose bytes together are a token, the lowest rank first. `tokens` are bytes,
    /// all single ones among them; the rank is the place in the list, the id first_id + rank.
    static BpeModel from_ranks(const std::vector<std::string>& tokens, std::int32_t first_id = 0);

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
    /// The id of a piece that is not to be merged, or -1.
    std::int32_t whole_piece(std::string_view piece) const {
        if (whole_pieces_.empty()) return -1;
        const auto found = whole_pieces_.find(piece);
        return found == whole_pieces_.end() ? -1 : found->second;
    }
    bool drops(unsigned char byte) const { return dropped_[byte]; }
    bool drops_any() const { return drops_any_; }
    /// True if places of one rank cannot all be merged before looking again.
    bool needs_leftmost() const { return needs_leftmost_; }

  private:
    BpeModel() : byte_pairs_(1 << 16) {}
    struct TextHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
    };
    struct Slot {
        std::uint32_t left = 0, right = 0;
        Merge merge;
    };
    std::size_t slot_of(std::uint32_t left, std::uint32_t right) const {
        const std::uint64_t key = static_cast<std::uint64_t>(left) << 32 | right;
        return static_cast<std::size_t>(key * 0x9E3779B97F4A7C15 >> shift_);
    }
    void reserve(std::size_t pairs);
    void insert(std::uint32_t left, std::uint32_t right, Merge merge);
    bool outranks_its_halves() const;

    std::vector<Merge> byte_pairs_;
    std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
    std::size_t mask_ = 0;
    int shift_ = 0;
    std::vector<std::int32_t> id_of_symbol_;
    std::uint32_t rank_count_ = 0;
    std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> whole_pieces_;
    std::array<bool, 256> dropped_{};
    bool drops_any_ = false;
    bool needs_leftmost_ = false;
};

/// Scratch memory for merging; one per thread.
class BpeMerger {
  public:
    explicit BpeMerger(const BpeModel& model) : model_(model) {}

    /// Appends the ids of a piece.
    void encode(std::string_view piece, std::vector<std::int32_t>& ids);

  private:
    void load(std::string_view piece);
    void merge_short();
    void merge_long();
    void merge_leftmost();
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
