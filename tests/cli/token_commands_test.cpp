// The commands that prepare data, run as a user runs them.
#include <gtest/gtest.h>

#include <cstring>

#include "cli/process.h"

namespace tera::test {
namespace {

class TokenCommands : public ::testing::Test {
  protected:
    void SetUp() override {
        const Outcome made = teratron({"example-corpus", "--output", corpus(), "--megabytes", "0.2", "--seed", "3"});
        ASSERT_EQ(made.exit_code, 0) << made.err;
        const Outcome trained = teratron(
            {"tokenizer", "train", "--input", corpus(), "--vocab-size", "600", "--output", folder_ / "tokenizer"});
        ASSERT_EQ(trained.exit_code, 0) << trained.err;
    }
    std::string corpus() const { return folder_ / "stories.jsonl"; }
    std::vector<std::string> with_tokenizer(std::vector<std::string> args) const {
        for (const std::string& word : {std::string("--vocab-file"), (folder_ / "tokenizer/vocab.json").string(),
                                        std::string("--merge-file"), (folder_ / "tokenizer/merges.txt").string()})
            args.push_back(word);
        return args;
    }
    TemporaryFolder folder_;
};

TEST_F(TokenCommands, TextToIdsAndBack) {
    write_file(folder_ / "in.txt", "Once upon a time, there was a fox.\n\"Hello!\" it said.\n");
    const Outcome ids = teratron(with_tokenizer({"tokenizer", "encode", "--input", folder_ / "in.txt"}));
    ASSERT_EQ(ids.exit_code, 0) << ids.err;
    EXPECT_EQ(line_count(ids.out), 2u);
    write_file(folder_ / "ids.txt", ids.out);
    const Outcome back = teratron(with_tokenizer({"tokenizer", "decode", "--input", folder_ / "ids.txt"}));
    EXPECT_EQ(back.out, read_file(folder_ / "in.txt")) << back.err;
    write_file(folder_ / "ids.txt", "1 2\n600\n");
    const Outcome bad = teratron(with_tokenizer({"tokenizer", "decode", "--input", folder_ / "ids.txt"}));
    EXPECT_EQ(bad.exit_code, 2);
    EXPECT_NE(bad.err.find("line 2"), std::string::npos) << bad.err;
}

TEST_F(TokenCommands, TrainingTakesFoldersAndSparesWhatIsThere) {
    const auto train = [&](const std::string& input, const std::string& output, std::vector<std::string> more = {}) {
        std::vector<std::string> args = {"tokenizer",    "train", "--input",  folder_ / input,
                                         "--vocab-size", "300",   "--output", folder_ / output};
        args.insert(args.end(), more.begin(), more.end());
        return teratron(args);
    };
    const auto expect_refusal = [](const Outcome& run, const std::string& part) {
        EXPECT_EQ(run.exit_code, 2) << run.err;
        EXPECT_NE(run.err.find(part), std::string::npos) << run.err;
    };
    std::filesystem::create_directories(folder_ / "in/deep");
    write_file(folder_ / "in/a.jsonl", "{\"text\": \"ab ab ab\"}\n");
    write_file(folder_ / "in/deep/b.json", "{\"text\": \"cd cd\"}\n");
    EXPECT_EQ(train("in", "t1").exit_code, 0);
    const std::string merges = read_file(folder_ / "t1/merges.txt");
    EXPECT_NE(merges.find("\nc d\n"), std::string::npos) << merges;
    EXPECT_EQ(train("in/*/*.json", "t2").exit_code, 0);
    expect_refusal(train("in/a.jsonl", "t1"), "--overwrite");
    EXPECT_EQ(read_file(folder_ / "t1/merges.txt"), merges);
    EXPECT_EQ(train("in/a.jsonl", "t1", {"--overwrite"}).exit_code, 0);
    EXPECT_NE(read_file(folder_ / "t1/merges.txt"), merges);
    write_file(folder_ / "in/a.jsonl", "{\"text\": \"ab ab ab\"}\nno object\n");
    expect_refusal(train("in", "t3"), "a.jsonl: line 2");
    const Outcome skipped = train("in", "t3", {"--skip-invalid"});
    EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
    EXPECT_NE(skipped.err.find("a.jsonl: line 2"), std::string::npos) << skipped.err;
    EXPECT_EQ(read_file(folder_ / "t3/merges.txt"), merges);
    write_file(folder_ / "in/a.jsonl", "{\"text\": \"\"}\n");
    expect_refusal(train("in/a.jsonl", "t4"), "no text");
    write_file(folder_ / "in/c.csv", "text\nab\n");
    expect_refusal(train("in", "t4"), "c.csv");
    expect_refusal(train("in", "t4", {"--plain-text"}), "is a folder");
    EXPECT_FALSE(std::filesystem::exists(folder_ / "t4"));
}

TEST_F(TokenCommands, PreprocessPrintsMegatronsLinesAndIsTheSameForAnyWorkers) {
    std::string bin, idx;
    for (const char* workers : {"1", "3"}) {
        const Outcome done =
            teratron(with_tokenizer({"preprocess", "--input", corpus(), "--output-prefix", folder_ / "out",
                                     "--append-eod", "--workers", workers, "--log-interval=50"}));
        ASSERT_EQ(done.exit_code, 0) << done.err;
        EXPECT_NE(done.out.find("Opening " + corpus() + "\nTime to startup: 0."), std::string::npos) << done.out;
        EXPECT_NE(done.err.find("Processed 100 documents ("), std::string::npos) << done.err;
        EXPECT_NE(done.err.find(" docs/s, "), std::string::npos) << done.err;
        const std::string bin_now = read_file(folder_ / "out_text_document.bin");
        const std::string idx_now = read_file(folder_ / "out_text_document.idx");
        EXPECT_FALSE(bin_now.empty());
        if (!bin.empty()) {
            EXPECT_EQ(bin_now, bin);
            EXPECT_EQ(idx_now, idx);
        }
        bin = bin_now;
        idx = idx_now;
    }
}

TEST_F(TokenCommands, BadInputIsOneLineAndLeavesNothing) {
    write_file(folder_ / "bad.jsonl", "{\"text\": \"fine\"}\n{\"text\": fine}\n");
    const Outcome bad =
        teratron(with_tokenizer({"preprocess", "--input", folder_ / "bad.jsonl", "--output-prefix", folder_ / "bad"}));
    EXPECT_EQ(bad.exit_code, 2);
    EXPECT_EQ(line_count(bad.err), 1u) << bad.err;
    EXPECT_NE(bad.err.find("bad.jsonl: line 2"), std::string::npos) << bad.err;
    for (const char* end : {".bin", ".idx", ".bin.tmp", ".idx.tmp"})
        EXPECT_FALSE(std::filesystem::exists(folder_ / (std::string("bad_text_document") + end))) << end;
}

TEST_F(TokenCommands, AFullDiskIsOneLineAndLeavesNothing) {
    RunOptions full;
    full.file_size_limit = 20000;
    const std::vector<std::vector<std::string>> modes = {{}, {"--split-sentences"}, {"--partitions", "2"}};
    for (const std::vector<std::string>& mode : modes) {
        std::vector<std::string> args = {"preprocess", "--input", corpus(), "--output-prefix", folder_ / "full"};
        args.insert(args.end(), mode.begin(), mode.end());
        const Outcome done = teratron(with_tokenizer(args), full);
        EXPECT_EQ(done.exit_code, 2) << done.err;
        EXPECT_EQ(line_count(done.err), 1u) << done.err;
        for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
            EXPECT_FALSE(entry.path().filename().string().starts_with("full")) << entry.path();
    }
    const Outcome story = teratron({"example-corpus", "--output", folder_ / "full.jsonl", "--megabytes", "1"}, full);
    EXPECT_EQ(story.exit_code, 2);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "full.jsonl"));
}

