// Byte-pair encoding of one piece of text.
//
// Rule: take the adjacent pair of symbols with the lowest rank, merge all its occurrences from left to right without
// overlap, repeat until no pair has a rank. Short pieces look for the lowest rank in an array; long pieces keep the
// places of each rank in buckets, so that the work stays near linear in the length (see BpeMerger).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "token/bpe_files.h"
#include "token/pair_table.h"

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
    static constexpr std::uint32_t no_rank = PairTable::none;
    static constexpr std::size_t most_symbols = PairTable::most_symbols, most_ranks = PairTable::most_values;

    /// Tokens in the printable alphabet (token/byte_level.h). An id without a token has an empty string. UsageError
    /// beyond most_symbols or most_ranks.
    BpeModel(const BpeVocab& vocab, const BpeMerges& merges, const BpeOptions& options = {});
    /// tiktoken: any two neighbours merge whose bytes together are a token, the lowest rank first. `tokens` are bytes,
    /// all single ones among them; the rank is the place in the list, the id first_id + rank.
    static BpeModel from_ranks(const std::vector<std::string>& tokens, std::int32_t first_id = 0);

    /// The rank at which two neighbours merge, or no_rank. The second is quicker for two bytes.
    std::uint32_t rank_of(std::uint32_t left, std::uint32_t right) const { return ranks_.find(left, right); }
    std::uint32_t rank_of_bytes(std::uint32_t left, std::uint32_t right) const {
        return byte_ranks_[left << 8 | right];
    }
    /// What a merge makes.
    std::uint32_t symbol_of(std::uint32_t rank) const {
        return is_counted_ ? rank + first_symbol_ : symbol_of_rank_[rank];
    }
    /// Vocabulary id of a symbol; 0 if the vocabulary lacks it.
    std::int32_t id_of(std::uint32_t symbol) const { return id_of_symbol_[symbol]; }
    std::uint32_t rank_count() const { return static_cast<std::uint32_t>(symbol_of_rank_.size()); }
    /// The id of a piece that is a token, but that merging would not make, where such pieces are not merged; else -1.
    std::int32_t whole_piece(std::string_view piece) const {
        if (whole_pieces_.empty()) return -1;
        const auto found = whole_pieces_.find(piece);
        return found == whole_pieces_.end() ? -1 : found->second;
    }
    bool drops(unsigned char byte) const { return dropped_[byte]; }
    /// True if some pair outranks a merge that makes one of its halves, so that the order of merging matters.
    bool is_unordered() const { return is_unordered_; }
    BpeOptions::Order order() const { return order_; }

  private:
    struct TextHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
    };
    struct Pair {
        std::uint32_t left, right, rank;
    };
    struct Tokens {
        std::vector<std::string> bytes_of_symbol;                        // empty: none that text could hold
        std::vector<std::pair<std::string, std::int32_t>> whole_pieces;  // not to be merged
    };

    BpeModel() = default;
    void finish(std::vector<Pair> pairs, const Tokens& tokens);
    bool is_unordered(const std::vector<Pair>& pairs) const;
    void index(const std::vector<Pair>& pairs);
    void find_whole_pieces(const Tokens& tokens);
    std::vector<Pair> used_pairs(const std::vector<Pair>& pairs, const Tokens& tokens) const;

    std::vector<std::uint32_t> byte_ranks_;  // of pairs of bytes
    PairTable ranks_;                        // of other pairs
    std::vector<std::uint32_t> symbol_of_rank_;
    bool is_counted_ = false;  // the merges make symbols one after the other, from that of rank 0 on
    std::uint32_t first_symbol_ = 0;
    std::vector<std::int32_t> id_of_symbol_;
    std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> whole_pieces_;
    std::array<bool, 256> dropped_{};
    BpeOptions::Order order_ = BpeOptions::Order::leftmost;
    bool is_unordered_ = false;
};

/// Merges as the rule says. Scratch memory; one per thread.
class BpeMerger {
  public:
    explicit BpeMerger(const BpeModel& model) : model_(model) {}

    /// Appends the ids of a piece.
    void encode(std::string_view piece, std::vector<std::int32_t>& ids);

    struct LastMerge {
        std::uint32_t left = 0, right = 0, rank = BpeModel::no_rank;  // no_rank: nothing was merged
        std::uint32_t symbols = 0;                                    // left in the end
    };
    /// Merges a piece of at most most_short bytes, always the leftmost pair of the lowest rank.
    LastMerge merge_short(std::string_view piece);
    static constexpr std::size_t most_short = 254;

  private:
    std::uint32_t load_short(std::string_view piece);
    template <class Keys>
    LastMerge merge_loaded(std::uint32_t size, Keys keys);
    void load(std::string_view piece);
    void merge_long();
    void queue_pair(std::uint32_t left_at);
    void open_bucket(std::uint32_t rank);
    void merge_at(std::uint32_t at, std::uint32_t rank);

    const BpeModel& model_;
    // Short pieces. Before the first symbol and behind the last stands one that is in no pair.
    alignas(64) std::array<std::uint32_t, most_short + 2> keys_;  // see merge_loaded()
    std::array<std::uint32_t, most_short + 2> short_symbols_;
    std::array<std::uint16_t, most_short + 2> short_next_, short_previous_;  // of each living symbol
    // Long pieces.
    std::vector<std::uint32_t> symbols_;
    std::vector<std::uint32_t> next_, previous_;         // of each living symbol
    std::vector<std::vector<std::uint32_t>> places_of_;  // by rank: where its pair was seen to begin
    std::vector<std::uint32_t> places_;                  // of the rank being merged
    std::vector<std::uint32_t> open_ranks_;              // min-heap of the ranks with places
};

}  // namespace tera
