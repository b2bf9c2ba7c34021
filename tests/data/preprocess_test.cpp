#include "data/preprocess.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "data/indexed_dataset.h"
#include "data/preprocess_lines.h"
#include "support/expect_usage_error.h"
#include "support/temp_folder.h"
#include "token/json_scan.h"
#include "token/null_tokenizer.h"

namespace tera {
namespace {

void write(const std::string& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// One token per byte, and none for an empty text; eod is 256.
class ByteTokenizer : public Tokenizer {
  public:
    explicit ByteTokenizer(std::int64_t vocab_size = 257) : vocab_size_(vocab_size) {}
    std::unique_ptr<Encoder> make_encoder() const override {
        struct ByteEncoder : Encoder {
            void encode(std::string_view text, std::vector<std::int32_t>& ids) override {
                for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
            }
        };
        return std::make_unique<ByteEncoder>();
    }
    std::string decode(std::span<const std::int32_t> ids) const override { return {ids.begin(), ids.end()}; }
    std::int64_t vocab_size() const override { return vocab_size_; }
    std::int32_t eod() const override { return 256; }
    std::string name() const override { return "bytes"; }

  private:
    std::int64_t vocab_size_;
};

using Sequences = std::vector<std::vector<std::int32_t>>;

Sequences sequences(const IndexedDataset& data) {
    Sequences all;
    for (std::int64_t i = 0; i < data.size(); ++i) {
        all.emplace_back(static_cast<std::size_t>(data.index().length(i)));
        data.get(i, 0, data.index().length(i), all.back().data());
    }
    return all;
}

std::vector<std::int64_t> document_index(const IndexedDataset& data) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i <= data.index().documents(); ++i) all.push_back(data.index().document_index(i));
    return all;
}

class Preprocess : public ::testing::Test {
  protected:
    PreprocessOptions options(std::string_view text) {
        write(folder_ / "in.jsonl", text);
        PreprocessOptions chosen;
        chosen.inputs = {folder_ / "in.jsonl"};
        chosen.output_prefix = folder_ / "out";
        return chosen;
    }
    /// Everything but the input that is in the folder.
    std::vector<std::string> others() const {
        std::vector<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
            if (entry.path().filename() != "in.jsonl") names.push_back(entry.path().filename());
        return names;
    }
    TempFolder folder_;
    ByteTokenizer bytes_;
};

// The worked example of the format.
TEST_F(Preprocess, WritesMegatronsBytes) {
    const auto chosen = options("{\"text\": \"1 2 3\"}\n{\"text\": \"4 5\"}\n");
    const PreprocessProgress total = preprocess(NullTokenizer(100), chosen);
    EXPECT_EQ(total.documents, 2);
    EXPECT_EQ(total.tokens, 5);
    using namespace std::string_literals;
    EXPECT_EQ(contents(folder_ / "out_text_document.bin"), "\x01\0\x02\0\x03\0\x04\0\x05\0"s);
    EXPECT_EQ(contents(folder_ / "out_text_document.idx"),
              "MMIDIDX\0\0\x01\0\0\0\0\0\0\0\x08\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0"s + "\x03\0\0\0\x02\0\0\0"s +
                  "\0\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0"s + "\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0"s);
    EXPECT_EQ(others().size(), 2u);
}

TEST_F(Preprocess, EmptyInputGivesEmptyFiles) {
    preprocess(bytes_, options(""));
    EXPECT_EQ(contents(folder_ / "out_text_document.bin"), "");
    EXPECT_EQ(contents(folder_ / "out_text_document.idx").size(), 42u);
}

TEST_F(Preprocess, SentencesEmptyDocumentsAndEndOfDocument) {
    auto chosen = options(R"({"text": ["ab", "", "c"]}
{"text": ""}
{"text": []}
{"text": "d"})");
    chosen.append_eod = true;
    preprocess(bytes_, chosen);
    const IndexedDataset data(folder_ / "out_text_document");
    EXPECT_EQ(sequences(data), (Sequences{{'a', 'b'}, {'c', 256}, {'d', 256}}));
    EXPECT_EQ(document_index(data), (std::vector<std::int64_t>{0, 2, 2, 2, 3}));
}

TEST_F(Preprocess, EveryKeyHasItsFiles) {
    auto chosen = options("{\"b\": \"y\", \"a\": \"x\", \"c\": 1}\n");
    chosen.json_keys = {"a", "b"};
    preprocess(bytes_, chosen);
    EXPECT_EQ(sequences(IndexedDataset(folder_ / "out_a_document")), (Sequences{{'x'}}));
    EXPECT_EQ(sequences(IndexedDataset(folder_ / "out_b_document")), (Sequences{{'y'}}));
    EXPECT_EQ(others().size(), 4u);
}

TEST_F(Preprocess, LineEndsAndRepeatedKeys) {
    preprocess(bytes_, options("{\"text\": \"a\"}\r\n{\"text\": \"b\"}\r{\"text\": \"0\", \"x\": NaN, \"text\": [1, "
                               "{}], \"text\": \"\\ud800\", \"text\": \"c\"}\n"
                               " {\"text\" : \"d\"}\t\n{\"te\\u0078t\": \"e\"}"));
    EXPECT_EQ(sequences(IndexedDataset(folder_ / "out_text_document")), (Sequences{{'a'}, {'b'}, {'c'}, {'d'}, {'e'}}));
}

TEST_F(Preprocess, LargeVocabulariesTakeFourBytes) {
    preprocess(ByteTokenizer(65499), options("{\"text\": \"a\"}"));
    EXPECT_EQ(contents(folder_ / "out_text_document.bin").size(), 2u);
    preprocess(ByteTokenizer(65500), options("{\"text\": \"a\"}"));
    EXPECT_EQ(contents(folder_ / "out_text_document.bin").size(), 4u);
}

std::string random_corpus(std::size_t lines) {
    std::mt19937 random(4);
    std::string text;
    for (std::size_t i = 0; i < lines; ++i) {
        std::string body = std::to_string(i) + " ";
        for (unsigned n = random() % 60; n > 0; --n) body += static_cast<char>(' ' + random() % 90);
        if (random() % 50 == 0) body += std::string(5000, 'z');
        text += "{\"n\": [1, {\"k\": null}], \"text\": " + json_string(body) + "}" + (random() % 5 ? "\n" : "\r\n");
    }
    return text;
}

TEST_F(Preprocess, NeitherWorkersNorBlocksChangeABit) {
    auto chosen = options(random_corpus(3000));
    chosen.append_eod = true;
    const PreprocessProgress first = preprocess(bytes_, chosen);
    EXPECT_EQ(first.documents, 3000);
    EXPECT_EQ(first.bytes, first.total_bytes);
    EXPECT_EQ(first.stored_bytes, first.total_bytes);
    const std::string bin = contents(folder_ / "out_text_document.bin"),
                      idx = contents(folder_ / "out_text_document.idx");
    for (const int workers : {1, 2, 5}) {
        for (const std::size_t block : {std::size_t{1}, std::size_t{100}, std::size_t{4096}}) {
            chosen.workers = workers;
            chosen.block_bytes = block;
            std::int64_t seen = 0;
            const PreprocessProgress total = preprocess(
                bytes_, chosen, [&](const PreprocessProgress& progress) { EXPECT_EQ(progress.documents, ++seen); });
            EXPECT_EQ(total.tokens, first.tokens);
            EXPECT_EQ(total.characters, first.characters);
            ASSERT_EQ(contents(folder_ / "out_text_document.bin"), bin) << workers << " workers, " << block;
            ASSERT_EQ(contents(folder_ / "out_text_document.idx"), idx) << workers << " workers, " << block;
        }
    }
}

TEST_F(Preprocess, CharactersAreCountedAsPythonDoes) {
    EXPECT_EQ(preprocess(bytes_, options("{\"text\": \"\u00e9\"}\r\n{\"text\": \"x\"}")).characters, 14 + 13);
}

TEST_F(Preprocess, TheFirstBadLineIsNamedAndNothingIsLeft) {
    const std::string good = "{\"text\": \"fine\"}\n";
    struct Bad {
        std::string line;
        const char* why;
    };
    const std::vector<Bad> all = {{"", "blank"},
                                  {"  \t", "blank"},
                                  {"{\"txt\": \"a\"}", "no key \"text\""},
                                  {"{\"text\": 3}", "neither a string nor a list"},
                                  {"{\"text\": null}", "neither a string nor a list"},
                                  {"{\"text\": [\"a\", 1]}", "neither a string nor a list"},
                                  {"{\"text\": [[\"a\"]]}", "neither a string nor a list"},
                                  {"{\"text\": \"a\"", "invalid JSON at byte 12"},
                                  {"{\"text\": \"a\"} x", "extra data"},
                                  {"[\"text\"]", "not a JSON object"},
                                  {"\"text\"", "not a JSON object"},
                                  {"\xEF\xBB\xBF{\"text\": \"a\"}", "byte-order mark"},
                                  {"{\"text\": \"\xff\"}", "byte 10 is not valid UTF-8"},
                                  {"{\"text\": \"\\ud800\"}", "surrogate"},
                                  {"hello", "invalid JSON at byte 0"}};
    for (const auto& [line, why] : all) {
        std::string text;
        for (int i = 0; i < 40; ++i) text += good;
        text += line + "\n" + good + "also bad\n" + good;
        for (const int workers : {1, 4}) {
            auto chosen = options(text);
            chosen.workers = workers;
            chosen.block_bytes = 64;
            expect_usage_error([&] { preprocess(bytes_, chosen); }, {"in.jsonl", "line 41", why});
            EXPECT_TRUE(others().empty()) << others()[0];
        }
    }
}

TEST_F(Preprocess, TokenizerErrorsNameTheLine) {
    expect_usage_error([&] { preprocess(NullTokenizer(9), options("{\"text\": \"1\"}\n{\"text\": \"77\"}\n")); },
                       {"in.jsonl", "line 2", "77"});
}

TEST_F(Preprocess, AFailedRunLeavesEarlierOutputAlone) {
    preprocess(bytes_, options("{\"text\": \"old\"}\n"));
    const std::string bin = contents(folder_ / "out_text_document.bin");
    expect_usage_error([&] { preprocess(bytes_, options("{\"text\": \"new\"}\n?\n")); }, {"line 2"});
    EXPECT_EQ(contents(folder_ / "out_text_document.bin"), bin);
    EXPECT_EQ(sequences(IndexedDataset(folder_ / "out_text_document")), (Sequences{{'o', 'l', 'd'}}));
}

TEST_F(Preprocess, OtherKindsOfInputAreRefusedByName) {
    const auto refuse = [&](std::string_view text, std::initializer_list<const char*> parts) {
        expect_usage_error([&] { preprocess(bytes_, options(text)); }, parts);
        EXPECT_TRUE(others().empty());
    };
    refuse("\x1f\x8b\x08 cut short", {"in.jsonl", "gzip"});
    refuse("\x28\xb5\x2f\xfd cut short", {"in.jsonl", "zstd"});
    refuse("PK\x03\x04", {"in.jsonl", "zip"});
    refuse("PAR1", {"Parquet"});
    auto chosen = options("");
    chosen.inputs = {folder_ / "none"};
    expect_usage_error([&] { preprocess(bytes_, chosen); }, {"none", "cannot be opened"});
    chosen.inputs = {folder_ / "empty"};
    std::filesystem::create_directory(folder_ / "empty");
    expect_usage_error([&] { preprocess(bytes_, chosen); }, {"folder"});
}

TEST_F(Preprocess, BadOptionsAreRefused) {
    auto chosen = options("");
    chosen.workers = 0;
    expect_usage_error([&] { preprocess(bytes_, chosen); }, {"--workers 0"});
    chosen.workers = 1;
    chosen.json_keys = {"a", "b", "a"};
    expect_usage_error([&] { preprocess(bytes_, chosen); }, {"--json-keys", "\"a\" twice"});
    chosen.json_keys = {};
    expect_usage_error([&] { preprocess(bytes_, chosen); }, {"--json-keys"});
}

TEST(LineBlocks, AnyBlockSizeGivesTheSameLines) {
    const TempFolder folder;
    const std::vector<std::string> expected = {"a", "", "bb", "", "ccc", "d", "", "e e"};
    write(folder / "f", "a\n\r\nbb\r\rccc\r\nd\n\ne e");
    for (std::size_t block = 1; block < 30; ++block) {
        LineBlockReader reader(folder / "f", block);
        std::vector<std::string> lines;
        std::string text, whole;
        while (reader.next(text)) {
            whole += text;
            for (std::string_view rest = text; !rest.empty();) lines.emplace_back(take_line(rest).text);
        }
        EXPECT_EQ(lines, expected) << block;
        EXPECT_EQ(whole, contents(folder / "f"));
    }
}

}  // namespace
}  // namespace tera
