// preprocess with every kind of input, with bad records left out, and going on after a stop.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include <thread>

#include "data/input_files.h"
#include "data/preprocess.h"
#include "data/tools_fixture.h"
#include "io/parquet_rows.h"
#include "support/expect_usage_error.h"
#include "support/temp_folder.h"
#include "token/null_tokenizer.h"

namespace tera {
namespace {

std::string gzip(const std::string& text, std::size_t member) {
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += member) {
        const std::string part = text.substr(at, member);
        z_stream stream{};
        deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
        std::string packed(deflateBound(&stream, part.size()) + 64, '\0');
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));
        stream.avail_in = static_cast<unsigned>(part.size());
        stream.next_out = reinterpret_cast<Bytef*>(packed.data());
        stream.avail_out = static_cast<unsigned>(packed.size());
        deflate(&stream, Z_FINISH);
        out.append(packed, 0, stream.total_out);
        deflateEnd(&stream);
    }
    return out;
}

std::string zstd(const std::string& text) {
    std::string out(ZSTD_compressBound(text.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 1));
    return out;
}

std::string json_lines(int first, int count) {
    std::string text;
    for (int i = first; i < first + count; ++i) text += "{\"text\": \"" + std::to_string(i) + " 7\"}\n";
    return text;
}

std::string csv(int first, int count) {
    std::string text = "n,text\n";
    for (int i = first; i < first + count; ++i) text += "x,\"" + std::to_string(i) + " 7\"\n";
    return text;
}

class Inputs : public ::testing::Test {
  protected:
    Inputs() { std::filesystem::create_directories(folder_ / "in/deep"); }
    PreprocessOptions options(std::vector<std::string> words) {
        PreprocessOptions chosen;
        for (const std::string& word : words) chosen.inputs.push_back(folder_ / word);
        chosen.output_prefix = folder_ / "out";
        chosen.append_eod = true;
        chosen.block_bytes = 4096;
        chosen.note = [this](const std::string& text) { notes_.push_back(text); };
        return chosen;
    }
    /// The first token of each document.
    std::vector<std::int32_t> firsts() {
        const IndexedDataset data(folder_ / "out_text_document");
        std::vector<std::int32_t> out(static_cast<std::size_t>(data.size()));
        for (std::int64_t i = 0; i < data.size(); ++i) data.get(i, 0, 1, &out[static_cast<std::size_t>(i)]);
        return out;
    }
    static std::vector<std::int32_t> counting(int count) {
        std::vector<std::int32_t> out(static_cast<std::size_t>(count));
        for (int i = 0; i < count; ++i) out[static_cast<std::size_t>(i)] = i;
        return out;
    }
    std::string output() {
        return slurp(folder_ / "out_text_document.bin") + "|" + slurp(folder_ / "out_text_document.idx");
    }
    TempFolder folder_;
    NullTokenizer tokenizer_{60000};
    std::vector<std::string> notes_;
};

TEST_F(Inputs, EveryKindGivesTheSameBytes) {
    spill(folder_ / "in/a.jsonl", json_lines(0, 3000));
    preprocess(tokenizer_, options({"in/a.jsonl"}));
    const std::string expected = output();
    spill(folder_ / "in/a.gz", gzip(json_lines(0, 3000), 10000));
    spill(folder_ / "in/no-suffix", zstd(json_lines(0, 3000)));
    spill(folder_ / "in/a.csv", csv(0, 3000));
    spill(folder_ / "in/a.csv.zst", zstd(csv(0, 3000)));
    for (const char* name : {"in/a.gz", "in/no-suffix", "in/a.csv", "in/a.csv.zst"}) {
        for (const int workers : {1, 3}) {
            auto chosen = options({name});
            chosen.workers = workers;
            const PreprocessProgress total = preprocess(tokenizer_, chosen);
            EXPECT_TRUE(output() == expected) << name;
            EXPECT_EQ(total.stored_bytes, total.total_bytes) << name;
        }
    }
    EXPECT_EQ(notes_, std::vector<std::string>{});
}

