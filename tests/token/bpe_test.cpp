#include "token/bpe.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>

namespace tera {
namespace {

using Ids = std::vector<std::int32_t>;

/// The rule as the reference states it, on strings.
std::vector<std::string> merged_literally(const std::string& piece, const BpeMerges& merges) {
    std::map<std::pair<std::string, std::string>, std::size_t> rank_of;
    for (std::size_t rank = 0; rank < merges.pairs.size(); ++rank) rank_of[merges.pairs[rank]] = rank;
    std::vector<std::string> word;
    for (const char c : piece) word.emplace_back(1, c);
    for (;;) {
        std::size_t best = merges.pairs.size();
        for (std::size_t i = 0; i + 1 < word.size(); ++i) {
            const auto found = rank_of.find({word[i], word[i + 1]});
            if (found != rank_of.end()) best = std::min(best, found->second);
        }
        if (best == merges.pairs.size()) return word;
        std::vector<std::string> next;
        for (std::size_t i = 0; i < word.size(); ++i) {
            if (i + 1 < word.size() && std::pair(word[i], word[i + 1]) == merges.pairs[best]) {
                next.push_back(word[i] + word[i + 1]);
                ++i;
            } else {
                next.push_back(word[i]);
            }
        }
        word = next;
    }
}

/// Every string that can come up gets an id.
struct Setting {
    BpeVocab vocab;
    BpeMerges merges;
    std::map<std::string, std::int32_t> id_of;
    void add(const std::string& token) {
        if (id_of.try_emplace(token, static_cast<std::int32_t>(vocab.token_of_id.size())).second)
            vocab.token_of_id.push_back(token);
    }
};

/// Random merges over a few letters; `wild` ones come in any order, so that a merge may make a pair of lower rank.
Setting random_setting(std::mt19937& random, bool wild) {
    Setting setting;
    std::vector<std::string> symbols = {"a", "b", "c"};
    for (const auto& symbol : symbols) setting.add(symbol);
    const auto any = [&] { return symbols[random() % symbols.size()]; };
    for (int i = 0; i < 12; ++i) {
        const std::pair pair(any(), any());
        if ((pair.first + pair.second).size() > 12) continue;
        setting.merges.pairs.push_back(pair);
        setting.add(pair.first + pair.second);
        symbols.push_back(pair.first + pair.second);
    }
    if (wild) std::shuffle(setting.merges.pairs.begin(), setting.merges.pairs.end(), random);
    return setting;
}

Ids encoded(const Setting& setting, const std::string& piece) {
    const BpeModel model(setting.vocab, setting.merges);
    BpeMerger merger(model);
    Ids ids;
    merger.encode(piece, ids);
    return ids;
}

TEST(Bpe, FollowsTheRuleOnRandomMerges) {
    std::mt19937 random(1);
    for (int round = 0; round < 400; ++round) {
        const Setting setting = random_setting(random, round % 2 == 1);
        // Lengths on both sides of the border between the two methods.
        for (const std::size_t length : {1u, 2u, 7u, 40u, 128u, 129u, 400u}) {
            std::string piece;
            const unsigned letters = 1 + random() % 3;
            for (std::size_t i = 0; i < length; ++i) piece += static_cast<char>('a' + random() % letters);
            Ids expected;
            for (const std::string& symbol : merged_literally(piece, setting.merges))
                expected.push_back(setting.id_of.at(symbol));
            ASSERT_EQ(encoded(setting, piece), expected) << piece;
        }
    }
}

TEST(Bpe, MergesOverlapFromTheLeft) {
    Setting setting;
    for (const char* token : {"a", "aa"}) setting.add(token);
    setting.merges.pairs = {{"a", "a"}};
    EXPECT_EQ(encoded(setting, "aaaaa"), (Ids{1, 1, 0}));
    EXPECT_EQ(encoded(setting, std::string(201, 'a')).back(), 0);
    EXPECT_EQ(encoded(setting, std::string(201, 'a')).size(), 101u);
}

TEST(Bpe, OfARepeatedPairTheLastRankCounts) {
    Setting setting;
    for (const char* token : {"a", "b", "c", "ab", "bc"}) setting.add(token);
    setting.merges.pairs = {{"a", "b"}, {"b", "c"}, {"a", "b"}};
    EXPECT_EQ(encoded(setting, "abc"), (Ids{0, 4}));
    setting.merges.pairs.pop_back();
    EXPECT_EQ(encoded(setting, "abc"), (Ids{3, 2}));
}

TEST(Bpe, SymbolsOutsideTheVocabularyAreZero) {
    Setting setting;
    for (const char* token : {"a", "b"}) setting.add(token);
    setting.merges.pairs = {{"b", "b"}};
    EXPECT_EQ(encoded(setting, "abbxb"), (Ids{0, 0, 0, 1}));
}

TEST(Bpe, LongWordsStayNearLinear) {
    Setting setting;
    std::string token = "a";
    setting.add(token);
    for (int i = 0; i < 8; ++i) {
        setting.merges.pairs.emplace_back(token, token);
        token += token;
        setting.add(token);
    }
    const BpeModel model(setting.vocab, setting.merges);
    BpeMerger merger(model);
    Ids ids;
    const auto start = std::chrono::steady_clock::now();
    merger.encode(std::string(1 << 20, 'a'), ids);
    EXPECT_EQ(ids, Ids(4096, 8));
    // A quadratic method takes hours; this takes a fraction of a second.
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 20);
}

}  // namespace
}  // namespace tera
