// Which pairs of neighbouring symbols merge, which of them first, and what they make: what all kinds of BPE share.
//
// Merges are numbered. The one of the lowest rank goes first; unless ranks are given, the number is the rank. Only
// SentencePiece has merges of equal rank: pieces of equal score.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"
#include "token/pair_table.h"

namespace tera {

/// Which of several pairs goes first. Tokenizers that were learnt have no pair that outranks the merges which made its
/// halves; then both give the same.
enum class MergeOrder {
    whole_rank,  // GPT-2 in Python: the best pair everywhere, left to right, before looking for the next best
    leftmost,    // Hugging Face, tiktoken, SentencePiece: only its first place, then look again
};

class MergeRules {
  public:
    static constexpr std::uint32_t none = PairTable::none;
    /// Of symbols, which are below; this one is in no pair.
    static constexpr std::uint32_t in_no_pair = PairTable::most_symbols;
    struct Pair {
        std::uint32_t left, right, merge;
    };

    MergeRules() = default;
    /// What each merge makes; the ranks, if they are not the numbers. UsageError beyond what fits, naming `what`.
    MergeRules(std::vector<std::uint32_t> made, std::vector<std::uint32_t> ranks, std::size_t symbols,
               const std::string& what)
        : made_(std::move(made)), ranks_(std::move(ranks)) {
        if (symbols > PairTable::most_symbols || made_.size() > PairTable::most_values)
            usage_error(what, " has ", symbols, " symbols and ", made_.size(), " merges; BPE is built for ",
                        PairTable::most_symbols, " and ", PairTable::most_values);
        rank_count_ = static_cast<std::uint32_t>(made_.size());
        for (const std::uint32_t rank : ranks_) TERA_CHECK(rank < rank_count_, rank);
    }
    /// Of a repeated pair the last counts.
    void set_pairs(const std::vector<Pair>& pairs) {
        pairs_ = PairTable(pairs.size());
        first_made_ = pairs.empty() ? 0 : made_[pairs.front().merge] - pairs.front().merge;
        is_counted_ = true;
        for (const auto& [left, right, merge] : pairs) {
            pairs_.insert(left, right, merge);
            is_counted_ = is_counted_ && made_[merge] == merge + first_made_;
        }
    }

    /// The merge of two neighbours, or none.
    std::uint32_t find(std::uint32_t left, std::uint32_t right) const { return pairs_.find(left, right); }
    std::uint32_t made_by(std::uint32_t merge) const { return is_counted_ ? merge + first_made_ : made_[merge]; }
    /// False: the rank of a merge is its number.
    bool has_ties() const { return !ranks_.empty(); }
    std::uint32_t rank_of(std::uint32_t merge) const { return ranks_.empty() ? merge : ranks_[merge]; }
    std::uint32_t rank_count() const { return rank_count_; }

  private:
    PairTable pairs_;
    std::vector<std::uint32_t> made_, ranks_;
    std::uint32_t rank_count_ = 0;
    bool is_counted_ = false;  // the merges of all pairs make symbols one after the other: nothing to look up
    std::uint32_t first_made_ = 0;
};

}  // namespace tera
