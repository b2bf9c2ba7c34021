// What a user can get wrong, through the real binary: one line on standard error that names the thing, exit code 2, and
// whatever was there before is untouched.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>
#include <thread>

#include "cli/process.h"
#include "core/error.h"
#include "data/indexed_dataset_writer.h"
#include "support/words.h"

namespace tera::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

Words operator+(Words a, const Words& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

/// 24 documents of 40 tokens; ids below `ids`.
void write_dataset(const fs::path& prefix, std::int32_t ids) {
    IndexedDatasetWriter writer(prefix.string(), TokenType::u16);
    for (std::int32_t d = 0; d < 24; ++d) {
        std::vector<std::int32_t> tokens;
        for (std::int32_t i = 0; i < 40; ++i) tokens.push_back((7 * d + 3 * i) % ids);
        writer.add_sequence(tokens);
        writer.end_document();
    }
    writer.finish();
}

void append_to(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::app) << text; }

class BadInput : public testing::Test {
  protected:
    BadInput() { write_dataset(folder_ / "data", 100); }

    std::string at(const std::string& name) const { return (folder_ / name).string(); }
    Words pretrain() const {
        return words(
            "pretrain gpt --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 8 "
            "--max-position-embeddings 8 --micro-batch-size 2 --global-batch-size 4 --train-iters 4 --lr 0.001 "
            "--tokenizer-type NullTokenizer --vocab-size 100 --log-interval 1 --eval-iters 0");
    }
    Words with_data() const { return pretrain() + Words{"--data-path", at("data"), "--split", "100,0,0"}; }
    Words saving() const { return with_data() + Words{"--save", at("save"), "--save-interval", "2"}; }

    /// The promise of this file.
    static void expect_refused(const Words& command, const std::string& part, const RunOptions& options = {}) {
        const Outcome run = teratron(command, options);
        EXPECT_FALSE(run.timed_out);
        EXPECT_EQ(run.exit_code, 2) << "signal " << run.signal << "\n" << run.err;
        EXPECT_EQ(line_count(run.err), 1u) << run.err;
        EXPECT_EQ(run.err.rfind("teratron: ", 0), 0u) << run.err;
        EXPECT_NE(run.err.find(part), std::string::npos) << "expected \"" << part << "\" in: " << run.err;
    }

    TemporaryFolder folder_;
};

TEST_F(BadInput, TheSameRunWithoutMistakeSucceeds) {
    const Outcome run = teratron(saving());
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(read_file(folder_ / "save/latest_checkpointed_iteration.txt"), "4");
}

TEST_F(BadInput, IndexFileTruncated) {
    for (const std::size_t size : {0u, 5u, 33u, 100u}) {
        write_dataset(folder_ / "data", 100);
        fs::resize_file(at("data.idx"), size);
        expect_refused(with_data(), "data.idx");
    }
}

TEST_F(BadInput, IndexFileOfAnotherKind) {
    write_file(folder_ / "data.idx", "\x89PNG\r\n\x1a\n" + std::string(400, 'x'));
    expect_refused(with_data(), "data.idx");
}

TEST_F(BadInput, TokenFileShorterThanItsIndex) {
    fs::resize_file(at("data.bin"), fs::file_size(at("data.bin")) - 2);
    expect_refused(with_data(), "data.bin");
}

TEST_F(BadInput, TokenBeyondTheVocabulary) {
    write_dataset(folder_ / "data", 3000);
    expect_refused(with_data(), "vocabulary");
}

