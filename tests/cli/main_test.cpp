// First contact: version, help, commands that are not there, output that cannot be written.
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "cli/process.h"
#include "support/words.h"

namespace tera::test {
namespace {

bool begins_with(const std::string& text, const std::string& start) { return text.rfind(start, 0) == 0; }
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Main, VersionNamesRevisionCompilerAndFlags) {
    const Outcome run = teratron({"--version"});
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_TRUE(begins_with(run.out, "teratron 0.1.0 (")) << run.out;
    EXPECT_TRUE(contains(run.out, "flags: ")) << run.out;
    EXPECT_EQ(run.err, "");
}

TEST(Main, HelpListsEveryCommand) {
    for (const std::vector<std::string>& words : {std::vector<std::string>{"--help"}, {"-h"}, {"help"}}) {
        const Outcome run = teratron(words);
        EXPECT_EQ(run.exit_code, 0);
        for (const char* name : {"pretrain", "preprocess", "tokenizer", "example-corpus", "data", "generate", "export",
                                 "import", "verify", "plan", "bench", "launch", "board", "doctor"}) {
            EXPECT_TRUE(contains(run.out, std::string("\n  ") + name + " ")) << name;
        }
    }
}

TEST(Main, NoCommandPrintsHelpAndFails) {
    const Outcome run = teratron({});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_TRUE(contains(run.out, "usage: teratron"));
}

TEST(Main, UnknownCommandSuggestsTheNearest) {
    const Outcome run = teratron({"pretrian", "gpt"});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(line_count(run.err), 1u);
    EXPECT_TRUE(contains(run.err, "did you mean 'pretrain'?")) << run.err;
    const Outcome far = teratron({"xyzzy"});
    EXPECT_EQ(far.exit_code, 2);
    EXPECT_FALSE(contains(far.err, "did you mean")) << far.err;
}

TEST(Main, CommandsNotBuiltAreRefusedByName) {
    for (const char* name : {"export", "import"}) {
        const Outcome run = teratron({name, "--whatever"});
        EXPECT_EQ(run.exit_code, 2) << name;
        EXPECT_EQ(line_count(run.err), 1u) << run.err;
        EXPECT_TRUE(begins_with(run.err, std::string("teratron: '") + name + "' is not built yet: ")) << run.err;
    }
}

TEST(Main, AFullDiskBehindStandardOutputIsAnError) {
    const Outcome run = teratron({"--help"}, {.folder = {}, .stdout_path = "/dev/full"});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_TRUE(contains(run.err, "cannot write standard output: No space left on device")) << run.err;
}

TEST(Main, ShortCommandsEndQuietlyWithTheirReader) {
    RunOptions alone;
    alone.nobody_reads = true;
    const Outcome run = teratron({"doctor"}, alone);
    EXPECT_EQ(run.signal, SIGPIPE);
    EXPECT_EQ(run.err, "");
}

TEST(Main, TrainingOutlivesItsReader) {
    TemporaryFolder folder;
    RunOptions alone;
    alone.nobody_reads = true;
    const Outcome run = teratron(
        words("pretrain gpt --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 8 "
              "--max-position-embeddings 8 --micro-batch-size 2 --global-batch-size 2 --train-iters 3 --lr 0.001 "
              "--mock-data --tokenizer-type NullTokenizer --vocab-size 100 --eval-iters 0 --save-interval 3 --save " +
              folder.path().string()),
        alone);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(read_file(folder / "latest_checkpointed_iteration.txt"), "3");
}

/// A descriptor that is closed must not become a file that the log is written into.
TEST(Main, ClosedDescriptorsTakeNothing) {
    const TemporaryFolder folder;
    const std::string flags =
        " pretrain gpt --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 8 "
        "--max-position-embeddings 8 --micro-batch-size 2 --global-batch-size 4 --train-iters 3 --lr 0.001 --mock-data "
        "--tokenizer-type NullTokenizer --vocab-size 100 --eval-iters 0 --log-interval 1 --device cpu --metrics-file ";
    const std::string binary = TERA_BINARY, alone = folder / "alone", launched = folder / "launched";
    EXPECT_EQ(std::system((binary + flags + alone + " >&-").c_str()), 0);
    EXPECT_EQ(
        std::system((binary + " launch local --nproc-per-node 2 --" + flags + launched + " <&- >&- 2>&-").c_str()), 0);
    for (const std::string& path : {alone, launched}) {
        std::istringstream lines(read_file(path));
        int count = 0;
        for (std::string line; std::getline(lines, line); ++count) EXPECT_EQ(line.substr(0, 1), "{") << line;
        EXPECT_GE(count, 3) << path;
    }
}

TEST(Main, ErrorsStayOnOneLine) {
    const Outcome run = teratron({"two\nlines"});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(line_count(run.err), 1u) << run.err;
}

TEST(Doctor, TellsAboutThisMachine) {
    const Outcome run = teratron({"doctor"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    for (const char* word : {"CPU", "memory", "disk", "BLAS", "GPU", "Apache Arrow", "built for"}) {
        EXPECT_TRUE(contains(run.out, word)) << word;
    }
}

TEST(Doctor, JsonHoldsTheSameAsData) {
    const Outcome run = teratron({"doctor", "--json"});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto report = nlohmann::json::parse(run.out);
    EXPECT_EQ(report["build"]["version"], "0.1.0");
    EXPECT_GE(report["cpu"]["usable_processors"].get<int>(), 1);
    EXPECT_GT(report["memory"]["total_bytes"].get<int64_t>(), int64_t{1} << 27);
    EXPECT_TRUE(report["gpu"]["devices"].is_array());
    EXPECT_TRUE(report["blas"].contains("library"));
    // The guard let us start, so nothing the binary was built for can be missing here.
    const auto& present = report["cpu"]["features"];
    for (const auto& name : report["cpu"]["built_for"]) {
        EXPECT_NE(std::find(present.begin(), present.end(), name), present.end()) << name;
    }
}

TEST(Doctor, ALibraryThatCrashesIsReported) {
    const TemporaryFolder folder;
    std::filesystem::copy_file(TERA_CRASHING_LIBRARY, folder / "libnccl.so.2");
    const Outcome run =
        teratron({"doctor"}, {.folder = {}, .environment = {{"LD_LIBRARY_PATH", folder.path().string()}}});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(contains(run.out, "NCCL         it is there, but loading it ends the process")) << run.out;
}

TEST(Doctor, RefusesArgumentsItDoesNotKnow) {
    const Outcome run = teratron({"doctor", "--yaml"});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_TRUE(contains(run.err, "'--yaml'")) << run.err;
}

}  // namespace
}  // namespace tera::test
