#include "token/pair_merger.h"

#include <algorithm>
#include <functional>

#include "core/error.h"

namespace tera {

namespace {

constexpr std::size_t large_word = 1 << 20;  // symbols; above, the scratch memory is given back
constexpr std::uint32_t none = MergeRules::none;

}  // namespace

void PairMerger::merge(std::vector<std::uint32_t>& symbols, std::vector<std::uint32_t>* places) {
    if (places) places->clear();
    if (order_ == MergeOrder::leftmost && symbols.size() <= ShortWord::most) return merge_short(symbols, places);
    merge_long(symbols);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        if (symbols[i] == none) continue;
        if (places) places->push_back(static_cast<std::uint32_t>(i));
        symbols[kept++] = symbols[i];
    }
    symbols.resize(kept);
}

void PairMerger::merge_short(std::vector<std::uint32_t>& symbols, std::vector<std::uint32_t>* places) {
    const auto n = static_cast<std::uint32_t>(symbols.size());
    for (std::uint32_t i = 0; i < n; ++i) short_.put(i, symbols[i]);
    short_.merge(rules_, n, [this](std::uint32_t left, std::uint32_t right) { return rules_.find(left, right); });
    symbols.clear();
    short_.for_each([&](std::uint32_t symbol, std::uint32_t place) {
        symbols.push_back(symbol);
        if (places) places->push_back(place);
    });
}

void PairMerger::Places::push(std::uint32_t place) {
    if (rising.empty() || place > rising.back()) {
        rising.push_back(place);
    } else {
        heap.push_back(place);
        std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
}

std::uint32_t PairMerger::Places::pop() {
    std::uint32_t place = none;
    if (!heap.empty() && (next == rising.size() || heap.front() < rising[next])) {
        place = heap.front();
        std::pop_heap(heap.begin(), heap.end(), std::greater<>());
        heap.pop_back();
    } else {
        place = rising[next++];
    }
    if (next == rising.size()) {
        rising.clear();
        next = 0;
    }
    return place;
}

/// Symbols that were merged into the one before them become `none`.
void PairMerger::merge_long(std::vector<std::uint32_t>& symbols) {
    TERA_CHECK(symbols.size() < none, "a piece of ", symbols.size(), " symbols");
    const auto n = static_cast<std::uint32_t>(symbols.size());
    next_.resize(n);
    previous_.resize(n);
    merges_.resize(n);
    places_of_.resize(rules_.rank_count());
    for (std::uint32_t i = 0; i < n; ++i) {
        next_[i] = i + 1 < n ? i + 1 : none;
        previous_[i] = i > 0 ? i - 1 : none;
    }
    for (std::uint32_t i = 0; i < n; ++i) queue_pair(symbols, i);
    if (order_ == MergeOrder::whole_rank) merge_ranks_whole(symbols);
    while (!open_ranks_.empty()) {
        const std::uint32_t rank = open_ranks_.front();
        Places& places = places_of_[rank];
        const std::uint32_t at = places.pop();
        if (places.empty()) pop_rank();
        merge_at(symbols, at, rank);
    }
    if (n > large_word) {
        next_ = previous_ = merges_ = {};
        places_of_ = {};
    }
}

void PairMerger::merge_ranks_whole(std::vector<std::uint32_t>& symbols) {
    Places places;
    while (!open_ranks_.empty()) {
        const std::uint32_t rank = pop_rank();
        std::swap(places, places_of_[rank]);  // its pairs cannot come up anew: what a merge makes is longer
        while (!places.empty()) merge_at(symbols, places.pop(), rank);
    }
}

std::uint32_t PairMerger::pop_rank() {
    std::pop_heap(open_ranks_.begin(), open_ranks_.end(), std::greater<>());
    const std::uint32_t rank = open_ranks_.back();
    open_ranks_.pop_back();
    return rank;
}

void PairMerger::queue_pair(const std::vector<std::uint32_t>& symbols, std::uint32_t at) {
    merges_[at] = next_[at] == none ? none : rules_.find(symbols[at], symbols[next_[at]]);
    if (merges_[at] == none) return;
    const std::uint32_t rank = rules_.rank_of(merges_[at]);
    Places& places = places_of_[rank];
    if (places.empty()) {
        open_ranks_.push_back(rank);
        std::push_heap(open_ranks_.begin(), open_ranks_.end(), std::greater<>());
    }
    places.push(at);
}

void PairMerger::merge_at(std::vector<std::uint32_t>& symbols, std::uint32_t at, std::uint32_t rank) {
    if (merges_[at] == none || rules_.rank_of(merges_[at]) != rank) return;  // what stood here has merged since
    const std::uint32_t right = next_[at];
    symbols[at] = rules_.made_by(merges_[at]);
    symbols[right] = none;
    merges_[right] = none;
    next_[at] = next_[right];
    if (next_[at] != none) previous_[next_[at]] = at;
    if (previous_[at] != none) queue_pair(symbols, previous_[at]);
    queue_pair(symbols, at);
}

}  // namespace tera