TEST_F(BadInput, MissingFiles) {
    expect_refused(pretrain() + Words{"--data-path", at("absent"), "--split", "100,0,0"}, "absent");
    fs::remove(at("data.bin"));
    expect_refused(with_data(), "data.bin");
    const Words gpt2 = {"--tokenizer-type", "GPT2BPETokenizer", "--vocab-file",
                        at("vocab.json"),   "--merge-file",     at("merges.txt")};
    expect_refused(with_data() + gpt2, "vocab.json");
    expect_refused(with_data() + Words{"--config", at("run.yaml")}, "run.yaml");
    expect_refused({"pretrain", "gpt", "@" + at("arguments")}, "arguments");
    expect_refused({"generate", "--load", at("nothing"), "--prompt", "x"}, "nothing");
    expect_refused({"preprocess", "--input", at("corpus.jsonl"), "--output-prefix", at("out"), "--tokenizer-type",
                    "NullTokenizer", "--vocab-size", "10"},
                   "corpus.jsonl");
}

TEST_F(BadInput, BlendWeightThatIsNoNumber) {
    for (const char* weight : {"0,5", "abc", "-1", "nan"}) {
        expect_refused(pretrain() + Words{"--data-path", weight, at("data"), "0.5", at("data"), "--split", "100,0,0"},
                       weight);
    }
}

TEST_F(BadInput, EmptySplitWithEvaluationOn) {
    expect_refused(with_data() + Words{"--eval-iters", "2", "--eval-interval", "2"}, "split");
}

TEST_F(BadInput, SaveFolderThatCannotBeWritten) {
    expect_refused(with_data() + Words{"--save", "/proc/teratron", "--save-interval", "2"}, "/proc/teratron");
    write_file(folder_ / "a_file", "");
    expect_refused(with_data() + Words{"--save", at("a_file"), "--save-interval", "2"}, "a_file");
}

/// Every file of the checkpoints in a folder with its content; the metrics file beside them goes on growing.
std::map<std::string, std::string> checkpoint_files(const fs::path& folder) {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        const bool wanted = entry.is_regular_file() && entry.path().filename() != "metrics.jsonl";
        if (wanted) all[fs::relative(entry.path(), folder).string()] = read_file(entry.path());
    }
    return all;
}

/// A file system of its own, small enough to fill; unmounted at the end.
class SmallFileSystem {
  public:
    SmallFileSystem(const std::string& folder, const char* size) : folder_(folder) {
        fs::create_directory(folder);
        mounted_ = mount("tmpfs", folder.c_str(), "tmpfs", 0, size) == 0;
    }
    ~SmallFileSystem() {
        if (mounted_) umount(folder_.c_str());
    }
    SmallFileSystem(const SmallFileSystem&) = delete;
    SmallFileSystem& operator=(const SmallFileSystem&) = delete;
    bool mounted() const { return mounted_; }

  private:
    std::string folder_;
    bool mounted_;
};

TEST_F(BadInput, FullDiskWhileSavingLeavesThePreviousCheckpoint) {
    ASSERT_EQ(teratron(saving()).exit_code, 0);
    const auto before = checkpoint_files(folder_ / "save");
    const Words longer = saving() + Words{"--load", at("save"), "--train-iters", "8", "--override-opt_param-scheduler"};
    // A limit on the size of one file fails writes as a full disk does; the model file is larger than this.
    expect_refused(longer, at("save"), {.folder = {}, .environment = {}, .stdout_path = {}, .file_size_limit = 4096});
    EXPECT_TRUE(checkpoint_files(folder_ / "save") == before) << "a failed save changed a checkpoint or left files";
    const Outcome again = teratron(longer);
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(read_file(folder_ / "save/latest_checkpointed_iteration.txt"), "8");
}

TEST_F(BadInput, FullFileSystemWhileSaving) {
    const std::string small = at("small");
    const SmallFileSystem file_system(small, "size=256k");
    if (!file_system.mounted()) GTEST_SKIP() << "may not mount a file system here";
    expect_refused(with_data() + Words{"--save", small, "--save-interval", "1"}, small);
    // The checkpoints that did fit are whole: the tracker names one that loads.
    const std::string tracker = read_file(fs::path(small) / "latest_checkpointed_iteration.txt");
    EXPECT_FALSE(tracker.empty());
    const Outcome load = teratron(with_data() + Words{"--load", small, "--exit-interval", "1"});
    EXPECT_EQ(load.exit_code, 0) << load.err;
}

