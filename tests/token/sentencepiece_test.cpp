// SentencePiece models: ids and texts that the package itself gave (tests/golden/make_sentencepiece_golden.py), what
// Megatron builds on top, long inputs, and files that are no models.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/expect_usage_error.h"
#include "token/sentencepiece_tokenizer.h"

namespace tera {
namespace {

using Ids = std::vector<std::int32_t>;

const std::string golden = std::string(TERA_SOURCE_DIR) + "/tests/golden/sentencepiece/";

std::string bytes_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

Ids encode(const Tokenizer& tokenizer, std::string_view text) {
    Ids ids;
    tokenizer.encode(text, ids);
    return ids;
}

std::unique_ptr<Tokenizer> load(const std::string& kind, SentencePieceFlavour flavour, std::int64_t extra_ids = 0) {
    return load_sentencepiece(golden + kind + ".model", flavour, extra_ids);
}

TEST(SentencePiece, GivesTheIdsAndTextsOfThePackage) {
    const nlohmann::json all = nlohmann::json::parse(bytes_of(golden + "cases.json"));
    std::map<std::string, std::unique_ptr<Tokenizer>> tokenizers;
    std::size_t count = 0;
    for (const nlohmann::json& one : all["cases"]) {
        const std::string kind = one["model"], text = one["text"];
        auto& tokenizer = tokenizers[kind];
        if (!tokenizer) tokenizer = load(kind, SentencePieceFlavour::gpt);
        const Ids expected = one["ids"];
        EXPECT_EQ(encode(*tokenizer, text), expected) << kind << ": " << text;
        EXPECT_EQ(tokenizer->decode(expected), one["decoded"].get<std::string>()) << kind << ": " << text;
        ++count;
    }
    EXPECT_GT(count, 500u);
}

TEST(SentencePiece, InvalidUtf8ReadsAsReplacementCharacters) {
    for (const char* kind : {"bpe_llama", "unigram", "char"}) {
        const auto tokenizer = load(kind, SentencePieceFlavour::gpt);
        EXPECT_EQ(encode(*tokenizer, "a\xFF\xC3(\xE2\x82z"), encode(*tokenizer, "a\uFFFD\uFFFD(\uFFFD\uFFFDz")) << kind;
    }
}

TEST(SentencePiece, EncodesOnlyAfterWhatCameBefore) {
    const auto tokenizer = load("bpe", SentencePieceFlavour::gpt);
    Ids ids = {-5};
    tokenizer->encode("the quick", ids);
    EXPECT_EQ(ids.front(), -5);
    EXPECT_GT(ids.size(), 1u);
}

TEST(SentencePiece, LlamaPutsItsBeginBeforeEveryTextAndHasNoPad) {
    const auto plain = load("bpe_llama", SentencePieceFlavour::gpt),
               llama = load("bpe_llama", SentencePieceFlavour::llama2);
    EXPECT_EQ(encode(*llama, ""), Ids{1});
    Ids expected = {1};
    plain->encode("the quick  fox", expected);
    EXPECT_EQ(encode(*llama, "the quick  fox"), expected);
    EXPECT_EQ(llama->decode(expected), "the quick  fox");
    EXPECT_EQ(llama->eod(), 2);
    EXPECT_EQ(llama->pad(), std::nullopt);
    EXPECT_EQ(llama->bos(), 1);
    EXPECT_EQ(llama->vocab_size(), plain->vocab_size());
    EXPECT_EQ(llama->name(), "Llama2Tokenizer");
    EXPECT_EQ(load("bpe", SentencePieceFlavour::gpt)->pad(), 3);
}

TEST(SentencePiece, MegatronsFlavourAddsAndFindsSpecialTokens) {
    const auto plain = load("bpe", SentencePieceFlavour::gpt);
    const auto tokenizer = load("bpe", SentencePieceFlavour::megatron, 3);
    const auto n = static_cast<std::int32_t>(plain->vocab_size());
    // <CLS> <SEP> <EOD> <MASK> are new; <pad> <s> </s> are pieces; then three extra ids.
    EXPECT_EQ(tokenizer->vocab_size(), n + 7);
    EXPECT_EQ(tokenizer->cls(), n);
    EXPECT_EQ(tokenizer->sep(), n + 1);
    EXPECT_EQ(tokenizer->eod(), n + 2);
    EXPECT_EQ(tokenizer->mask(), n + 3);
    EXPECT_EQ(tokenizer->pad(), 3);
    EXPECT_EQ(tokenizer->bos(), 1);
    EXPECT_EQ(tokenizer->eos(), 2);
    EXPECT_EQ(tokenizer->sentinels(), (Ids{n + 4, n + 5, n + 6}));
    Ids expected = encode(*plain, "the ");
    expected.push_back(n + 5);
    plain->encode("quick", expected);
    expected.insert(expected.end(), {2, n + 3});
    EXPECT_EQ(encode(*tokenizer, "the <extra_id_1>quick</s><MASK>"), expected);
    EXPECT_EQ(tokenizer->decode(expected), "the <extra_id_1> quick </s>  <MASK> ");
    // Without pad, the name is <PAD>; <extra_id_9> is not one of three.
    EXPECT_EQ(load("bpe_llama", SentencePieceFlavour::megatron)->pad(),
              load("bpe_llama", SentencePieceFlavour::gpt)->vocab_size() + 4);
    EXPECT_EQ(encode(*tokenizer, "<extra_id_9>"), encode(*plain, "<extra_id_9>"));
}

TEST(SentencePiece, LongTextsComeBack) {
    const auto tokenizer = load("bpe_across", SentencePieceFlavour::gpt);
    for (const std::string unit : {"a", "th", "the ", "qu"}) {
        std::string text;
        for (int i = 0; i < 3000; ++i) text += unit;
        const Ids ids = encode(*tokenizer, text);
        EXPECT_EQ(tokenizer->decode(ids), text.substr(0, text.find_last_not_of(' ') + 1)) << unit;
        EXPECT_LE(ids.size(), text.size() + 1) << unit;
    }
}

TEST(SentencePiece, RefusesWhatIsNoModel) {
    const auto parse = [](const std::string& bytes) {
        SentencePieceTokenizer(bytes, "x.model", SentencePieceFlavour::gpt);
    };
    const std::string good = bytes_of(golden + "bpe_llama.model");
    expect_usage_error([&] { parse(""); }, {"x.model", "no pieces"});
    expect_usage_error([&] { parse("hello, this is text"); }, {"x.model", "SentencePiece"});
    expect_usage_error([&] { parse(good.substr(0, good.size() / 2)); }, {"x.model"});
    const std::string unk("\x0a\x09\x0a\x05<unk>\x18\x02", 11);
    const auto piece = [](const std::string& text, char type) {
        return std::string{'\x0a', static_cast<char>(text.size() + 4), '\x0a', static_cast<char>(text.size())} + text +
               std::string{'\x18', type};
    };
    expect_usage_error([&] { parse(piece("a", 1)); }, {"x.model", "unknown"});
    expect_usage_error([&] { parse(unk + piece("a", 1) + piece("a", 1)); }, {"x.model", "piece 2", "twice"});
    expect_usage_error([&] { parse(unk + piece("", 1)); }, {"x.model", "piece 1", "empty"});
    expect_usage_error([&] { parse(unk + piece("a", 9)); }, {"x.model", "piece 1", "type 9"});
    expect_usage_error([&] { parse(unk + piece("<0x0A>", 6)); }, {"x.model", "piece 1", "byte"});
    expect_usage_error([&] { parse(unk + unk); }, {"x.model"});
    expect_usage_error([&] { parse(unk + piece("a", 1)); }, {"x.model", "</s>"});
    expect_usage_error([&] { load("none", SentencePieceFlavour::gpt); }, {"none.model"});
    expect_usage_error([&] { load("bpe", SentencePieceFlavour::llama2, 5); }, {"--vocab-extra-ids"});
}

TEST(SentencePiece, DamagedRulesAreRefusedOrHarmless) {
    const std::string good = bytes_of(golden + "unigram.model");
    for (std::size_t at = 0; at < good.size(); at += good.size() / 200) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 0x55);
        try {
            const SentencePieceTokenizer tokenizer(bad, "x.model", SentencePieceFlavour::megatron);
            const Ids ids = encode(tokenizer, "the quick \uFF21 e\u0301 brown \u3000 fox");
            (void)tokenizer.decode(ids);
        } catch (const UsageError&) {
        }
    }
}

}  // namespace
}  // namespace tera
