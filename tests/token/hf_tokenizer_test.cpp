#include "token/hf_tokenizer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/expect_usage_error.h"
#include "token/utf8.h"

namespace tera {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::int32_t>;
using nlohmann::json;

const fs::path golden = fs::path(TERA_SOURCE_DIR) / "tests/golden/hf";

Ids encode(const Tokenizer& tokenizer, std::string_view text) {
    Ids ids;
    tokenizer.encode(text, ids);
    return ids;
}

/// A fresh folder with the files of a tokenizer.
class Folder {
  public:
    Folder() {
        std::string name = fs::temp_directory_path() / "tera_hf_XXXXXX";
        path_ = ::mkdtemp(name.data());
    }
    ~Folder() { fs::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    void write(const std::string& name, const json& content) const { write_text(name, content.dump()); }
    void write_text(const std::string& name, const std::string& text) const { std::ofstream(path_ / name) << text; }
    std::unique_ptr<Tokenizer> load() const { return load_hugging_face_tokenizer(path_.string()); }

  private:
    fs::path path_;
};

/// WordPiece over a few letters, with one special token.
json small() {
    return json::parse(R"({
        "version": "1.0",
        "added_tokens": [{"id": 0, "content": "[UNK]", "special": true, "normalized": false}],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": null,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": false},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 10,
                  "vocab": {"[UNK]": 0, "a": 1, "##b": 2, "ab": 3, "<s>": 4, "</s>": 5, "\ufffd": 6}}
    })");
}
const json end_token = {{"eos_token", "</s>"}};

class HfGolden : public testing::TestWithParam<std::string> {};