/// So many lines of a hundred tokens.
void write_lines(const fs::path& path, int lines) {
    std::string line = "{\"text\": \"7";
    for (int i = 1; i < 100; ++i) line += " " + std::to_string(i);
    line += "\"}\n";
    std::string text;
    for (int i = 0; i < lines; ++i) text += line;
    write_file(path, text);
}

/// Names and contents of all files in a folder.
std::map<std::string, std::string> files_in(const fs::path& folder) {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(folder)) all[entry.path().filename()] = read_file(entry.path());
    return all;
}

Words preprocess(const std::string& input, const std::string& prefix) {
    return {
        "preprocess",   "--input", input,          "--output-prefix", prefix,    "--tokenizer-type", "NullTokenizer",
        "--vocab-size", "60001",   "--append-eod", "--log-interval",  "1000000", "--workers",        "2"};
}

// Output is written a megabyte at a time: 9000 lines give 1.8 MB, so that some of it is on disk when the rest fails;
// what 10 lines give is written at the end.
TEST_F(BadInput, FullDiskWhilePreprocessingLeavesNothing) {
    fs::create_directory(folder_ / "out");
    for (const int lines : {10, 9000}) {
        write_lines(folder_ / "in.jsonl", lines);
        const long limit = lines == 10 ? 1000 : 1500000;
        expect_refused(preprocess(at("in.jsonl"), at("out/new")), at("out/new_text_document.bin"),
                       {.folder = {}, .environment = {}, .stdout_path = {}, .file_size_limit = limit});
        EXPECT_TRUE(files_in(folder_ / "out").empty()) << lines;
    }
    const Outcome again = teratron(preprocess(at("in.jsonl"), at("out/new")));
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(fs::file_size(folder_ / "out/new_text_document.bin"), 9000u * 101 * 2);
}

TEST_F(BadInput, FullFileSystemWhilePreprocessingLeavesAnEarlierDataset) {
    const std::string small = at("small");
    const SmallFileSystem file_system(small, "size=1400k");
    if (!file_system.mounted()) GTEST_SKIP() << "may not mount a file system here";
    write_lines(folder_ / "few.jsonl", 10);
    write_lines(folder_ / "many.jsonl", 9000);
    ASSERT_EQ(teratron(preprocess(at("few.jsonl"), small + "/out")).exit_code, 0);
    const auto before = files_in(small);
    EXPECT_EQ(before.size(), 2u);
    expect_refused(preprocess(at("many.jsonl"), small + "/out"), small + "/out_text_document.bin");
    EXPECT_TRUE(files_in(small) == before) << "a failed run changed a finished dataset or left files";
}

TEST_F(BadInput, UnknownFlagSuggestsTheNearest) {
    expect_refused(with_data() + Words{"--num-layrs", "2"}, "--num-layers");
    expect_refused(with_data() + Words{"--clip-gradd", "1"}, "--clip-grad");
}

TEST_F(BadInput, ValuesThatAreNoNumbers) {
    expect_refused(with_data() + Words{"--lr", "fast"}, "--lr");
    expect_refused(with_data() + Words{"--train-iters", "1.5"}, "--train-iters");
    expect_refused(with_data() + Words{"--lr-decay-style", "square"}, "--lr-decay-style");
    expect_refused(with_data() + Words{"--seed"}, "--seed");
}

TEST_F(BadInput, NumbersOutsideTheirRange) {
    expect_refused(with_data() + Words{"--threads", "40000"}, "--threads 40000");
    expect_refused(with_data() + Words{"--num-workers", "100000"}, "--num-workers 100000");
    expect_refused(with_data() + Words{"--num-workers", "-1"}, "--num-workers -1");
    expect_refused(with_data() + Words{"--num-dataset-builder-threads", "1000000"}, "--num-dataset-builder-threads");
    expect_refused(with_data() + Words{"--lr", "nan"}, "--lr nan: must be a finite number, not below 0");
    expect_refused(with_data() + Words{"--global-batch-size", "0"}, "--global-batch-size 0");
}