TEST_F(TokenCommands, SentencesAreSequencesOfTheirDocument) {
    write_file(folder_ / "prose.jsonl",
               "{\"text\": \"Mr. Fox ran. He stopped!\\n\\nThe end\"}\n{\"text\": \"\"}\n{\"text\": [\"One. Two.\", "
               "\"Three\"]}\n");
    const Outcome done = teratron(with_tokenizer({"preprocess", "--input", folder_ / "prose.jsonl", "--output-prefix",
                                                  folder_ / "prose", "--split-sentences", "--append-eod"}));
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const std::string idx = read_file(folder_ / "prose_text_sentence.idx");
    std::uint64_t counts[2];  // sequences, document indices
    ASSERT_GT(idx.size(), 34u);
    std::memcpy(counts, idx.data() + 18, sizeof counts);
    EXPECT_EQ(counts[0], 6u);
    ASSERT_EQ(counts[1], 4u);
    std::int64_t documents[4];
    ASSERT_EQ(idx.size(), 34 + 12 * counts[0] + sizeof documents);
    std::memcpy(documents, idx.data() + 34 + 12 * counts[0], sizeof documents);
    EXPECT_EQ(documents[0], 0);
    EXPECT_EQ(documents[1], 3);
    EXPECT_EQ(documents[2], 3);
    EXPECT_EQ(documents[3], 6);
}