TEST_F(Inputs, FilesPatternsAndFolders) {
    spill(folder_ / "in/b.jsonl", json_lines(2, 2));
    spill(folder_ / "in/a.jsonl.gz", gzip(json_lines(0, 2), 1000));
    spill(folder_ / "in/deep/c.tsv", "text\tn\n4 7\t1\n5 7\t2\n");
    spill(folder_ / "in/readme.md", "no data");
    preprocess(tokenizer_, options({"in"}));
    EXPECT_EQ(firsts(), counting(6));
    ASSERT_EQ(notes_.size(), 1u);
    EXPECT_NE(notes_[0].find("readme.md"), std::string::npos) << notes_[0];
    preprocess(tokenizer_, options({"in/*.jsonl*", "in/deep/c.tsv"}));
    EXPECT_EQ(firsts(), counting(6));
    preprocess(tokenizer_, options({"in/[a]*", "in/b.jsonl", "in/d??p"}));
    EXPECT_EQ(firsts(), counting(6));
    spill(folder_ / "in/x[1].jsonl", json_lines(0, 1));  // a name wins over the pattern it looks like
    preprocess(tokenizer_, options({"in/x[1].jsonl"}));
    EXPECT_EQ(firsts(), counting(1));
    expect_usage_error([&] { preprocess(tokenizer_, options({"in/*.none"})); }, {"*.none", "no file matches"});
    spill(folder_ / "last-line-open.jsonl", "{\"text\": \"0\"}\n{\"text\": \"1\"}");
    preprocess(tokenizer_, options({"last-line-open.jsonl", "in/b.jsonl"}));
    EXPECT_EQ(firsts(), counting(4));
}

// A folder that cannot be entered, for whoever runs this: a link to itself.
TEST_F(Inputs, PatternsPassNoFolderOver) {
    spill(folder_ / "in/deep/a.jsonl", json_lines(0, 2));
    spill(folder_ / "in/deep/.hidden.jsonl", json_lines(9, 1));
    spill(folder_ / "in/file", "where the pattern has a folder");
    for (const char* pattern : {"in/*/*.jsonl", "in/*/a.jsonl", "i?/d*//[a]*", "in/*/\\a.json?"}) {
        preprocess(tokenizer_, options({pattern}));
        EXPECT_EQ(firsts(), counting(2)) << pattern;
    }
    std::filesystem::create_symlink("nowhere", folder_ / "in/dangling");  // holds nothing, and is not hidden trouble
    preprocess(tokenizer_, options({"in/*/*.jsonl"}));
    std::filesystem::create_symlink("loop", folder_ / "in/loop");
    for (const char* pattern : {"in/*/*.jsonl", "in/*/a.jsonl"})
        expect_usage_error([&] { preprocess(tokenizer_, options({pattern})); }, {"cannot read", "in/loop"});
}

TEST_F(Inputs, ParquetThatDoesNotBeginAsSuch) {
    spill(folder_ / "in/a.parquet", "");
    expect_usage_error([&] { preprocess(tokenizer_, options({"in"})); }, {"in/a.parquet", "is it cut?"});
    spill(folder_ / "in/a.parquet", "PA");
    expect_usage_error([&] { preprocess(tokenizer_, options({"in/a.parquet"})); }, {"in/a.parquet", "is it cut?"});
    spill(folder_ / "in/b.parquet.gz", gzip("PAR1", 100));
    expect_usage_error([&] { preprocess(tokenizer_, options({"in/b.*"})); },
                       {"in/b.parquet.gz", "packed Parquet is not read; unpack it first"});
    auto chosen = options({"in/a.parquet"});
    chosen.input_format = "jsonl";
    spill(folder_ / "in/a.parquet", json_lines(0, 2));
    preprocess(tokenizer_, chosen);
    EXPECT_EQ(firsts(), counting(2));
}

TEST_F(Inputs, NamedPipesAreReadOnce) {
    const std::string path = folder_ / "in/pipe.csv";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    std::thread writer([&] { spill(path, csv(0, 1000)); });
    preprocess(tokenizer_, options({"in/pipe.csv"}));
    writer.join();
    EXPECT_EQ(firsts(), counting(1000));
}

