// teratron data ...: what the user types, sees and gets.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/process.h"

namespace tera::test {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void expect_refusal(const Outcome& run, const std::string& part) {
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_EQ(line_count(run.err), 1u) << run.err;
    EXPECT_TRUE(contains(run.err, part)) << run.err;
}

class Data : public ::testing::Test {
  protected:
    Data() {
        here_.folder = folder_.path();
        std::filesystem::create_directories(folder_ / "a");
        std::filesystem::create_directories(folder_ / "b");
        make("a/one", "{\"text\": \"1 2 3\"}\n{\"text\": []}\n");
        make("b/two", "{\"text\": [\"4\", \"5 6\"]}\n");
    }
    void make(const std::string& prefix, const std::string& lines) {
        write_file(folder_ / "in.jsonl", lines);
        const Outcome run = teratron({"preprocess", "--input", "in.jsonl", "--output-prefix", prefix, "--workers", "1",
                                      "--tokenizer-type", "NullTokenizer", "--vocab-size", "99", "--append-eod"},
                                     here_);
        ASSERT_EQ(run.exit_code, 0) << run.err;
    }
    Outcome data(std::vector<std::string> args) {
        args.insert(args.begin(), "data");
        return teratron(args, here_);
    }
    TemporaryFolder folder_;
    RunOptions here_;
};

TEST_F(Data, ListPrintsPrefixesForDataPath) {
    const Outcome run = data({"list", "-p", "b, a"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.out, "b/two_text_document a/one_text_document\n");
    EXPECT_EQ(data({"list", "-pa"}).out, "a/one_text_document\n");
    expect_refusal(data({"list", "-p", "nowhere"}), "nowhere");
    expect_refusal(data({"list"}), "--paths");
}

TEST_F(Data, MergesMixesAndInspects) {
    std::filesystem::create_directory(folder_ / "c");
    for (const char* pair : {"a/one_text_document", "b/two_text_document"})
        for (const char* suffix : {".bin", ".idx"})
            std::filesystem::copy(folder_ / (std::string(pair) + suffix), folder_ / "c");
    const Outcome merged = data({"merge", "--input", "c", "--output-prefix", "all"});
    EXPECT_EQ(merged.exit_code, 0) << merged.err;
    EXPECT_TRUE(contains(merged.out, "2 pairs, 3 documents, 3 sequences, 8 tokens (uint16)")) << merged.out;
    const Outcome inspected = data({"inspect", "all.idx", "--check", "--json", "--samples", "1", "--tokenizer-type",
                                    "NullTokenizer", "--vocab-size", "99"});
    ASSERT_EQ(inspected.exit_code, 0) << inspected.err;
    const auto json = nlohmann::json::parse(inspected.out);
    EXPECT_EQ(json["tokens"], 8);
    EXPECT_EQ(json["samples"][0]["ids"], (std::vector<int>{1, 2, 3, 99}));
    EXPECT_EQ(json["check"]["documents_ending_in_eod"], 2);
    const Outcome shown = data({"inspect", "all"});
    EXPECT_TRUE(contains(shown.out, "documents  3 (1 empty)")) << shown.out;
    expect_refusal(data({"inspect", "all", "--check", "--vocab-size", "5"}), "outside the vocabulary");
    expect_refusal(data({"inspect", "none"}), "none.idx");
    const Outcome mixed = data({"mix", "--folders", "a", "b", "--weights", "1", "3", "--output", "mix"});
    EXPECT_EQ(mixed.exit_code, 0) << mixed.err;
    EXPECT_TRUE(contains(mixed.out, "Creating data mixture from {'a': 0.25, 'b': 0.75}...")) << mixed.out;
    EXPECT_TRUE(contains(mixed.out, "Dataset 0 exhausted!")) << mixed.out;
    EXPECT_TRUE(std::filesystem::exists(folder_ / "mix/a/one_text_document.idx"));
    expect_refusal(data({"mix", "--folders", "a", "b", "--weights", "1", "--output", "m2"}), "one for each");
}

TEST_F(Data, ExportsText) {
    const Outcome ids = data({"export", "b/two_text_document", "--format", "ids"});
    EXPECT_EQ(ids.out, "{\"ids\": [[4], [5, 6, 99]]}\n");
    const Outcome text = data({"export", "b/two_text_document", "--output", "out.jsonl", "--tokenizer-type",
                               "NullTokenizer", "--vocab-size", "99"});
    EXPECT_EQ(text.exit_code, 0) << text.err;
    EXPECT_EQ(read_file(folder_ / "out.jsonl"), "{\"text\": [\"4\", \"5 6\"]}\n");
    expect_refusal(data({"export", "b/two_text_document"}), "--tokenizer-type");
}

TEST_F(Data, ExportNeverWritesOverWhatItReads) {
    const std::string pair = folder_ / "b/two_text_document", bin = read_file(pair + ".bin");
    std::filesystem::create_symlink(pair + ".bin", folder_ / "soft");
    std::filesystem::create_hard_link(pair + ".idx", folder_ / "hard");
    for (const char* output : {"b/two_text_document.bin", "a/../b/two_text_document.idx", "soft", "hard"})
        expect_refusal(data({"export", "b/two_text_document", "--format", "ids", "--output", output}), "which is read");
    EXPECT_EQ(read_file(pair + ".bin"), bin);
    EXPECT_EQ(data({"export", "b/two_text_document", "--format", "ids", "--output", "new"}).exit_code, 0);
}

TEST_F(Data, SplitsWork) {
    std::filesystem::create_directory(folder_ / "raw");
    write_file(folder_ / "raw/x.parquet", "12345");
    write_file(folder_ / "raw/y.parquet", "123");
    const Outcome run =
        data({"split-work", "--dataset-folder", "raw", "--preprocessing-metadata-folder", "meta", "--n-dumps", "2"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(contains(run.out, "Splitting 2 into 2 dumps...\n")) << run.out;
    EXPECT_EQ(read_file(folder_ / "meta/dumps/paths_file_1.txt"), "y.parquet\n");
    EXPECT_EQ(read_file(folder_ / "meta/raw-dataset-link/x.parquet"), "12345");
    const Outcome many =
        data({"split-work", "--dataset-folder", "raw", "--preprocessing-metadata-folder", "meta", "--n-dumps", "9"});
    EXPECT_TRUE(contains(many.out, "Splitting 2 into 2 dumps...\nThere are no files for more of the 9")) << many.out;
}

TEST_F(Data, EveryPartHasHelp) {
    for (const char* what : {"inspect", "export", "merge", "mix", "list", "split-work"}) {
        const Outcome run = data({what, "--help"});
        EXPECT_EQ(run.exit_code, 0) << what;
        EXPECT_TRUE(contains(run.out, std::string("usage: teratron data ") + what)) << run.out;
    }
    EXPECT_TRUE(contains(data({"--help"}).out, "split-work"));
    expect_refusal(data({}), "say what to do");
    expect_refusal(data({"merg"}), "did you mean 'merge'?");
}

}  // namespace
}  // namespace tera::test