TEST_F(TokenCommands, NumbersOfWorkersAreMeasuredWithoutWriting) {
    const Outcome done = teratron(with_tokenizer({"preprocess", "--input", corpus(), "--output-prefix", folder_ / "w",
                                                  "--find-optimal-num-workers", "--workers-to-check", "1", "3"}));
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_NE(done.out.find("1 workers: "), std::string::npos) << done.out;
    EXPECT_NE(done.out.find("3 workers: "), std::string::npos) << done.out;
    EXPECT_NE(done.out.find("The fastest is --workers "), std::string::npos) << done.out;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
        EXPECT_FALSE(entry.path().filename().string().starts_with("w_")) << entry.path();
}

TEST_F(TokenCommands, WhatCannotBeIsRefusedByName) {
    struct Refused {
        std::vector<std::string> flags;
        const char* name;
    };
    for (const auto& [flags, name] :
         std::vector<Refused>{{{"--split-sentences", "--lang", "klingon"}, "--lang klingon"},
                              {{"--partitions", "0"}, "--partitions 0"},
                              {{"--tokenizer-type", "SFTTokenizer"}, "SFTTokenizer"},
                              {{"--tokenizer-type", "TikTokenizer"}, "--tokenizer-model"},
                              {{"--tokenizer-type", "Llama2Tokenizer"}, "--tokenizer-model"},
                              {{"--vocab-extra-ids", "3"}, "--vocab-extra-ids"},
                              {{"--tokenizer-hf-no-include-special-tokens"}, "has no post-processor"},
                              {{"--tokenizer-sentencepiece-legacy"}, "use SentencePieceTokenizer"},
                              {{"--null-tokenizer-eod-id", "5"}, "--null-tokenizer-eod-id is not supported"},
                              {{"--null-tokenizer-pad-id", "5"}, "--null-tokenizer-pad-id is not supported"},
                              {{"--workers", "0"}, "--workers 0"},
                              {{"--log-interval", "0"}, "--log-interval 0"},
                              {{"--find-optimal-num-workers", "--workers-to-check", "0"}, "--workers-to-check 0"},
                              {{"--json-key"}, "--json-keys"}}) {
        std::vector<std::string> args = {"preprocess", "--input", corpus(), "--output-prefix", folder_ / "x"};
        args.insert(args.end(), flags.begin(), flags.end());
        const Outcome done = teratron(with_tokenizer(args));
        EXPECT_EQ(done.exit_code, 2) << name;
        EXPECT_NE(done.err.find(name), std::string::npos) << done.err;
    }
}

TEST_F(TokenCommands, FlagsOfNewerMegatronVersions) {
    write_file(folder_ / "in.txt", "the fox\n");
    const std::string model = std::string(TERA_SOURCE_DIR) + "/tests/golden/hf/llama2";
    std::vector<std::string> args = {
        "tokenizer",         "encode", "--input", folder_ / "in.txt", "--tokenizer-type", "HuggingFaceTokenizer",
        "--tokenizer-model", model};
    const Outcome with = teratron(args);
    args.push_back("--tokenizer-hf-no-include-special-tokens");
    const Outcome without = teratron(args);
    EXPECT_EQ(without.exit_code, 0) << without.err;
    EXPECT_EQ(with.out, "1 " + without.out);
    const Outcome old = teratron(with_tokenizer({"tokenizer", "encode", "--input", folder_ / "in.txt",
                                                 "--legacy-tokenizer", "--make-vocab-size-divisible-by", "64"}));
    EXPECT_EQ(old.exit_code, 0) << old.err;
    EXPECT_EQ(old.out, teratron(with_tokenizer({"tokenizer", "encode", "--input", folder_ / "in.txt"})).out);
    EXPECT_NE(old.err.find("--legacy-tokenizer changes nothing"), std::string::npos) << old.err;
    EXPECT_NE(old.err.find("--make-vocab-size-divisible-by changes nothing"), std::string::npos) << old.err;
}

TEST_F(TokenCommands, HelpIsThere) {
    for (const std::vector<std::string>& command : {std::vector<std::string>{"tokenizer"},
                                                    {"tokenizer", "train"},
                                                    {"tokenizer", "encode"},
                                                    {"tokenizer", "decode"},
                                                    {"preprocess"},
                                                    {"example-corpus"}}) {
        std::vector<std::string> args = command;
        args.push_back("--help");
        const Outcome done = teratron(args);
        EXPECT_EQ(done.exit_code, 0);
        EXPECT_NE(done.out.find("usage: teratron " + command[0]), std::string::npos) << done.out;
    }
    EXPECT_EQ(teratron({"tokenizer"}).exit_code, 2);
    EXPECT_EQ(teratron({"tokenizer", "learn"}).exit_code, 2);
}

}  // namespace
}  // namespace tera::test
