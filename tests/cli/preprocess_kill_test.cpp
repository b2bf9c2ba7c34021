// kill -9 at random instants, then the same command again: the bytes of an undisturbed run, and never a file that looks
// finished and is not.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <random>
#include <thread>

#include "cli/process.h"

extern char** environ;

namespace tera::test {
namespace {

using Words = std::vector<std::string>;

/// Starts `teratron <args>` and kills it after so many milliseconds. True if it was killed, false if it had finished.
bool run_and_kill(const Words& args, int milliseconds) {
    std::vector<char*> words = {const_cast<char*>(TERA_BINARY)};
    for (const std::string& arg : args) words.push_back(const_cast<char*>(arg.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t pid = 0;
    EXPECT_EQ(posix_spawn(&pid, TERA_BINARY, &actions, nullptr, words.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    kill(pid, SIGKILL);
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status);
}

struct Mode {
    const char* name;
    std::string (*line)(std::mt19937& random);
    Words flags;
};

std::string numbers(std::mt19937& random) {
    std::string text;
    for (unsigned n = random() % 200; n > 0; --n) text += std::to_string(random() % 60000) + " ";
    return text + "1";
}

std::string prose(std::mt19937& random) {
    const char* const words[] = {"the",       "quick", "brown",   "fox",  "don't",
                                 "Mr. Smith", "3.14",  "foo_bar", "it's", "na\u00efve"};
    std::string text;
    for (unsigned n = random() % 30; n > 0; --n) {
        text += "He";
        for (unsigned k = random() % 12; k > 0; --k) text += std::string(" ") + words[random() % std::size(words)];
        text += random() % 4 == 0 ? "?\\n\\n" : ". ";
    }
    return text;
}

const std::string golden = std::string(TERA_SOURCE_DIR) + "/tests/golden/";

class SlowPreprocessKill : public testing::TestWithParam<Mode> {
  protected:
    Words to(const std::string& prefix) const {
        Words all = {"preprocess",        "--input", folder_ / "in.jsonl", "--append-eod",  "--workers", "2",
                     "--resume-interval", "0.02",    "--output-prefix",    folder_ / prefix};
        all.insert(all.end(), GetParam().flags.begin(), GetParam().flags.end());
        return all;
    }
    /// The finished files of a run, by the part of their names behind the prefix.
    std::map<std::string, std::string> outputs(const std::string& prefix) const {
        std::map<std::string, std::string> files;
        for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
            const std::string name = entry.path().filename();
            if (name.starts_with(prefix + "_") && (name.ends_with(".bin") || name.ends_with(".idx")))
                files[name.substr(prefix.size())] = read_file(entry.path());
        }
        return files;
    }
    void remove(const std::string& prefix) const {
        for (const auto& [name, bytes] : outputs(prefix)) std::filesystem::remove(folder_ / (prefix + name));
    }

    TemporaryFolder folder_;
};

TEST_P(SlowPreprocessKill, AnyInstantAndStartedAgainGivesTheSameBytes) {
    std::mt19937 random(7);
    std::string text;
    while (text.size() < (std::size_t{32} << 20)) text += "{\"text\": \"" + GetParam().line(random) + "\"}\n";
    write_file(folder_ / "in.jsonl", text);
    const auto began = std::chrono::steady_clock::now();
    const Outcome undisturbed = teratron(to("whole"));
    ASSERT_EQ(undisturbed.exit_code, 0) << undisturbed.err;
    const int whole_ms = static_cast<int>(
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began).count());
    const auto whole = outputs("whole");
    ASSERT_GE(whole.size(), 2u);
    int killed = 0, resumed = 0, latest_ms = std::max(whole_ms, 20);
    for (int n = 0; n < 60 && (killed < 10 || resumed == 0); ++n) {
        const std::string prefix = "out" + std::to_string(n);
        for (int kills = 0; kills < 2; ++kills) {  // a run that goes on can be killed too
            if (!run_and_kill(to(prefix), static_cast<int>(random() % static_cast<unsigned>(latest_ms)))) {
                latest_ms = std::max(latest_ms * 3 / 4, 20);  // the machine has become faster
                break;
            }
            ++killed;
            // A file that has its final name is finished.
            for (const auto& [name, bytes] : outputs(prefix)) EXPECT_TRUE(bytes == whole.at(name)) << n << name;
        }
        const Outcome again = teratron(to(prefix));
        ASSERT_EQ(again.exit_code, 0) << again.err;
        resumed += again.err.find("Going on after") != std::string::npos;
        EXPECT_TRUE(outputs(prefix) == whole) << n;
        remove(prefix);
    }
    EXPECT_GE(killed, 10);
    EXPECT_GE(resumed, 1) << "of " << killed << " killed";
    remove("whole");
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
        EXPECT_EQ(entry.path().filename(), "in.jsonl");
}

INSTANTIATE_TEST_SUITE_P(
    SlowModes, SlowPreprocessKill,
    testing::Values(Mode{"documents", numbers, {"--tokenizer-type", "NullTokenizer", "--vocab-size", "60001"}},
                    Mode{"sentences",
                         prose,
                         {"--split-sentences", "--tokenizer-type", "GPTSentencePieceTokenizer", "--tokenizer-model",
                          golden + "sentencepiece/bpe.model"}},
                    Mode{"sentences_kept",
                         prose,
                         {"--split-sentences", "--keep-newlines", "--vocab-file", golden + "bpe/vocab.json",
                          "--merge-file", golden + "bpe/merges.txt"}},
                    Mode{"partitions",
                         numbers,
                         {"--partitions", "3", "--tokenizer-type", "NullTokenizer", "--vocab-size", "60001"}}),
    [](const auto& mode_case) { return std::string(mode_case.param.name); });

TEST(PreprocessInput, ComesThroughAPipeAndFromLists) {
    const TemporaryFolder folder;
    RunOptions here;
    here.folder = folder.path();
    std::filesystem::create_directory(folder / "set");
    write_file(folder / "set/a.csv", "text\n1 2\n3\n");
    write_file(folder / "list.txt", "a.csv\n");
    const Words flags = {"--tokenizer-type", "NullTokenizer", "--vocab-size", "10", "--workers", "1"};
    const auto run = [&](Words words) {
        words.insert(words.end(), flags.begin(), flags.end());
        return teratron(words, here);
    };
    const Outcome listed = run({"preprocess", "--paths-file", "list.txt", "--dataset", "set", "--output-prefix", "x"});
    EXPECT_EQ(listed.exit_code, 0) << listed.err;
    EXPECT_NE(listed.out.find("2 documents, 3 tokens"), std::string::npos) << listed.out;
    EXPECT_EQ(run({"preprocess", "--output-prefix", "y"}).exit_code, 2);
    EXPECT_EQ(run({"preprocess", "--input", "none*", "--output-prefix", "y"}).exit_code, 2);
    write_file(folder / "bad.jsonl", "{\"text\": \"1\"}\n?\n{\"text\": \"2\"}\n");
    const Outcome skipped = run({"preprocess", "--input", "bad.jsonl", "--output-prefix", "z", "--skip-invalid"});
    EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
    EXPECT_NE(skipped.err.find("bad.jsonl: line 2: "), std::string::npos) << skipped.err;
    EXPECT_NE(skipped.out.find("1 invalid records left out"), std::string::npos) << skipped.out;
}

}  // namespace
}  // namespace tera::test
