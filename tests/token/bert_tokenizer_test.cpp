// BERT's words and pieces, on a vocabulary made for the purpose; tests/oracle/bert_oracle.py compares with Python.
#include "token/bert_tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/expect_usage_error.h"
#include "token/bert_text.h"

namespace tera {
namespace {

const std::vector<std::string> words = {"[PAD]",  "[UNK]",    "[CLS]",    "[SEP]",  "[MASK]", "the",      "un",
                                        "##aff",  "##able",   "a",        "##a",    "b",      ".",        ",",
                                        "'",      "caf",      "##e",      "\u4e2d", "\u1112", "##\u1161", "##\u11ab",
                                        "\u03b1", "##\u03c2", "##\u03c3", "i",      "The",    "\u00e9"};

std::string vocab_text() {
    std::string text;
    for (const std::string& word : words) text += word + "\n";
    return text;
}

/// The tokens of a text, with blanks between them.
std::string tokens_of(std::string_view text, bool lower_case = true) {
    const BertTokenizer tokenizer(vocab_text(), "vocab.txt", {lower_case, 0});
    std::vector<std::int32_t> ids;
    tokenizer.encode(text, ids);
    std::string out;
    for (const std::int32_t id : ids)
        out += (out.empty() ? "" : " ") + tokenizer.tokens()[static_cast<std::size_t>(id)];
    return out;
}

TEST(BertTokenizer, CutsWordsIntoTheLongestPieces) {
    EXPECT_EQ(tokens_of("the unaffable"), "the un ##aff ##able");
    EXPECT_EQ(tokens_of("unaffablex the"), "[UNK] the");  // no way to the end of the word: all of it is unknown
    EXPECT_EQ(tokens_of(""), "");
    EXPECT_EQ(tokens_of(" \t\r\n\u00a0\u3000 "), "");
    EXPECT_EQ(tokens_of("a\u2028b\u2029a"), "a b a");
}

TEST(BertTokenizer, PunctuationAndChineseStandAlone) {
    EXPECT_EQ(tokens_of("the.a,,b"), "the . a , , b");
    EXPECT_EQ(tokens_of("a\u4e2d\u4e2da"), "a \u4e2d \u4e2d a");
    EXPECT_EQ(tokens_of("a\u3002"), "a [UNK]");  // the ideographic full stop is punctuation too
    EXPECT_EQ(tokens_of("[CLS]"), "[UNK] [UNK] [UNK]");
}

TEST(BertTokenizer, LowerCasesAndStripsAccentsOrNot) {
    EXPECT_EQ(tokens_of("THE Caf\u00c9 CAFE\u0301"), "the caf ##e caf ##e");
    EXPECT_EQ(tokens_of("The Caf\u00e9 \u00e9", false), "The [UNK] \u00e9");
    EXPECT_EQ(tokens_of("\u0130"), "i");  // i and a dot above, which goes
    EXPECT_EQ(tokens_of("\ud55c"), "\u1112 ##\u1161 ##\u11ab");
    EXPECT_EQ(tokens_of("\u0391\u03a3"), "\u03b1 ##\u03c2");     // final sigma
    EXPECT_EQ(tokens_of("\u0391\u03a3."), "\u03b1 ##\u03c2 .");  // a full stop does not end the word here
    EXPECT_EQ(tokens_of("\u0391\u03a3.a"), "\u03b1 ##\u03c3 . a");
    EXPECT_EQ(tokens_of("\u0391\u03a3\u03a3"), "\u03b1 ##\u03c3 ##\u03c2");
}

TEST(BertTokenizer, DropsControlsAndWhatIsNoText) {
    EXPECT_EQ(tokens_of(std::string("t\0h\x01\u200be\ufffd", 10)), "the");
    EXPECT_EQ(tokens_of("t\xffhe\xc3"), "the");
}

TEST(BertTokenizer, WordsOfMoreThan200CharactersAreUnknown) {
    EXPECT_EQ(tokens_of(std::string(201, 'a')), "[UNK]");
    const std::string most = tokens_of(std::string(200, 'a'));
    EXPECT_EQ(most.substr(0, 9), "a ##a ##a");
    std::string accents;
    for (int i = 0; i < 200; ++i) accents += "a\u0301";  // 400 characters, 200 when the accents are gone
    EXPECT_EQ(tokens_of(accents), most);
}

TEST(BertTokenizer, AddsItsTokensBehindTheVocabulary) {
    const auto n = static_cast<std::int32_t>(words.size());
    const BertTokenizer tokenizer(vocab_text(), "vocab.txt", {true, 3});
    EXPECT_EQ(tokenizer.vocab_size(), n + 5);
    EXPECT_EQ(tokenizer.bos(), n);
    EXPECT_EQ(tokenizer.eos(), n + 1);
    EXPECT_EQ(tokenizer.eod(), n + 1);
    EXPECT_EQ(tokenizer.pad(), 0);
    EXPECT_EQ(tokenizer.cls(), 2);
    EXPECT_EQ(tokenizer.sep(), 3);
    EXPECT_EQ(tokenizer.mask(), 4);
    EXPECT_EQ(tokenizer.sentinels(), (std::vector<std::int32_t>{n + 2, n + 3, n + 4}));
    EXPECT_EQ(tokenizer.decode(std::vector{n, n + 2, n + 4}), "[BOS] <extra_id_0> <extra_id_2>");
    const BertTokenizer has_bos("[BOS]\n" + vocab_text(), "vocab.txt", {true, 0});
    EXPECT_EQ(has_bos.bos(), 0);
    EXPECT_EQ(has_bos.vocab_size(), n + 2);
}

TEST(BertTokenizer, DecodesAsMegatronDoes) {
    const BertTokenizer tokenizer(vocab_text(), "vocab.txt", {});
    std::vector<std::int32_t> ids;
    tokenizer.encode("The unaffable, a 'b' .", ids);
    EXPECT_EQ(tokenizer.decode(ids), "the unaffable, a'b '.");
    EXPECT_EQ(tokenizer.decode(std::vector<std::int32_t>{}), "");
    expect_usage_error([&] { (void)tokenizer.decode(std::vector{1000}); }, {"1000"});
}

TEST(BertTokenizer, RefusesWhatIsNoVocabulary) {
    const auto load = [](const std::string& text) { BertTokenizer(text, "v.txt", {}); };
    expect_usage_error([&] { load(""); }, {"v.txt", "[PAD]"});
    expect_usage_error([&] { load(vocab_text() + "the\n"); }, {"v.txt", "line 28", "line 6"});
    expect_usage_error([&] { load("\xff\n"); }, {"v.txt", "byte 0", "UTF-8"});
    load("  " + vocab_text());  // blanks around tokens are not part of them
    std::string windows;
    for (const std::string& word : words) windows += word + "\r\n";
    load(windows);
}

TEST(BertTokenizer, ReadsTheFilesOfGoogle) {
    const std::string path = std::string(TERA_SOURCE_DIR) + "/../shared/data/bert/bert-base-uncased-vocab.txt";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
    TokenizerConfig flags;
    flags.tokenizer_type = "BertWordPieceLowerCase";
    flags.vocab_file = path;
    EXPECT_EQ(make_tokenizer(flags)->vocab_size(), 30524);
    flags.vocab_extra_ids = 100;
    const auto tokenizer = make_tokenizer(flags);
    EXPECT_EQ(tokenizer->vocab_size(), 30624);
    std::vector<std::int32_t> ids;
    tokenizer->encode("Hello, World! na\u00efve", ids);
    EXPECT_EQ(ids, (std::vector<std::int32_t>{7592, 1010, 2088, 999, 15743}));
}

}  // namespace
}  // namespace tera
