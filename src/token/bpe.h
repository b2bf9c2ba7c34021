// Byte-pair encoding of bytes: the pieces of GPT-2's kind of tokenizers.
//
// Rule: take the adjacent pair of symbols with the lowest rank, merge all its occurrences from left to right without
// overlap, repeat until no pair has a rank.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "token/bpe_files.h"
#include "token/pair_merger.h"

namespace tera {

/// What the reference implementations do differently.
struct BpeOptions {
    MergeOrder order = MergeOrder::whole_rank;
    bool whole_piece_first = false;  // a piece that is in the vocabulary is not merged (ignore_merges, tiktoken)
    bool drop_unknown = false;       // bytes outside the vocabulary vanish before merging (Hugging Face); else id 0
};

/// Symbols are numbered: 0..255 are the bytes, then every other symbol that the merges name.
class BpeModel {
  public:
    /// Tokens in the printable alphabet (token/byte_level.h). An id without a token has an empty string. UsageError
    /// beyond what MergeRules can hold.
    BpeModel(const BpeVocab& vocab, const BpeMerges& merges, const BpeOptions& options = {});
    /// tiktoken: any two neighbours merge whose bytes together are a token, the lowest rank first. `tokens` are bytes,
    /// all single ones among them; the rank is the place in the list, the id first_id + rank.
    static BpeModel from_ranks(const std::vector<std::string>& tokens, std::int32_t first_id = 0);

    const MergeRules& rules() const { return rules_; }
    /// The merge of two bytes, as rules().find() gives it, but quicker.
    std::uint32_t merge_of_bytes(std::uint32_t left, std::uint32_t right) const {
        return byte_merges_[left << 8 | right];
    }
    /// Vocabulary id of a symbol; 0 if the vocabulary lacks it.
    std::int32_t id_of(std::uint32_t symbol) const { return id_of_symbol_[symbol]; }
    /// The id of a piece that is a token, but that merging would not make, where such pieces are not merged; else -1.
    std::int32_t whole_piece(std::string_view piece) const {
        if (whole_pieces_.empty()) return -1;
        const auto found = whole_pieces_.find(piece);
        return found == whole_pieces_.end() ? -1 : found->second;
    }
    bool drops(unsigned char byte) const { return dropped_[byte]; }
    /// leftmost wherever that gives the same.
    MergeOrder order() const { return order_; }

  private:
    struct TextHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
    };
    using Pair = MergeRules::Pair;
    struct Tokens {
        std::vector<std::string> bytes_of_symbol;                        // empty: none that text could hold
        std::vector<std::pair<std::string, std::int32_t>> whole_pieces;  // not to be merged
    };

    BpeModel() = default;
    void finish(std::vector<std::uint32_t> made, std::vector<Pair> pairs, const Tokens& tokens);
    void set_pairs(const std::vector<Pair>& pairs);
    bool is_unordered(const std::vector<Pair>& pairs) const;
    void find_whole_pieces(const Tokens& tokens);
    std::vector<Pair> used_pairs(const std::vector<Pair>& pairs, const Tokens& tokens) const;

    MergeRules rules_;
    std::vector<std::uint32_t> byte_merges_;
    std::vector<std::int32_t> id_of_symbol_;
    std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> whole_pieces_;
    std::array<bool, 256> dropped_{};
    MergeOrder order_ = MergeOrder::leftmost;
};

/// Merges pieces as the rule says. Scratch memory; one per thread.
class BpeMerger {
  public:
    explicit BpeMerger(const BpeModel& model) : model_(model), merger_(model.rules(), model.order()) {}

    /// Appends the ids of a piece.
    void encode(std::string_view piece, std::vector<std::int32_t>& ids);

  private:
    friend class BpeModel;
    void merge_short(std::string_view piece, std::uint32_t fewest = 1);

    const BpeModel& model_;
    PairMerger merger_;
    ShortWord short_;
    std::vector<std::uint32_t> symbols_;
};

}  // namespace tera
