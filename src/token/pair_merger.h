// Merges the symbols of one word as the rules say. Short words look for the lowest rank in an array
// (token/short_word.h); long ones keep the places of each rank in buckets, so that the work stays near linear.
#pragma once

#include <cstdint>
#include <vector>

#include "token/merge_rules.h"
#include "token/short_word.h"

namespace tera {

/// Scratch memory; one per thread.
class PairMerger {
  public:
    /// The rules must outlive the merger.
    explicit PairMerger(const MergeRules& rules, MergeOrder order = MergeOrder::leftmost)
        : rules_(rules), order_(order) {}

    /// Replaces the symbols by what is left of them. `places`, if given: where each of these began.
    void merge(std::vector<std::uint32_t>& symbols, std::vector<std::uint32_t>* places = nullptr);

  private:
    /// Places of one rank, handed out in rising order. They mostly come in that order; the others wait in a heap.
    struct Places {
        std::vector<std::uint32_t> rising, heap;
        std::size_t next = 0;
        bool empty() const { return next == rising.size() && heap.empty(); }
        void push(std::uint32_t place);
        std::uint32_t pop();
    };
    void merge_short(std::vector<std::uint32_t>& symbols, std::vector<std::uint32_t>* places);
    void merge_long(std::vector<std::uint32_t>& symbols);
    void merge_ranks_whole(std::vector<std::uint32_t>& symbols);
    void queue_pair(const std::vector<std::uint32_t>& symbols, std::uint32_t at);
    void merge_at(std::vector<std::uint32_t>& symbols, std::uint32_t at, std::uint32_t rank);
    std::uint32_t pop_rank();

    const MergeRules& rules_;
    MergeOrder order_;
    ShortWord short_;
    // Of each living symbol of a long word: its neighbours, and the merge with the next.
    std::vector<std::uint32_t> next_, previous_, merges_;
    std::vector<Places> places_of_;          // by rank: where its pairs were seen to begin
    std::vector<std::uint32_t> open_ranks_;  // min-heap of the ranks with places
};

}  // namespace tera
