// kill -9 at random instants, then the same command again: the bytes of an undisturbed run, and never a file that looks
// finished and is not.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
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

TEST(SlowPreprocessKill, AnyInstantAndStartedAgainGivesTheSameBytes) {
    const TemporaryFolder folder;
    std::mt19937 random(7);
    std::string text;
    while (text.size() < (std::size_t{48} << 20)) {
        text += "{\"text\": \"";
        for (unsigned n = random() % 200; n > 0; --n) text += std::to_string(random() % 60000) + " ";
        text += "1\"}\n";
    }
    write_file(folder / "in.jsonl", text);
    const Words flags = {"preprocess",        "--input", folder / "in.jsonl", "--tokenizer-type", "NullTokenizer",
                         "--vocab-size",      "60001",   "--append-eod",      "--workers",        "2",
                         "--resume-interval", "0.02",    "--output-prefix"};
    const auto to = [&](const std::string& prefix) {
        Words all = flags;
        all.push_back(folder / prefix);
        return all;
    };
    const auto began = std::chrono::steady_clock::now();
    ASSERT_EQ(teratron(to("whole")).exit_code, 0);
    const int whole_ms = static_cast<int>(
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began).count());
    const std::string bin = read_file(folder / "whole_text_document.bin"),
                      idx = read_file(folder / "whole_text_document.idx");
    int killed = 0, resumed = 0;
    for (int n = 0; n < 10; ++n) {
        const std::string prefix = "out" + std::to_string(n);
        for (int kills = 0; kills < 2; ++kills) {  // a run that goes on can be killed too
            const int at = whole_ms / 5 + static_cast<int>(random() % static_cast<unsigned>(whole_ms));
            if (!run_and_kill(to(prefix), at)) break;
            ++killed;
            if (std::filesystem::exists(folder / (prefix + "_text_document.idx"))) {  // killed on its way out
                EXPECT_TRUE(read_file(folder / (prefix + "_text_document.idx")) == idx) << n;
                EXPECT_TRUE(read_file(folder / (prefix + "_text_document.bin")) == bin) << n;
            }
        }
        const Outcome again = teratron(to(prefix));
        ASSERT_EQ(again.exit_code, 0) << again.err;
        resumed += again.err.find("Going on after") != std::string::npos;
        EXPECT_TRUE(read_file(folder / (prefix + "_text_document.bin")) == bin) << n;
        EXPECT_TRUE(read_file(folder / (prefix + "_text_document.idx")) == idx) << n;
        for (const char* suffix : {".bin", ".idx"})
            std::filesystem::remove(folder / (prefix + "_text_document" + suffix));
    }
    EXPECT_GE(killed, 5);
    EXPECT_GE(resumed, 1) << "of " << killed << " killed";  // a slow disk may not have stored anything before a kill
    std::size_t files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
    EXPECT_EQ(files, 3u);  // the input and the first output
}

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