TEST_P(HfGolden, IdsAndTextAreThoseOfThePackage) {
    const fs::path folder = golden / GetParam();
    const auto tokenizer = load_hugging_face_tokenizer(folder.string());
    std::ifstream in(folder / "cases.json");
    const json cases = json::parse(in);
    ASSERT_GT(cases.size(), 10u);
    for (const json& one : cases) {
        const Ids ids = one["ids"];
        EXPECT_EQ(encode(*tokenizer, one["text"].get<std::string>()), ids) << one["text"];
        EXPECT_EQ(replace_invalid_utf8(tokenizer->decode(ids)), one["decoded"].get<std::string>()) << one["text"];
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, HfGolden,
                         testing::Values("gpt2", "qwen2", "llama2", "llama2_first", "bert", "unigram", "unigram_bytes",
                                         "odd0", "odd1", "odd2", "odd3", "odd4", "odd5"),
                         [](const auto& tested) { return tested.param; });

TEST(HuggingFaceTokenizer, OneTokenizerServesManyThreads) {
    const auto tokenizer = load_hugging_face_tokenizer((golden / "llama2").string());
    const Ids expected = encode(*tokenizer, "the quick brown fox don't <s> \u4f60");
    std::vector<std::thread> threads;
    std::vector<int> wrong(4);
    for (std::size_t t = 0; t < wrong.size(); ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 50; ++i)
                wrong[t] += encode(*tokenizer, "the quick brown fox don't <s> \u4f60") != expected;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(HuggingFaceTokenizer, InvalidUtf8IsTheReplacementCharacter) {
    const Folder folder;
    folder.write("tokenizer.json", small());
    folder.write("tokenizer_config.json", end_token);
    const auto tokenizer = folder.load();
    EXPECT_EQ(encode(*tokenizer, "ab \xff ab \xe2\x82"), (Ids{3, 6, 3, 6}));
}

TEST(HuggingFaceTokenizer, SpecialTokensOfTheConfigurationCount) {
    const Folder folder;
    folder.write("tokenizer.json", small());
    // <s> is in the vocabulary, <pad> and <new> are not and get the next ids; all are found in text.
    folder.write("tokenizer_config.json", {{"eos_token", {{"content", "</s>"}, {"lstrip", true}}},
                                           {"bos_token", "<s>"},
                                           {"pad_token", "<pad>"},
                                           {"additional_special_tokens", {"<new>"}}});
    const auto tokenizer = folder.load();
    EXPECT_EQ(tokenizer->vocab_size(), 9);
    EXPECT_EQ(tokenizer->eod(), 5);
    EXPECT_EQ(tokenizer->bos(), 4);
    EXPECT_EQ(tokenizer->pad(), 7);
    EXPECT_EQ(encode(*tokenizer, "ab<new>AB<s>  </s> abb"), (Ids{3, 8, 3, 4, 5, 3, 2}));
    EXPECT_EQ(tokenizer->decode(Ids{3, 2, 8, 1}), "abb <new> a");
}

TEST(HuggingFaceTokenizer, BeginAndEndAreMarkedAsThePostProcessorSays) {
    const Folder folder;
    json file = small();
    folder.write("tokenizer.json", file);
    // transformers 5 drops these flags where there is a tokenizer.json.
    for (const bool add : {false, true}) {
        folder.write("tokenizer_config.json", {{"eos_token", "</s>"},
                                               {"bos_token", "<s>"},
                                               {"add_bos_token", add},
                                               {"add_eos_token", add},
                                               {"tokenizer_class", "LlamaTokenizerFast"}});
        file["post_processor"] = nullptr;
        folder.write("tokenizer.json", file);
        EXPECT_EQ(encode(*folder.load(), "ab"), (Ids{3}));
        file["post_processor"] = {{"type", "BertProcessing"}, {"sep", {"a", 1}}, {"cls", {"a", 1}}};
        folder.write("tokenizer.json", file);
        EXPECT_EQ(encode(*folder.load(), "ab"), (Ids{1, 3, 1}));
    }
}

TEST(HuggingFaceTokenizer, EndOfDocumentIsSaidSomewhere) {
    const Folder folder;
    folder.write("tokenizer.json", small());
    expect_usage_error([&] { folder.load(); }, {"nothing says which token ends a document"});
    folder.write("generation_config.json", {{"eos_token_id", {4, 5}}});
    EXPECT_EQ(folder.load()->eod(), 4);
    folder.write("special_tokens_map.json", end_token);
    EXPECT_EQ(folder.load()->eod(), 5);
    folder.write("generation_config.json", {{"eos_token_id", 99}});
    folder.write("special_tokens_map.json", {{"sep_token", "a"}});
    expect_usage_error([&] { folder.load(); }, {"id 99, is not in the vocabulary"});
}

TEST(HuggingFaceTokenizer, GivesItsFilesForCheckpoints) {
    const Folder folder;
    folder.write("tokenizer.json", small());
    folder.write("tokenizer_config.json", end_token);
    const auto files = folder.load()->files();
    ASSERT_EQ(files.size(), 2u);
    EXPECT_EQ(files[0].name, "tokenizer.json");
    EXPECT_EQ(files[0].bytes, small().dump());
    EXPECT_EQ(files[1].name, "tokenizer_config.json");
    EXPECT_EQ(files[1].bytes, end_token.dump());
}

TEST(HuggingFaceTokenizer, IdsOutsideTheVocabularyAreRefused) {
    const Folder folder;
    folder.write("tokenizer.json", small());
    folder.write("tokenizer_config.json", end_token);
    const auto tokenizer = folder.load();
    expect_usage_error([&] { (void)tokenizer->decode(Ids{7}); }, {"outside the vocabulary"});
    expect_usage_error([&] { (void)tokenizer->decode(Ids{-1}); }, {"outside the vocabulary"});
}

struct Refusal {
    const char* name;
    const char* at;      // JSON pointer
    const char* change;  // what is put there
    const char* message;
};

class HfRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(HfRefusal, IsOneLineThatNamesIt) {
    const Folder folder;
    json file = small();
    file[json::json_pointer(GetParam().at)] = json::parse(GetParam().change);
    folder.write("tokenizer.json", file);
    folder.write("tokenizer_config.json", end_token);
    expect_usage_error([&] { folder.load(); }, {GetParam().message});
    expect_usage_error([&] { folder.load(); }, {"tokenizer.json"});
}

INSTANTIATE_TEST_SUITE_P(
    All, HfRefusal,
    testing::Values(
        Refusal{"WordLevel", "/model/type", R"("WordLevel")", "\"WordLevel\" is not supported"},
        Refusal{"Normalizer", "/normalizer", R"({"type": "Nmt"})", "normalizer \"Nmt\" is not supported"},
        Refusal{"ReplaceRegex", "/normalizer", R"({"type": "Replace", "pattern": {"Regex": "a|b"}, "content": ""})",
                "\"a|b\" is not supported"},
        Refusal{"PreTokenizer", "/pre_tokenizer", R"({"type": "UnicodeScripts"})",
                "\"UnicodeScripts\" is not supported"},
        Refusal{"SplitRegex", "/pre_tokenizer",
                R"({"type": "Split", "pattern": {"Regex": "[0-9]+"}, "behavior": "Isolated", "invert": false})",
                "\"[0-9]+\" is not supported"},
        Refusal{"BehindByteLevel", "/pre_tokenizer",
                R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Digits"}]})",
                "behind ByteLevel"},
        Refusal{"PostProcessor", "/post_processor", R"({"type": "Other"})", "post-processor \"Other\""},
        Refusal{"PostProcessorId", "/post_processor",
                R"({"type": "BertProcessing", "sep": ["a", 99], "cls": ["a", 1]})", "id 99 is not in the vocabulary"},
        Refusal{"Decoder", "/decoder", R"({"type": "CTC"})", "decoder \"CTC\" is not supported"},
        Refusal{"UnknownToken", "/model/unk_token", R"("[X]")", "\"[X]\" is not in the vocabulary"},
        Refusal{"TwoOfOneId", "/model/vocab/b", "1", "id 1 is given to"},
        Refusal{"IdOutOfRange", "/model/vocab/b", "99999999999", "is not in 0.."},
        Refusal{"Version", "/version", R"("2.0")", "version \"2.0\" is not known"},
        Refusal{"NegativeId", "/added_tokens/0/id", "-3", "\"id\" must not be negative"},
        Refusal{"EmptyVocab", "/model/vocab", "{}", "the vocabulary is empty"},
        Refusal{"Suffix", "/model", R"({"type": "BPE", "vocab": {"a": 0}, "merges": [], "end_of_word_suffix": "</w>"})",
                "end_of_word_suffix is not supported"},
        Refusal{"Dropout", "/model", R"({"type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 0.1})", "dropout"},
        Refusal{"MergeOutsideVocab", "/model", R"({"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": ["a b"]})",
                "needs the token \"ab\""},
        Refusal{"MergeOfThree", "/model", R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a b c"]})",
                "a merge is not two tokens"},
        Refusal{"NoUnknown", "/model", R"({"type": "Unigram", "unk_id": null, "vocab": [["a", 0]]})",
                "Unigram without unk_id"},
        Refusal{"ScoreIsText", "/model", R"({"type": "Unigram", "unk_id": 0, "vocab": [["a", "b"]]})",
                "expected a number"}),
    [](const auto& tested) { return tested.param.name; });

TEST(HuggingFaceTokenizer, BrokenFilesAreRefused) {
    const Folder folder;
    expect_usage_error([&] { folder.load(); }, {"there is no such file"});
    folder.write("tokenizer_config.json", end_token);
    for (const char* text :
         {"", "{", "[]", "{}", "{\"model\": 1}", "{\"model\": {\"vocab\": {\"a\": 0}, \"merges\": [1]}}",
          "{\"model\": {}, \"model\": {}}", "\xff"}) {
        folder.write_text("tokenizer.json", text);
        expect_usage_error([&] { folder.load(); }, {"tokenizer.json"});
    }
}

TEST(HuggingFaceTokenizer, OtherFilesAreToldWhatIsWanted) {
    const Folder folder;
    for (const char* text : {"\n\x0e\n\x05<unk>\xff", R"({"a": 0, "b": 1})", R"({"a": 0, "model": 1})"}) {
        folder.write_text("tokenizer.json", text);
        expect_usage_error([&] { folder.load(); }, {"wants a tokenizer.json", "GPT2BPETokenizer", "Llama2Tokenizer"});
    }
}

// What transformers 5 gives.
TEST(HuggingFaceTokenizer, SpecialTokensStayTextIfTheConfigurationSaysSo) {
    const Folder folder;
    json file = small();
    file["added_tokens"].push_back({{"id", 7}, {"content", "[X]"}, {"special", false}, {"normalized", false}});
    folder.write("tokenizer.json", file);
    folder.write("tokenizer_config.json", {{"eos_token", "</s>"}, {"split_special_tokens", false}});
    const char* text = "ab </s>[X] <s>[X]a</s>";
    EXPECT_EQ(encode(*folder.load(), text), (Ids{3, 5, 7, 4, 7, 1, 5}));
    folder.write("tokenizer_config.json", {{"eos_token", "</s>"}, {"split_special_tokens", true}});
    EXPECT_EQ(encode(*folder.load(), text), (Ids{3, 5, 7, 4, 7, 0}));
    folder.write("tokenizer_config.json", {{"eos_token", "</s>"}, {"split_special_tokens", "yes"}});
    expect_usage_error([&] { folder.load(); }, {"tokenizer_config.json", "split_special_tokens"});
}

TEST(HuggingFaceTokenizer, Gpt2OfTheHub) {
    const fs::path file = fs::path(TERA_SOURCE_DIR) / "../shared/data/gpt2/tokenizer.json";
    if (!fs::exists(file)) GTEST_SKIP() << "the file of GPT-2 is not here";
    const auto tokenizer = load_hugging_face_tokenizer(file.string());
    EXPECT_EQ(tokenizer->vocab_size(), 50257);
    EXPECT_EQ(tokenizer->eod(), 50256);
    EXPECT_EQ(encode(*tokenizer, "Hello world<|endoftext|>"), (Ids{15496, 995, 50256}));
    EXPECT_EQ(tokenizer->decode(Ids{15496, 995, 50256}), "Hello world<|endoftext|>");
}

}  // namespace
}  // namespace tera