TEST_F(Inputs, ParquetByColumn) {
    if (!parquet_missing().empty()) GTEST_SKIP() << parquet_missing();
    class Lengths : public Tokenizer {  // one token: how many bytes
      public:
        std::unique_ptr<Encoder> make_encoder() const override {
            struct LengthEncoder : Encoder {
                void encode(std::string_view text, std::vector<std::int32_t>& ids) override {
                    ids.push_back(static_cast<std::int32_t>(text.size()));
                }
            };
            return std::make_unique<LengthEncoder>();
        }
        std::string decode(std::span<const std::int32_t>) const override { return {}; }
        std::int64_t vocab_size() const override { return 1000; }
        std::int32_t eod() const override { return 999; }
        std::string name() const override { return "lengths"; }
    };
    const std::string path = TERA_SOURCE_DIR "/tests/golden/parquet/dictionary.parquet";
    PreprocessOptions chosen = options({});
    chosen.inputs = {path};
    chosen.json_keys = {"lang"};
    EXPECT_EQ(preprocess(Lengths(), chosen).documents, 1000);
    chosen.json_keys = {"text"};
    expect_usage_error([&] { preprocess(Lengths(), chosen); }, {"dictionary.parquet", "row 4", "null"});
    chosen.skip_invalid = true;
    const PreprocessProgress total = preprocess(Lengths(), chosen);
    EXPECT_EQ(total.invalid, 143);  // every seventh from 3 on
    EXPECT_EQ(total.documents, 857);
    EXPECT_EQ(firsts()[3], 4 + 1 + 1 + 4 * 6);  // "row 4 " and four times six bytes
}

TEST_F(Inputs, BadRecordsAreLeftOutAndNamedIfAsked) {
    spill(folder_ / "in/a.jsonl",
          json_lines(0, 2) + "oops\n{\"text\": \"x\"}\n" + json_lines(2, 1) + "\n" + json_lines(3, 2));
    spill(folder_ / "in/b.csv", "a,text\n1,5\n2\n\"3\"x,9\n4,6\n5,\xff\n6,7\n");
    auto chosen = options({"in/a.jsonl", "in/b.csv"});
    chosen.skip_invalid = true;
    for (const int workers : {1, 3}) {
        for (const std::size_t block : {1, 30, 4096}) {
            notes_.clear();
            chosen.workers = workers;
            chosen.block_bytes = block;
            EXPECT_EQ(preprocess(tokenizer_, chosen).invalid, 6);
            EXPECT_EQ(firsts(), counting(8));
            ASSERT_EQ(notes_.size(), 6u);
            const char* const expected[] = {"a.jsonl: line 3: invalid JSON", "a.jsonl: line 4: NullTokenizer",
                                            "a.jsonl: line 6: is blank",     "b.csv: line 3: has 1 fields",
                                            "b.csv: line 4: there is text",  "b.csv: line 6: column \"text\""};
            for (std::size_t i = 0; i < 6; ++i)
                EXPECT_NE(notes_[i].find(expected[i]), std::string::npos) << notes_[i] << " not " << expected[i];
        }
    }
    chosen.skip_invalid = false;
    expect_usage_error([&] { preprocess(tokenizer_, chosen); }, {"a.jsonl: line 3", "invalid JSON"});
    chosen.inputs = {folder_ / "in/b.csv"};
    expect_usage_error([&] { preprocess(tokenizer_, chosen); }, {"b.csv: line 3", "1 fields"});
}

TEST_F(Inputs, DamageComesInItsPlace) {
    const std::string packed = gzip(json_lines(0, 20000), 1000000);
    for (const int workers : {1, 4}) {
        auto chosen = options({"in/a.gz"});
        chosen.workers = workers;
        spill(folder_ / "in/a.gz", packed.substr(0, packed.size() / 2));
        expect_usage_error([&] { preprocess(tokenizer_, chosen); }, {"a.gz", "gzip", "cut short"});
        chosen.skip_invalid = true;  // damage is not a bad record
        expect_usage_error([&] { preprocess(tokenizer_, chosen); }, {"a.gz", "cut short"});
        EXPECT_EQ(names_in(folder_.path()), std::vector<std::string>{"in/a.gz"});
    }
}

