// The parts of HuggingFaceTokenizer that have a simple definition to be held against.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "token/added_tokens.h"
#include "token/hf_bpe.h"
#include "token/normalizer.h"
#include "token/unigram.h"
#include "token/wordpiece.h"

namespace tera {
namespace {

using Ids = std::vector<std::int32_t>;
using Random = std::mt19937;

std::string random_text(Random& random, const std::vector<std::string>& letters, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += letters[random() % letters.size()];
    return text;
}

TEST(StringFinder, FindsTheLeftmostAndOfThoseTheLongest) {
    Random random(1);
    for (int round = 0; round < 300; ++round) {
        std::vector<std::string> strings;
        for (std::size_t i = 0; i < 1 + random() % 6; ++i)
            strings.push_back(random_text(random, {"a", "b"}, 1 + random() % 5));
        std::sort(strings.begin(), strings.end());
        strings.erase(std::unique(strings.begin(), strings.end()), strings.end());
        const StringFinder finder(std::vector<std::string_view>(strings.begin(), strings.end()));
        const std::string text = random_text(random, {"a", "b", "c"}, random() % 40);
        for (std::size_t from = 0; from <= text.size(); ++from) {
            std::size_t begin = std::string::npos, length = 0;
            for (const std::string& s : strings) {
                const std::size_t at = text.find(s, from);
                if (at < begin || (at == begin && at != std::string::npos && s.size() > length))
                    begin = at, length = s.size();
            }
            StringFinder::Match match{};
            ASSERT_EQ(finder.find(text, from, match), begin != std::string::npos) << text;
            if (begin == std::string::npos) continue;
            EXPECT_EQ(match.begin, begin) << text;
            EXPECT_EQ(match.end, begin + length) << text;
            EXPECT_EQ(strings[match.index], text.substr(begin, length));
        }
    }
}

std::string shown(const AddedTokenFinder& finder, const std::string& text) {
    std::vector<AddedSplit> splits;
    finder.split(text, splits);
    std::string out;
    for (const AddedSplit& split : splits)
        out += (split.id >= 0 ? "<" : "[") + text.substr(split.begin, split.end - split.begin) +
               (split.id >= 0 ? ">" : "]");
    return out;
}

TEST(AddedTokens, TakeBlanksAndStandAloneAsToldTo) {
    const auto finder = [](AddedToken token) {
        token.content = "tok";
        token.id = 7;
        return AddedTokenFinder({token}, {"tok"});
    };
    AddedToken plain, left, right, word;
    left.lstrip = right.rstrip = word.single_word = true;
    EXPECT_EQ(shown(finder(plain), "a tok btok"), "[a ]<tok>[ b]<tok>");
    EXPECT_EQ(shown(finder(left), "a \u3000tok tok b"), "[a]< \u3000tok>< tok>[ b]");
    EXPECT_EQ(shown(finder(right), "a tok \n tok b"), "[a ]<tok \n ><tok >[b]");
    EXPECT_EQ(shown(finder(word), "tok atok toka (tok) \u00e9tok"), "<tok>[ atok toka (]<tok>[) \u00e9tok]");
}

std::string normalized(std::unique_ptr<NormalizerStep> step, const std::string& text, std::size_t head = 0,
                       std::size_t* head_out = nullptr) {
    Normalizer normalizer;
    normalizer.add(std::move(step));
    Normalizer::Scratch scratch;
    const NormalView out = normalizer.apply({text, head}, scratch);
    if (head_out != nullptr) *head_out = out.head;
    return std::string(out.text);
}

TEST(Normalizer, FormsOfUnicode) {
    const auto form = [](NormalForm f, const char* text) { return normalized(unicode_form_step(f), text); };
    EXPECT_EQ(form(NormalForm::nfc, "e\u0301 A\u030a o\u0323\u0302 \u1112\u1161\u11ab"), "\u00e9 \u00c5 \u1ed9 \ud55c");
    EXPECT_EQ(form(NormalForm::nfd, "\u00e9\u1ed9\ud55c"), "e\u0301o\u0323\u0302\u1112\u1161\u11ab");
    EXPECT_EQ(form(NormalForm::nfc, "\u00e9\u0323"), "\u1eb9\u0301");  // the mark below goes first
    EXPECT_EQ(form(NormalForm::nfc, "\u0301a\u0301\u0301"), "\u0301\u00e1\u0301");
    EXPECT_EQ(form(NormalForm::nfc, "\u212b \ufb01"), "\u00c5 \ufb01");
    EXPECT_EQ(form(NormalForm::nfkc, "\ufb01 \u00bd \uff21 \u2460"), "fi 1\u20442 A 1");
    EXPECT_EQ(form(NormalForm::nfkd, "\ufb03\u00e9"), "ffie\u0301");
    EXPECT_EQ(form(NormalForm::nfc, "\u0958"), "\u0915\u093c");  // excluded from composition
}

TEST(Normalizer, TellsWhatComesFromTheFirstCharacter) {
    std::size_t head = 0;
    EXPECT_EQ(normalized(unicode_form_step(NormalForm::nfkc), "\u00bdx\u00bd", 2, &head), "1\u20442x1\u20442");
    EXPECT_EQ(head, 5u);
    normalized(strip_step(true, true), " x ", 1, &head);
    EXPECT_EQ(head, 0u);
    normalized(prepend_step("__"), "x", 1, &head);
    EXPECT_EQ(head, 3u);
    EXPECT_EQ(normalized(replace_step(ReplacePattern::literal("ab"), "xyz"), "abab", 1, &head), "xyzxyz");
    EXPECT_EQ(head, 0u);  // the end of the match is what counts
}

TEST(Normalizer, OtherSteps) {
    EXPECT_EQ(normalized(lowercase_step(), "A\u00c9\u0130\u03a3x"), "a\u00e9i\u0307\u03c3x");
    EXPECT_EQ(normalized(strip_accents_step(), "e\u0301x\u20dd"), "ex");
    EXPECT_EQ(normalized(strip_step(true, false), "\u3000 a "), "a ");
    EXPECT_EQ(normalized(strip_step(true, true), " \n "), "");
    EXPECT_EQ(normalized(prepend_step("_"), ""), "");
    EXPECT_EQ(normalized(bert_step({}), "\x01\u00c9t\u00e9\t\u4f60!\x7f"), "ete  \u4f60 !");
    EXPECT_EQ(normalized(bert_step({true, true, false, false}), "\u00c9\u200bx\ufffd"), "\u00c9x");
}

TEST(Normalizer, RegularExpressionsOfReplace) {
    const auto replaced = [](const char* regex, const char* text) {
        return replace_all(text, ReplacePattern::regex(regex).value(), "_");
    };
    EXPECT_EQ(replaced(" {2,}", "a b  c   d"), "a b_c_d");
    EXPECT_EQ(replaced("\\s+", " a\u3000\nb"), "_a_b");
    EXPECT_EQ(replaced("\u4f60+", "\u4f60\u4f60x\u4f60"), "_x_");
    EXPECT_EQ(replaced("\\.", "a.b"), "a_b");
    EXPECT_EQ(replaced("ab", "xabab"), "x__");
    for (const char* regex :
         {"", "a|b", "[ab]", "ab+", "a*", "a{2}", "a{0,}", "\\d", "\\w+", "(a)", "^a", "\\", "a{x,}", "\\u", "x\\1"})
        EXPECT_FALSE(ReplacePattern::regex(regex)) << regex;
}

TEST(Normalizer, Graphemes) {
    const auto first = [](const char* text) { return std::string(text).substr(0, grapheme_length(text)); };
    EXPECT_EQ(first("\r\nx"), "\r\n");
    EXPECT_EQ(first("\n\u0301"), "\n");
    EXPECT_EQ(first("e\u0301\u0323x"), "e\u0301\u0323");
    EXPECT_EQ(first("\u1112\u1161\u11abx"), "\u1112\u1161\u11ab");
    EXPECT_EQ(first("\ud55c\u1112"), "\ud55c");
    EXPECT_EQ(first("\U0001f468\u200d\U0001f469x"), "\U0001f468\u200d\U0001f469");
    EXPECT_EQ(first("x\u200d\U0001f469"), "x\u200d");
    EXPECT_EQ(first("\U0001f1e8\U0001f1ed\U0001f1e8"), "\U0001f1e8\U0001f1ed");
    EXPECT_EQ(first("\u0915\u094d\u0937\u093fx"), "\u0915\u094d\u0937\u093f");
    EXPECT_EQ(first("\u0600x"), "\u0600x");
}

TEST(WordPiece, LongestPiecesFromTheFront) {
    const std::vector<std::pair<std::string_view, std::int32_t>> vocab = {
        {"[UNK]", 0}, {"a", 1}, {"ab", 2}, {"##b", 3}, {"##bc", 4}, {"\u00e9", 5}, {"##", 6}};
    const WordPieceModel model(vocab, {"##", 0, 4});
    const auto encode = [&](std::string_view word) {
        Ids ids;
        model.encode(word, ids);
        return ids;
    };
    EXPECT_EQ(encode("abbc"), (Ids{2, 4}));
    EXPECT_EQ(encode("abc"), (Ids{0}));
    EXPECT_EQ(encode("\u00e9b"), (Ids{5, 3}));
    EXPECT_EQ(encode("##bc"), (Ids{4}));  // a whole word may be a piece with the prefix
    EXPECT_EQ(encode("abbb"), (Ids{2, 3, 3}));
    EXPECT_EQ(encode("abbbb"), (Ids{0}));  // five characters
    EXPECT_EQ(encode("\u00e9bbb"), (Ids{5, 3, 3, 3}));
}

/// All ways to cut the text into tokens; the best sum.
double best_sum(const std::string& text, const std::vector<std::pair<std::string, double>>& vocab) {
    if (text.empty()) return 0;
    double best = -std::numeric_limits<double>::infinity();
    for (const auto& [token, score] : vocab)
        if (text.starts_with(token)) best = std::max(best, score + best_sum(text.substr(token.size()), vocab));
    return best;
}

TEST(Unigram, NoCutIsBetter) {
    Random random(2);
    std::vector<std::pair<std::string, double>> vocab = {{"<unk>", -50}, {"a", -3}, {"b", -3.5}};
    for (const char* token : {"ab", "ba", "aab", "bb", "abab", "bba"})
        vocab.emplace_back(token, -4.0 - static_cast<double>(random() % 1000) / 250);
    const UnigramModel model(vocab, {0, false});
    UnigramModel::Scratch scratch;
    for (int round = 0; round < 200; ++round) {
        const std::string text = random_text(random, {"a", "b"}, 1 + random() % 11);
        Ids ids;
        model.encode(text, scratch, ids);
        std::string joined;
        double sum = 0;
        for (const std::int32_t id : ids) {
            joined += vocab[static_cast<std::size_t>(id)].first;
            sum += vocab[static_cast<std::size_t>(id)].second;
        }
        EXPECT_EQ(joined, text);
        EXPECT_NEAR(sum, best_sum(text, vocab), 1e-9);
    }
}

TEST(Unigram, UnknownTextIsOneTokenOrItsBytes) {
    std::vector<std::pair<std::string, double>> vocab = {{"<unk>", 0}, {"a", -1}, {"<0xC3>", -9}, {"<0xA9>", -9}};
    UnigramModel::Scratch scratch;
    const auto encode = [&](bool byte_fallback, std::string_view text) {
        Ids ids;
        UnigramModel(vocab, {0, byte_fallback}).encode(text, scratch, ids);
        return ids;
    };
    EXPECT_EQ(encode(false, "a\u00e9\u00e9a"), (Ids{1, 0, 1}));
    EXPECT_EQ(encode(true, "a\u00e9a"), (Ids{1, 2, 3, 1}));
    EXPECT_EQ(encode(true, "\u00e9x"), (Ids{0}));  // no token for the byte of x
}

/// The rule itself: of all pairs the best, of equal ones the leftmost, one at a time.
Ids merged(Ids ids, const HfBpeModel& model) {
    for (;;) {
        const auto find = [&](std::size_t i) {
            return model.rules().find(static_cast<std::uint32_t>(ids[i]), static_cast<std::uint32_t>(ids[i + 1]));
        };
        std::uint32_t best = MergeRules::none;
        std::size_t at = 0;
        for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
            const std::uint32_t rank = find(i);
            if (rank < best) best = rank, at = i;
        }
        if (best == MergeRules::none) return ids;
        ids[at] = static_cast<std::int32_t>(model.rules().made_by(best));
        ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
}

TEST(HfBpe, ShortLongAndCutTextFollowTheSameRule) {
    Random random(3);
    const std::vector<std::string> letters = {"a", "b", "\u00e9", "\u2581"};
    for (int round = 0; round < 60; ++round) {
        HfBpeModel::Vocab vocab = {{"<unk>", 0}};
        std::vector<std::string> tokens = letters;
        for (const std::string& letter : letters) vocab.emplace(letter, static_cast<std::int32_t>(vocab.size()));
        std::vector<std::pair<std::string, std::string>> merges;
        for (int i = 0; i < 25; ++i) {
            const std::string left = tokens[random() % tokens.size()], right = tokens[random() % tokens.size()];
            if (left.size() + right.size() > 16) continue;
            if (vocab.try_emplace(left + right, static_cast<std::int32_t>(vocab.size())).second)
                tokens.push_back(left + right);
            merges.emplace_back(left, right);
        }
        // Any order: a pair may then rank before those that make its halves.
        std::shuffle(merges.begin(), merges.end(), random);
        const HfBpeModel model(vocab, merges, {0, round % 2 == 0, false, false});
        HfBpeEncoder encoder(model);
        for (const std::size_t length : {1, 7, 20, 60, 400}) {
            const std::string text = random_text(random, letters, length);
            Ids symbols, got;
            for (std::size_t at = 0; at < text.size();) {
                const std::size_t bytes = static_cast<unsigned char>(text[at]) < 0x80 ? 1 : text[at] == '\xc3' ? 2 : 3;
                symbols.push_back(vocab.at(text.substr(at, bytes)));
                at += bytes;
            }
            encoder.encode(text, got);
            EXPECT_EQ(got, merged(symbols, model)) << text;
        }
    }
}

TEST(HfBpe, CutsOnlyWhereNoMergeReaches) {
    const HfBpeModel::Vocab vocab = {{"<unk>", 0}, {"\u2581", 1}, {"a", 2}, {"b", 3}, {"a\u2581", 4}, {"\u2581a", 5}};
    const auto end = [](const HfBpeModel& model) { return model.word_end("a\u2581b\u2581a", 0); };
    EXPECT_EQ(end(HfBpeModel(vocab, {{"\u2581", "a"}}, {0})), 1u);
    EXPECT_EQ(end(HfBpeModel(vocab, {{"\u2581", "a"}, {"a", "\u2581"}}, {0})), 5u);
    EXPECT_EQ(end(HfBpeModel(vocab, {{"\u2581", "a"}}, {-1})), 9u);  // what is unknown vanishes: neighbours may change
}

}  // namespace
}  // namespace tera
