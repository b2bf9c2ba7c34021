#include "token/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "token/bpe_encoder.h"
#include "token/byte_level.h"

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

/// The other order: only the first place of the best pair, then look again. rank_of gives no rank as `none`.
template <class RankOf>
std::vector<std::string> merged_leftmost(const std::string& piece, std::size_t none, const RankOf& rank_of) {
    std::vector<std::string> word;
    for (const char c : piece) word.emplace_back(1, c);
    for (;;) {
        std::size_t best = none, at = 0;
        for (std::size_t i = 0; i + 1 < word.size(); ++i) {
            const std::size_t rank = rank_of(word[i], word[i + 1]);
            if (rank < best) {
                best = rank;
                at = i;
            }
        }
        if (best == none) return word;
        word[at] += word[at + 1];
        word.erase(word.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
}

std::string random_piece(std::mt19937& random, std::size_t length) {
    std::string piece;
    const unsigned letters = 1 + random() % 3;
    for (std::size_t i = 0; i < length; ++i) piece += static_cast<char>('a' + random() % letters);
    return piece;
}

constexpr std::array<std::size_t, 9> lengths = {1, 2, 7, 15, 16, 33, 64, 130, 400};

TEST(Bpe, LeftmostOrderOnRandomMerges) {
    std::mt19937 random(2);
    for (int round = 0; round < 300; ++round) {
        const Setting setting = random_setting(random, round % 2 == 1);
        std::map<std::pair<std::string, std::string>, std::size_t> rank_of;
        const std::size_t none = setting.merges.pairs.size();
        for (std::size_t rank = 0; rank < none; ++rank) rank_of[setting.merges.pairs[rank]] = rank;
        BpeOptions options;
        options.order = MergeOrder::leftmost;
        const BpeModel model(setting.vocab, setting.merges, options);
        BpeMerger merger(model);
        for (const std::size_t length : lengths) {
            const std::string piece = random_piece(random, length);
            Ids expected, ids;
            const auto rank = [&](const std::string& left, const std::string& right) {
                const auto found = rank_of.find({left, right});
                return found == rank_of.end() ? none : found->second;
            };
            for (const std::string& symbol : merged_leftmost(piece, none, rank))
                expected.push_back(setting.id_of.at(symbol));
            merger.encode(piece, ids);
            ASSERT_EQ(ids, expected) << piece;
        }
    }
}

TEST(Bpe, RanksAsTiktokenMergesThem) {
    std::mt19937 random(3);
    for (int round = 0; round < 200; ++round) {
        // Any strings at any rank: most cannot be made by merging, and pairs outrank what their halves are made of.
        std::vector<std::string> tokens;
        for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
        std::map<std::string, std::size_t> rank_of;
        for (std::size_t rank = 0; rank < 256; ++rank) rank_of[tokens[rank]] = rank;
        for (int i = 0; i < 25; ++i) {
            const std::string token = random_piece(random, 2 + random() % 5);
            if (rank_of.try_emplace(token, tokens.size()).second) tokens.push_back(token);
        }
        const BpeModel model = BpeModel::from_ranks(tokens, 1000);
        BpeMerger merger(model);
        std::vector<std::string> pieces = tokens;
        for (const std::size_t length : lengths) pieces.push_back(random_piece(random, length));
        for (const std::string& piece : pieces) {
            Ids expected, ids;
            const auto rank = [&](const std::string& left, const std::string& right) {
                const auto found = rank_of.find(left + right);
                return found == rank_of.end() ? tokens.size() : found->second;
            };
            if (rank_of.count(piece)) {
                expected.push_back(static_cast<std::int32_t>(1000 + rank_of[piece]));
            } else {
                for (const std::string& symbol : merged_leftmost(piece, tokens.size(), rank))
                    expected.push_back(static_cast<std::int32_t>(1000 + rank_of.at(symbol)));
            }
            merger.encode(piece, ids);
            ASSERT_EQ(ids, expected) << piece;
        }
    }
}

TEST(Bpe, WholePiecesFirst) {
    Setting setting;
    for (const char* token : {"a", "b", "c", "ab", "abc"}) setting.add(token);
    setting.merges.pairs = {{"a", "b"}};
    BpeOptions options;
    options.whole_piece_first = true;
    const BpeModel model(setting.vocab, setting.merges, options);
    BpeMerger merger(model);
    Ids ids;
    for (const char* piece : {"abc", "abcc", "ab"}) merger.encode(piece, ids);
    EXPECT_EQ(ids, (Ids{4, 3, 2, 2, 3}));
}

TEST(Bpe, UnknownBytesCanVanishBeforeMerging) {
    Setting setting;
    for (const char* token : {"a", "b", "ab"}) setting.add(token);
    setting.merges.pairs = {{"a", "b"}};
    BpeOptions options;
    options.drop_unknown = true;
    const BpeModel model(setting.vocab, setting.merges, options);
    BpeMerger merger(model);
    Ids ids;
    for (const char* piece : {"axb", "x", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxa"}) merger.encode(piece, ids);
    EXPECT_EQ(ids, (Ids{2, 0}));
}

/// All 256 bytes and some merges of letters.
Setting letters_setting() {
    Setting setting;
    for (int byte = 0; byte < 256; ++byte) {
        const char c = static_cast<char>(byte);
        setting.add(to_printable({&c, 1}));
    }
    for (const char* pair : {"a b", "c d", "ab cd", "e f", "\u0120 ab", "abcd ef"}) {
        const std::string text = pair;
        const std::size_t blank = text.find(' ');
        setting.merges.pairs.emplace_back(text.substr(0, blank), text.substr(blank + 1));
        setting.add(text.substr(0, blank) + text.substr(blank + 1));
    }
    return setting;
}

TEST(BpeEncoder, GivesWhatMergingEachPieceGives) {
    const Setting setting = letters_setting();
    const BpeModel model(setting.vocab, setting.merges);
    std::mt19937 random(4);
    std::string text;
    // So many different pieces, short and long, that the table grows, forgets and begins anew.
    for (int i = 0; i < 250000; ++i) {
        if (i % 3 == 0) text += ' ';
        text += random_piece(random, 1 + random() % (i % 50 == 0 ? 300 : 12));
        text += static_cast<char>('a' + random() % 26);
        if (i % 7 == 0) text += std::to_string(random() % 1000);
    }
    text += "\u4e2d\u6587 " + text.substr(0, 100000);
    for (const PretokenPattern pattern : {PretokenPattern::gpt2, PretokenPattern::llama3}) {
        BpeMerger merger(model);
        Ids expected;
        const char* end = text.data() + text.size();
        for (const char* p = text.data(); p < end;) {
            const char* stop = piece_end(pattern, p, end);
            merger.encode({p, static_cast<std::size_t>(stop - p)}, expected);
            p = stop;
        }
        BpeEncoder encoder(model, pattern);
        Ids ids = {7};
        encoder.encode(text, ids);  // what is there stays
        ASSERT_EQ(ids.size(), expected.size() + 1);
        EXPECT_EQ(ids[0], 7);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), ids.begin() + 1));
        Ids again;
        encoder.encode(text, again);
        EXPECT_EQ(again, expected);
        Ids piece_ids, direct;
        encoder.encode_piece("no pattern cuts this abcdef", piece_ids);
        merger.encode("no pattern cuts this abcdef", direct);
        EXPECT_EQ(piece_ids, direct);
    }
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
    // A quadratic method takes hours and runs into the limit of the test; this takes a fraction of a second.
    merger.encode(std::string(1 << 21, 'a'), ids);
    EXPECT_EQ(ids, Ids(8192, 8));
}

}  // namespace
}  // namespace tera