TEST_F(Inputs, PartitionsTakeTurnsAndAreJoined) {
    spill(folder_ / "in/a.jsonl", json_lines(0, 4) + "bad\n" + json_lines(5, 2));
    spill(folder_ / "in/b.csv", csv(7, 4));
    auto chosen = options({"in/a.jsonl", "in/b.csv"});
    chosen.partitions = 3;
    chosen.skip_invalid = true;
    for (const std::size_t block : {1, 40, 4096}) {
        chosen.block_bytes = block;
        EXPECT_EQ(preprocess(tokenizer_, chosen).documents, 10);
        EXPECT_EQ(firsts(), (std::vector<std::int32_t>{0, 3, 6, 9, 1, 7, 10, 2, 5, 8}));  // the bad one is the fourth
    }
    EXPECT_EQ(IndexedDataset(folder_ / "out_1_text_document").size(), 3);
    chosen.keep_sequential_samples = true;  // 11 records: 4, 4 and 3
    preprocess(tokenizer_, chosen);
    EXPECT_EQ(firsts(), (std::vector<std::int32_t>{0, 1, 2, 3, 5, 6, 7, 8, 9, 10}));
    EXPECT_EQ(IndexedDataset(folder_ / "out_1_text_document").size(), 3);
    EXPECT_EQ(IndexedDataset(folder_ / "out_2_text_document").size(), 3);
    chosen.partitions = 20;
    preprocess(tokenizer_, chosen);
    EXPECT_EQ(firsts().size(), 10u);
    EXPECT_EQ(IndexedDataset(folder_ / "out_19_text_document").size(), 0);
}

/// A run that is stopped after some documents as kill -9 would: its files stay as they are on disk at that moment.
class Stopped : public Inputs {
  protected:
    void run_and_stop(PreprocessOptions chosen, std::int64_t documents) {
        struct Stop {};
        const std::string aside = folder_ / "aside";
        const auto move_all = [](const std::string& from, const std::string& to) {
            std::filesystem::create_directories(to);
            for (const auto& entry : std::filesystem::directory_iterator(from))
                if (entry.is_regular_file())
                    std::filesystem::copy_file(entry.path(), to + "/" + entry.path().filename().string(),
                                               std::filesystem::copy_options::overwrite_existing);
        };
        EXPECT_THROW(preprocess(tokenizer_, chosen,
                                [&](const PreprocessProgress& progress) {
                                    if (progress.documents < documents) return;
                                    move_all(folder_.path(), aside);
                                    throw Stop{};
                                }),
                     Stop);
        move_all(aside, folder_.path());
        std::filesystem::remove_all(aside);
    }
};

class SlowStopped : public Stopped {};

TEST_F(SlowStopped, GoesOnAndWritesTheSameBytes) {
    spill(folder_ / "in/a.jsonl", json_lines(0, 4000));
    spill(folder_ / "in/b.jsonl.gz", gzip(json_lines(4000, 4000), 20000));
    spill(folder_ / "in/c.csv", csv(8000, 4000));
    auto chosen = options({"in/a.jsonl", "in/b.jsonl.gz", "in/c.csv"});
    preprocess(tokenizer_, chosen);
    const std::string expected = output();
    chosen.journal_seconds = 0;
    for (const std::int64_t stop : {300, 4000, 4001, 7000, 11999}) {
        for (const char* suffix : {".bin", ".idx"})
            std::filesystem::remove(folder_ / ("out_text_document" + std::string(suffix)));
        notes_.clear();
        chosen.workers = stop % 2 ? 1 : 3;
        run_and_stop(chosen, stop);
        ASSERT_TRUE(std::filesystem::exists(folder_ / "out.resume.json"));
        EXPECT_FALSE(std::filesystem::exists(folder_ / "out_text_document.idx"));
        std::int64_t seen = 0;
        const PreprocessProgress total = preprocess(tokenizer_, chosen, [&](const PreprocessProgress&) { ++seen; });
        EXPECT_TRUE(output() == expected) << stop;
        EXPECT_EQ(total.documents, 12000);
        ASSERT_EQ(notes_.size(), 1u) << stop;
        EXPECT_EQ(notes_[0].find("Going on after"), 0u) << notes_[0];
        EXPECT_LT(seen, 12000 - stop + 1000) << "began further back than it must";
        EXPECT_EQ(names_in(folder_.path()),
                  (std::vector<std::string>{"in/a.jsonl", "in/b.jsonl.gz", "in/c.csv", "out_text_document.bin",
                                            "out_text_document.idx"}));
    }
}

