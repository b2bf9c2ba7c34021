#include "token/gpt2_bpe.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/expect_usage_error.h"
#include "token/train_bpe.h"

namespace tera {
namespace {

using Ids = std::vector<std::int32_t>;

const std::string golden = std::string(TERA_SOURCE_DIR) + "/tests/golden/bpe/";

TokenizerConfig config(const std::string& vocab, const std::string& merges) {
    TokenizerConfig flags;
    flags.tokenizer_type = "GPT2BPETokenizer";
    flags.vocab_file = vocab;
    flags.merge_file = merges;
    return flags;
}

std::unique_ptr<Tokenizer> golden_tokenizer() {
    return make_tokenizer(config(golden + "vocab.json", golden + "merges.txt"));
}

struct Case {
    std::string text;
    Ids ids;
};

std::vector<Case> cases(const std::string& path) {
    std::ifstream in(path);
    std::vector<Case> all;
    for (std::string line; std::getline(in, line);) {
        const auto json = nlohmann::json::parse(line);
        all.push_back({json["text"].get<std::string>(), json["ids"].get<Ids>()});
    }
    return all;
}

void expect_all(const Tokenizer& tokenizer, const std::vector<Case>& all) {
    ASSERT_GT(all.size(), 100u);
    for (const auto& [text, ids] : all) {
        Ids got;
        tokenizer.encode(text, got);
        ASSERT_EQ(got, ids) << text;
        ASSERT_EQ(tokenizer.decode(got), text);
    }
}

TEST(Gpt2Bpe, GivesTheIdsOfHuggingFace) {
    const auto tokenizer = golden_tokenizer();
    EXPECT_EQ(tokenizer->vocab_size(), 545);
    EXPECT_EQ(tokenizer->eod(), 0);
    EXPECT_FALSE(tokenizer->pad());
    expect_all(*tokenizer, cases(golden + "cases.jsonl"));
}

TEST(Gpt2Bpe, GivesTheIdsOfGpt2) {
    const std::string data = std::string(TERA_SOURCE_DIR) + "/../shared/data/gpt2/";
    if (!std::filesystem::exists(data + "gpt2-vocab.json")) GTEST_SKIP() << "the GPT-2 vocabulary is not here";
    const auto tokenizer = make_tokenizer(config(data + "gpt2-vocab.json", data + "gpt2-merges.txt"));
    EXPECT_EQ(tokenizer->vocab_size(), 50257);
    EXPECT_EQ(tokenizer->eod(), 50256);
    expect_all(*tokenizer, cases(golden + "gpt2_cases.jsonl"));
}

TEST(Gpt2Bpe, CachedPiecesGiveTheSameIds) {
    const auto tokenizer = golden_tokenizer();
    const auto all = cases(golden + "cases.jsonl");
    const auto encoder = tokenizer->make_encoder();
    for (int round = 0; round < 3; ++round)
        for (const auto& [text, ids] : all) {
            Ids got = {-5};  // ids are appended
            encoder->encode(text, got);
            ASSERT_EQ(got.front(), -5);
            got.erase(got.begin());
            ASSERT_EQ(got, ids) << text;
        }
}

TEST(Gpt2Bpe, PiecesWithZeroBytesAreToldApart) {
    const auto tokenizer = golden_tokenizer();
    for (const std::size_t zeros : {1u, 2u, 3u, 7u, 8u, 15u, 16u, 31u, 32u, 40u}) {
        const std::string text = "!" + std::string(zeros, '\0');
        Ids ids;
        tokenizer->encode(text, ids);
        EXPECT_EQ(tokenizer->decode(ids), text);
    }
}

TEST(Gpt2Bpe, AnyBytesComeBack) {
    const auto tokenizer = golden_tokenizer();
    std::string text;
    for (unsigned i = 0; i < 3000; ++i) text += static_cast<char>(i * i * 31 + i / 7);
    Ids ids;
    tokenizer->encode(text, ids);
    EXPECT_EQ(tokenizer->decode(ids), text);
}

TEST(Gpt2Bpe, ManyThreadsShareATokenizer) {
    const auto tokenizer = golden_tokenizer();
    const auto all = cases(golden + "cases.jsonl");
    std::vector<std::thread> threads;
    std::vector<int> wrong(4);
    for (std::size_t t = 0; t < wrong.size(); ++t)
        threads.emplace_back([&, t] {
            for (const auto& [text, ids] : all) {
                Ids got;
                tokenizer->encode(text, got);
                wrong[t] += got != ids;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(Gpt2Bpe, IdsOutsideTheVocabularyAreRefused) {
    const auto tokenizer = golden_tokenizer();
    expect_usage_error([&] { tokenizer->decode(Ids{545}); }, {"545"});
    expect_usage_error([&] { tokenizer->decode(Ids{-1}); }, {"-1"});
}

TEST(Gpt2Bpe, FilesForHuggingFaceHoldTheVocabulary) {
    const auto files = golden_tokenizer()->files();
    ASSERT_EQ(files.size(), 4u);
    EXPECT_EQ(files[0].name, "vocab.json");
    EXPECT_EQ(parse_vocab_json(files[0].bytes, "v").token_of_id.size(), 545u);
    EXPECT_EQ(files[1].name, "merges.txt");
    EXPECT_EQ(files[1].bytes, read_token_file(golden + "merges.txt"));
}

TEST(Gpt2Bpe, AVocabularyWithoutEndOfTextIsRefused) {
    expect_usage_error([] { Gpt2BpeTokenizer(BpeVocab{{"a"}}, BpeMerges{}, "v.json"); }, {"v.json", "<|endoftext|>"});
}

TEST(MakeTokenizer, RefusesByName) {
    const auto refuse = [](const TokenizerConfig& flags, std::initializer_list<const char*> parts) {
        expect_usage_error([&] { make_tokenizer(flags); }, parts);
    };
    TokenizerConfig flags;
    refuse(flags, {"--tokenizer-type"});
    flags.tokenizer_type = "GPT2BPETokenizer";
    refuse(flags, {"--vocab-file"});
    flags.vocab_file = "x";
    refuse(flags, {"--merge-file"});
    flags.merge_file = "y";
    refuse(flags, {"x", "cannot be opened"});
    for (const char* type : {"SentencePieceTokenizer", "GPTSentencePieceTokenizer", "Llama2Tokenizer",
                             "HuggingFaceTokenizer", "TikTokenizer"}) {
        flags.tokenizer_type = type;
        refuse(flags, {type, "--tokenizer-model"});
    }
    for (const char* type : {"BertWordPieceLowerCase", "BertWordPieceCase"}) {
        flags.tokenizer_type = type;
        flags.vocab_file = "";
        refuse(flags, {type, "--vocab-file"});
    }
    flags.tokenizer_type = "GPT2BPETokenizer";
    flags.vocab_extra_ids = 5;
    refuse(flags, {"--vocab-extra-ids", "GPT2BPETokenizer"});
    flags.vocab_extra_ids = 0;
    flags.tokenizer_type = "Gpt2";
    refuse(flags, {"Gpt2", "unknown"});
    flags.tokenizer_type = "NullTokenizer";
    refuse(flags, {"--vocab-size"});
}

TEST(NullTokenizer, NumbersAreIds) {
    TokenizerConfig flags;
    flags.tokenizer_type = "NullTokenizer";
    flags.vocab_size = 100;
    const auto tokenizer = make_tokenizer(flags);
    EXPECT_EQ(tokenizer->vocab_size(), 101);
    EXPECT_EQ(tokenizer->eod(), 100);
    Ids ids;
    tokenizer->encode("5 0 100 42", ids);
    EXPECT_EQ(ids, (Ids{5, 0, 100, 42}));
    EXPECT_EQ(tokenizer->decode(ids), "5 0 100 42");
    for (const char* bad : {"", " ", "1  2", "1 2 ", " 1", "x", "1,2", "1 -2", "101", "99999999999999999999", "1\n2"}) {
        Ids none = {7};
        expect_usage_error([&] { tokenizer->encode(bad, none); }, {"NullTokenizer"});
        EXPECT_EQ(none, Ids{7});
    }
    flags.vocab_size = std::int64_t{1} << 31;
    expect_usage_error([&] { make_tokenizer(flags); }, {"--vocab-size"});
}

TEST(TrainBpe, LearnsWhatHuggingFaceLearns) {
    PieceCounter pieces;
    std::ifstream in(golden + "corpus.jsonl");
    for (std::string line; std::getline(in, line);) pieces.add(nlohmann::json::parse(line)["text"].get<std::string>());
    BpeTrainOptions options;
    options.vocab_size = 700;
    const TrainedBpe trained = train_bpe(pieces, options);
    EXPECT_EQ(trained.vocab.token_of_id, parse_vocab_json(read_token_file(golden + "vocab.json"), "v").token_of_id);
    EXPECT_EQ(trained.merges.pairs, parse_merges(read_token_file(golden + "merges.txt"), "m").pairs);
}

TEST(TrainBpe, StopsAtTheAskedSizeAndFrequency) {
    PieceCounter pieces;
    for (int i = 0; i < 3; ++i) pieces.add("abab abab xy");
    BpeTrainOptions options;
    options.vocab_size = 259;
    const TrainedBpe small = train_bpe(pieces, options);
    // "ab" occurs 12 times; then "abab" 6 times: 257 tokens before them.
    ASSERT_EQ(small.vocab.token_of_id.size(), 259u);
    EXPECT_EQ(small.vocab.token_of_id[0], "<|endoftext|>");
    EXPECT_EQ(small.vocab.token_of_id[1], "!");
    EXPECT_EQ(small.vocab.token_of_id[257], "ab");
    EXPECT_EQ(small.vocab.token_of_id[258], "abab");
    options.vocab_size = 1000;
    options.min_frequency = 4;
    EXPECT_EQ(train_bpe(pieces, options).merges.pairs.size(), 2u);  // all other pairs occur 3 times
    options.vocab_size = 256;
    expect_usage_error([&] { train_bpe(pieces, options); }, {"--vocab-size 256", "257"});
}

TEST(TrainBpe, CountersAddUp) {
    PieceCounter a, b, both;
    a.add("one two two");
    b.add("two three");
    both.add("one two two");
    both.add("two three");
    a.merge(b);
    EXPECT_EQ(a.counts(), both.counts());
    EXPECT_EQ(a.counts().at(" two"), 2);
    EXPECT_EQ(a.counts().at("two"), 1);
}

}  // namespace
}  // namespace tera
