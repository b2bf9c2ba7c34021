#include "token/pair_merger.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tera {
namespace {

using Symbols = std::vector<std::uint32_t>;

/// Merges over a few symbols, of which several have the same rank and make different things.
struct Tied {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> merge_of;
    Symbols made, ranks;
    MergeRules rules;

    explicit Tied(std::mt19937& random) {
        std::uint32_t symbols = 3;
        std::vector<MergeRules::Pair> pairs;
        for (std::uint32_t merge = 0; merge < 12; ++merge) {
            const auto any = [&] { return static_cast<std::uint32_t>(random() % symbols); };
            const std::pair pair(any(), any());
            if (!merge_of.try_emplace(pair, merge).second) continue;
            pairs.push_back({pair.first, pair.second, merge});
            symbols = std::max(symbols, merge + 4);
        }
        for (std::uint32_t merge = 0; merge < 12; ++merge) {
            made.push_back(merge + 3);
            ranks.push_back(
                static_cast<std::uint32_t>(random() % 4));  // any order: a merge may make a pair that goes first
        }
        rules = MergeRules(made, ranks, symbols, "test");
        rules.set_pairs(pairs);
    }

    /// The rule, said plainly: the lowest rank, of equals the leftmost. Also where each symbol began.
    void merge(Symbols& symbols, Symbols& places) const {
        for (;;) {
            std::size_t at = symbols.size();
            std::uint32_t best = MergeRules::none, chosen = 0;
            for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
                const auto found = merge_of.find({symbols[i], symbols[i + 1]});
                if (found == merge_of.end() || ranks[found->second] >= best) continue;
                best = ranks[found->second];
                chosen = found->second;
                at = i;
            }
            if (at == symbols.size()) return;
            symbols[at] = made[chosen];
            symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
            places.erase(places.begin() + static_cast<std::ptrdiff_t>(at) + 1);
        }
    }
};

TEST(PairMerger, OfEqualRanksTheLeftmostMergesFirst) {
    std::mt19937 random(1);
    for (int round = 0; round < 300; ++round) {
        const Tied tied(random);
        PairMerger merger(tied.rules);
        for (const std::size_t length : {0u, 1u, 2u, 15u, 16u, 31u, 32u, 63u, 64u, 254u, 255u, 400u}) {
            Symbols symbols, places, expected, expected_places;
            for (std::size_t i = 0; i < length; ++i) {
                symbols.push_back(static_cast<std::uint32_t>(random() % 3));
                expected_places.push_back(static_cast<std::uint32_t>(i));
            }
            expected = symbols;
            tied.merge(expected, expected_places);
            Symbols again = symbols;
            merger.merge(symbols, &places);
            ASSERT_EQ(symbols, expected) << "length " << length;
            ASSERT_EQ(places, expected_places) << "length " << length;
            merger.merge(again);
            ASSERT_EQ(again, expected);
        }
    }
}

}  // namespace
}  // namespace tera