TEST_F(Stopped, GoesOnWithPartitions) {
    spill(folder_ / "in/a.jsonl", json_lines(0, 2000));
    auto chosen = options({"in/a.jsonl"});
    chosen.partitions = 3;
    preprocess(tokenizer_, chosen);
    const std::string expected = output();
    for (const std::string& prefix : preprocess_written(chosen)) {
        std::filesystem::remove(prefix + ".bin");
        std::filesystem::remove(prefix + ".idx");
    }
    chosen.journal_seconds = 0;
    run_and_stop(chosen, 1500);
    preprocess(tokenizer_, chosen);
    EXPECT_TRUE(output() == expected);
    EXPECT_EQ(notes_.size(), 1u);
}

TEST_F(Stopped, BeginsAnewWhereAnythingHasChanged) {
    spill(folder_ / "in/a.jsonl", json_lines(0, 1000));
    auto chosen = options({"in/a.jsonl"});
    chosen.journal_seconds = 0;
    const auto expect_new_start = [&](const std::string& why) {
        notes_.clear();
        preprocess(tokenizer_, chosen);
        EXPECT_TRUE(notes_.empty()) << why << ": " << notes_[0];
        EXPECT_EQ(firsts(), counting(1000)) << why;
    };
    run_and_stop(chosen, 600);
    std::filesystem::resize_file(folder_ / "out_text_document.bin.tmp", 10);
    expect_new_start("output cut short");
    run_and_stop(chosen, 600);
    spill(folder_ / "out.resume.json", "{\"identity\": 3");
    expect_new_start("damaged journal");
}

/// What another command has done is not thrown away.
TEST_F(Stopped, IsNotLostToAnotherCommand) {
    spill(folder_ / "in/a.jsonl", json_lines(0, 1000));
    auto chosen = options({"in/a.jsonl"});
    preprocess(tokenizer_, chosen);
    const std::string expected = output();
    chosen.journal_seconds = 0;
    chosen.partitions = 2;
    run_and_stop(chosen, 600);
    const auto refused = [&](const std::function<void(PreprocessOptions&)>& change) {
        PreprocessOptions other = chosen;
        change(other);
        expect_usage_error([&] { preprocess(tokenizer_, other); }, {"out.resume.json", "other flags", "delete"});
    };
    refused([](PreprocessOptions& o) { o.append_eod = false; });
    refused([](PreprocessOptions& o) { o.json_keys = {"txt"}; });
    refused([](PreprocessOptions& o) { o.keep_sequential_samples = true; });
    refused([](PreprocessOptions& o) { o.partitions = 1; });
    refused([](PreprocessOptions& o) { o.split_sentences = true; });
    notes_.clear();
    chosen.sentences.language = "german";  // without --split-sentences it changes nothing
    preprocess(tokenizer_, chosen);
    ASSERT_EQ(notes_.size(), 1u);
    chosen.partitions = 1;
    run_and_stop(chosen, 600);
    std::filesystem::remove(folder_ / "in/a.jsonl");
    spill(folder_ / "in/a.jsonl", json_lines(0, 1000));
    refused([](PreprocessOptions&) {});  // another file of the same name
    std::filesystem::remove(folder_ / "out.resume.json");
    preprocess(tokenizer_, chosen);
    EXPECT_TRUE(output() == expected);
}

