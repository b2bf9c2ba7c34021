// preprocess --output-folder: files dealt out to tasks as datatrove's pipeline does, with its flags and its names.
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/process.h"
#include "core/error.h"

namespace tera::test {
namespace {

using Words = std::vector<std::string>;

class PreprocessTasks : public testing::Test {
  protected:
    PreprocessTasks() {
        here_.folder = folder_.path();
        std::filesystem::create_directory(folder_ / "set");
        for (int i = 0; i < 5; ++i) {
            const std::string name = cat(static_cast<char>('a' + i), ".jsonl");
            write_file(folder_ / ("set/" + name), cat("{\"text\": \"the ", i, "\"}\n"));
            list_ += name + "\n";
        }
        write_file(folder_ / "list.txt", list_);
    }
    Outcome run(const Words& more) const {
        Words words = {"preprocess",
                       "--tokenizer-name-or-path",
                       TERA_SOURCE_DIR "/tests/golden/hf/gpt2",
                       "--output-folder",
                       "out",
                       "--logging-dir",
                       "logs",
                       "--n-tasks",
                       "2",
                       "--dataset",
                       "set",
                       "--paths-file",
                       "list.txt",
                       "--column",
                       "text",
                       "--n-workers",
                       "-1"};
        words.insert(words.end(), more.begin(), more.end());
        return teratron(words, here_);
    }
    /// Documents as text.
    std::string documents(const std::string& prefix) const {
        const Outcome text = teratron({"data", "export", prefix, "--tokenizer-type", "HuggingFaceTokenizer",
                                       "--tokenizer-model", TERA_SOURCE_DIR "/tests/golden/hf/gpt2"},
                                      here_);
        EXPECT_EQ(text.exit_code, 0) << text.err;
        return text.out;
    }

    TemporaryFolder folder_;
    RunOptions here_;
    std::string list_;
};

TEST_F(PreprocessTasks, EachHasItsPairAndIsDoneOnce) {
    const Outcome first = run({});
    ASSERT_EQ(first.exit_code, 0) << first.err;
    EXPECT_EQ(documents("out/00000_tokens"), "{\"text\": \"the 0\"}\n{\"text\": \"the 2\"}\n{\"text\": \"the 4\"}\n");
    EXPECT_EQ(documents("out/00001_tokens"), "{\"text\": \"the 1\"}\n{\"text\": \"the 3\"}\n");
    EXPECT_TRUE(std::filesystem::exists(folder_ / "logs/completions/00001"));
    std::filesystem::remove(folder_ / "logs/completions/00001");
    const Outcome again = run({});
    ASSERT_EQ(again.exit_code, 0) << again.err;
    EXPECT_NE(again.out.find("Task 00000 is done"), std::string::npos) << again.out;
    EXPECT_EQ(again.out.find("Task 00001 is done"), std::string::npos) << again.out;
    EXPECT_NE(again.out.find("2 documents"), std::string::npos) << again.out;
}

TEST_F(PreprocessTasks, EndWithTheTokenAskedFor) {
    ASSERT_EQ(run({"--eos-token", "<|endoftext|>"}).exit_code, 0);
    EXPECT_NE(documents("out/00001_tokens").find("the 1"), std::string::npos);
    const Outcome counted = teratron({"data", "inspect", "out/00001_tokens", "--json"}, here_);
    EXPECT_NE(counted.out.find("\"ids\":[283,221,17,0]"), std::string::npos) << counted.out;
    const Outcome refused = run({"--eos-token", "two words"});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.err.find("must be one token"), std::string::npos) << refused.err;
}

TEST_F(PreprocessTasks, ContradictionsAreRefused) {
    for (const Words& more : {Words{"--output-prefix", "x"}, Words{"--n-tasks", "0"},
                              Words{"--tokenizer-type", "GPT2BPETokenizer"}, Words{"--columns", "text", "title"}}) {
        const Outcome refused = run(more);
        EXPECT_EQ(refused.exit_code, 2) << more[0];
        EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    }
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out/00000_tokens.idx"));
}

}  // namespace
}  // namespace tera::test