TEST_F(BadInput, FoldersInPlaceOfFiles) {
    expect_refused(with_data() + Words{"--config", at("")}, "is a folder");
    expect_refused({"pretrain", "gpt", "@" + at("")}, "is a folder");
}

TEST_F(BadInput, BlanksInAValueAreNoMistake) {
    const Outcome run = teratron(pretrain() + Words{"--data-path", at("data"), "--split=100, 0, 0",
                                                    "--save=" + at("a dir"), "--save-interval=4"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(fs::exists(folder_ / "a dir/latest_checkpointed_iteration.txt"));
    const Outcome text = teratron({"generate", "--load=" + at("a dir"), "--prompt=1 2 3", "--max-new-tokens=1"});
    EXPECT_EQ(text.exit_code, 0) << text.err;
}

TEST_F(BadInput, FlagsThatContradictEachOther) {
    expect_refused(with_data() + Words{"--train-samples", "100"}, "--train-samples");
    expect_refused(with_data() + Words{"--num-attention-heads", "3"}, "num-attention-heads");
    expect_refused(with_data() + Words{"--global-batch-size", "3"}, "batch");
    expect_refused(with_data() + Words{"--fp16", "--bf16"}, "bf16");
    expect_refused(with_data() + Words{"--group-query-attention", "--num-query-groups", "3"}, "num-query-groups");
    expect_refused(with_data() + Words{"--max-position-embeddings", "4"}, "max-position-embeddings");
    expect_refused(with_data() + Words{"--min-lr", "1.0"}, "min-lr");
    expect_refused(with_data() + Words{"--mock-data"}, "--mock-data");
}

TEST_F(BadInput, CheckpointThatIsDamaged) {
    ASSERT_EQ(teratron(saving()).exit_code, 0);
    const Words resume = saving() + Words{"--load", at("save"), "--train-iters", "8", "--override-opt_param-scheduler"};
    const fs::path iteration = folder_ / "save/iter_0000004";
    const std::string model = (iteration / "model.safetensors").string();
    const std::string whole = read_file(model);

    fs::resize_file(model, whole.size() - 8);
    expect_refused(resume, "model.safetensors");
    write_file(model, std::string(64, '\xff'));
    expect_refused(resume, "model.safetensors");
    std::string flipped = whole;
    flipped[whole.size() - 5] ^= 0x10;
    write_file(model, flipped);
    expect_refused(resume, "model.safetensors");
    write_file(model, whole);

    const std::string state = (iteration / "training_state/state.json").string(), good_state = read_file(state);
    write_file(state, good_state.substr(0, good_state.size() / 2));
    expect_refused(resume, "state.json");
    write_file(state, good_state);

    write_file(folder_ / "save/latest_checkpointed_iteration.txt", "twelve");
    expect_refused(resume, "latest_checkpointed_iteration.txt");
    write_file(folder_ / "save/latest_checkpointed_iteration.txt", "12");
    expect_refused(resume, "iter_0000012");
    write_file(folder_ / "save/latest_checkpointed_iteration.txt", "4");

    expect_refused(resume + Words{"--hidden-size", "32"}, "hidden");
    const Outcome run = teratron(resume);
    EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST_F(BadInput, TokenizerFilesThatAreDamaged) {
    const Words flags = {"preprocess",     "--input",          at("corpus.jsonl"), "--output-prefix",
                         at("out"),        "--tokenizer-type", "GPT2BPETokenizer", "--vocab-file",
                         at("vocab.json"), "--merge-file",     at("merges.txt")};
    write_file(folder_ / "corpus.jsonl", "{\"text\": \"abc\"}\n");
    write_file(folder_ / "merges.txt", "#version: 0.2\na b\n");
    write_file(folder_ / "vocab.json", "{\"a\": 0, \"b\": 1");
    expect_refused(flags, "vocab.json");
    write_file(folder_ / "vocab.json", "{\"a\": 0, \"b\": 0}");
    expect_refused(flags, "vocab.json");
    write_file(folder_ / "vocab.json", "{\"a\": 0, \"b\": 1, \"ab\": 2, \"<|endoftext|>\": 3}");
    write_file(folder_ / "merges.txt", "#version: 0.2\na b c\n");
    expect_refused(flags, "merges.txt");
    write_file(folder_ / "merges.txt", "#version: 0.2\na b\nb a\nab a\n");
    expect_refused(flags, "2 of 3 merges in " + at("merges.txt"));
    write_file(folder_ / "vocab.json", "{\"a\": 0, \"b\": 1, \"ab\": 2, \"ba\": 3, \"<|endoftext|>\": 4}");
    const Outcome warned = teratron(flags);
    EXPECT_EQ(warned.exit_code, 0) << warned.err;
    EXPECT_NE(warned.err.find("WARNING: 1 of 3 merges"), std::string::npos) << warned.err;
}

TEST_F(BadInput, TokenFileCutShortWhileItIsRead) {
    const std::jthread cutter([&](const std::stop_token& stop) {
        while (!stop.stop_requested() && (!fs::exists(folder_ / "metrics") || fs::file_size(folder_ / "metrics") == 0))
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        fs::resize_file(folder_ / "data.bin", 0);
    });
    expect_refused(with_data() + Words{"--train-iters", "200000", "--metrics-file", at("metrics"), "--device", "cpu"},
                   at("data.bin") + " became shorter");
}

TEST_F(BadInput, CorpusLinesThatAreNoJson) {
    const Words flags = {"preprocess",      "--input",      at("corpus.jsonl"),
                         "--output-prefix", at("out"),      "--tokenizer-type",
                         "NullTokenizer",   "--vocab-size", "100"};
    write_file(folder_ / "corpus.jsonl", "{\"text\": \"1 2 3\"}\n{\"text\": \"4 5\"\n");
    expect_refused(flags, "corpus.jsonl");
    EXPECT_FALSE(fs::exists(at("out_text_document.idx")));
    write_file(folder_ / "corpus.jsonl", "{\"body\": \"1 2 3\"}\n");
    expect_refused(flags, "text");
    write_file(folder_ / "corpus.jsonl", "{\"text\": \"1 2 3\"}\n");
    expect_refused(flags + Words{"--output-prefix", "/proc/teratron/out"}, "/proc/teratron");
    append_to(folder_ / "corpus.jsonl", "{\"text\": \"\xff\"}\n");
    expect_refused(flags, "corpus.jsonl");
}

TEST_F(BadInput, PromptsAndSamplingThatMakeNoSense) {
    ASSERT_EQ(teratron(saving()).exit_code, 0);
    const Words generate = {"generate", "--load", at("save"), "--prompt", "1 2 3"};
    const Outcome run = teratron(generate + Words{"--max-new-tokens", "2"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    expect_refused(generate + Words{"--temperature", "-1"}, "--temperature");
    expect_refused(generate + Words{"--top-p", "1.5"}, "--top-p");
    expect_refused(generate + Words{"--top-k", "-3"}, "--top-k");
    expect_refused(generate + Words{"--max-new-tokens", "0"}, "--max-new-tokens");
    expect_refused({"generate", "--load", at("save"), "--prompt", "one"}, "must be integers");
}

TEST(Scripts, WrongWordsEndWithTwo) {
    for (const char* name : {"setup", "build", "quickstart", "test", "test_gpu"}) {
        const std::string command = cat(TERA_SOURCE_DIR "/scripts/", name, ".sh --nonsense >/dev/null 2>&1");
        const int status = std::system(command.c_str());
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << command << ": " << status;
    }
}

}  // namespace
}  // namespace tera::test