/// A bad record near the end, or a disk that was full: what was noted before is kept.
TEST_F(Stopped, AnErrorKeepsWhatWasDone) {
    std::string text = json_lines(0, 1000);
    spill(folder_ / "in/a.jsonl", text + "{\"no\": 1}\n");
    auto chosen = options({"in/a.jsonl"});
    chosen.journal_seconds = 0;
    chosen.block_bytes = 4096;
    expect_usage_error([&] { preprocess(tokenizer_, chosen); },
                       {"in/a.jsonl: line 1001: has no key", "out.resume.json keeps the first"});
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out_text_document.idx"));
    chosen.skip_invalid = true;
    notes_.clear();
    const PreprocessProgress total = preprocess(tokenizer_, chosen);
    EXPECT_EQ(notes_.at(0).find("Going on after"), 0u) << notes_[0];
    EXPECT_EQ(total.documents, 1000);
    EXPECT_EQ(total.invalid, 1);
    EXPECT_EQ(firsts(), counting(1000));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out.resume.json"));
}

/// Records were left out of it, which a run without --skip-invalid must not do.
TEST_F(Stopped, WithRecordsLeftOutNeedsTheFlag) {
    spill(folder_ / "in/a.jsonl", "oops\n" + json_lines(0, 1000));
    auto chosen = options({"in/a.jsonl"});
    chosen.journal_seconds = 0;
    chosen.skip_invalid = true;
    run_and_stop(chosen, 600);
    chosen.skip_invalid = false;
    expect_usage_error([&] { preprocess(tokenizer_, chosen); }, {"out.resume.json", "other flags"});
    chosen.skip_invalid = true;
    EXPECT_EQ(preprocess(tokenizer_, chosen).invalid, 1);
    EXPECT_EQ(firsts(), counting(1000));
}

/// Killed while partitions are joined: nothing is tokenised again.
TEST_F(Stopped, JoinsWhatWasWritten) {
    spill(folder_ / "in/a.jsonl", json_lines(0, 1000));
    auto chosen = options({"in/a.jsonl"});
    chosen.partitions = 3;
    preprocess(tokenizer_, chosen);
    const std::string expected = output();
    for (const char* suffix : {".bin", ".idx"})
        std::filesystem::remove(folder_ / ("out_text_document" + std::string(suffix)));
    std::filesystem::create_directory(folder_ / "out_text_document.bin.tmp");  // in the way of joining
    EXPECT_THROW(preprocess(tokenizer_, chosen), UsageError);
    std::filesystem::remove(folder_ / "out_text_document.bin.tmp");
    std::int64_t seen = 0;
    EXPECT_EQ(preprocess(tokenizer_, chosen, [&](const PreprocessProgress&) { ++seen; }).documents, 1000);
    EXPECT_EQ(seen, 0);
    EXPECT_TRUE(output() == expected);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out.resume.json"));
}

TEST_F(Inputs, WhatGivesNoDocumentIsRefused) {
    spill(folder_ / "in/a.jsonl", "{\"txt\": \"1\"}\n{\"txt\": \"2\"}\n");
    auto chosen = options({"in/a.jsonl"});
    chosen.skip_invalid = true;
    expect_usage_error([&] { preprocess(tokenizer_, chosen); }, {"none of 2 records is valid"});
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out_text_document.idx"));
}

TEST_F(Inputs, PipesAreNotReadTwice) {
    ASSERT_EQ(mkfifo(std::string(folder_ / "pipe").c_str(), 0600), 0);
    auto chosen = options({"pipe"});
    chosen.partitions = 2;
    chosen.keep_sequential_samples = true;
    expect_usage_error([&] { preprocess(tokenizer_, chosen); }, {"--keep-sequential-samples", "pipe"});
}

TEST_F(Stopped, BadLinesAreCountedFromTheBeginning) {
    spill(folder_ / "in/a.jsonl", "bad\n" + json_lines(0, 1000) + "bad\n");
    auto chosen = options({"in/a.jsonl"});
    chosen.journal_seconds = 0;
    chosen.skip_invalid = true;
    run_and_stop(chosen, 800);
    notes_.clear();
    EXPECT_EQ(preprocess(tokenizer_, chosen).invalid, 2);
    ASSERT_EQ(notes_.size(), 2u);
    EXPECT_NE(notes_[1].find("a.jsonl: line 1002"), std::string::npos) << notes_[1];
}

}  // namespace
}  // namespace tera
