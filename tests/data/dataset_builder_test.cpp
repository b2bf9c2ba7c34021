#include "data/dataset_builder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "data/md5.h"
#include "data_fixture.h"
#include "support/expect_usage_error.h"
#include "support/temp_folder.h"

namespace tera {
namespace {

namespace fs = std::filesystem;

std::vector<std::vector<std::int32_t>> corpus(int sequences, int length) {
    std::vector<std::vector<std::int32_t>> all(static_cast<std::size_t>(sequences));
    for (int i = 0; i < sequences; ++i)
        for (int j = 0; j < length; ++j) all[static_cast<std::size_t>(i)].push_back((i * 7 + j) % 50 + 1);
    return all;
}

class DatasetBuilder : public ::testing::Test {
  protected:
    DatasetBuilder() {
        write_corpus(dir_ / "big", corpus(200, 20));
        write_corpus(dir_ / "small", corpus(5, 20));
        config_.data_path = {dir_ / "big"};
        config_.split = "949,50,1";
        config_.sample.sequence_length = 16;
        config_.sample.eod_id = 0;
        config_.vocab_size = 51;
        config_.train_samples = 100;
    }
    GptDatasets build() const { return build_gpt_datasets(config_); }
    void refuse(std::initializer_list<const char*> parts) const {
        expect_usage_error([&] { build(); }, parts);
    }

    const TempFolder dir_;
    DataConfig config_;
};

TEST_F(DatasetBuilder, OnlyWhatIsAskedFor) {
    const GptDatasets data = build();
    ASSERT_TRUE(data.train);
    EXPECT_FALSE(data.valid);
    EXPECT_FALSE(data.test);
    EXPECT_TRUE(data.notes.empty());
    EXPECT_GE(data.train->samples->size(), 100);
}

TEST_F(DatasetBuilder, EmptyTestSplitIsAbsentAndSaid) {
    config_.test_samples = config_.valid_samples = 10;
    const GptDatasets data = build();
    EXPECT_TRUE(data.valid);
    EXPECT_FALSE(data.test);
    ASSERT_EQ(data.notes.size(), 1u);
    EXPECT_NE(data.notes[0].find("test split is empty"), std::string::npos) << data.notes[0];
}

TEST_F(DatasetBuilder, EmptyValidationSplitWithEvaluationOn) {
    config_.valid_samples = 10;
    config_.split = "100,0,0";
    refuse({"valid split is absent", "100,0,0", "--eval-iters 0"});
    config_.split = "969,30,1";
    config_.data_path = {dir_ / "small"};
    refuse({"valid split is empty", "5 sequences", "--eval-iters 0"});
    config_.valid_samples = 0;
    EXPECT_FALSE(build().valid);
    config_.split = "0,1,1";
    refuse({"train split is absent", "nothing to train on"});
}

TEST_F(DatasetBuilder, MissingAndContradictory) {
    config_.data_path = {dir_ / "big", dir_ / "nowhere", dir_ / "nothing"};
    refuse({"nowhere.idx", "no such file"});
    config_.data_path = {"0.5", dir_ / "big", "O.5", dir_ / "small"};
    refuse({"--data-path", "'O.5'"});
    config_.data_path.clear();
    refuse({"--data-path PREFIX", "--mock-data"});
    config_.data_path = {dir_ / "big"};
    config_.mock_data = true;
    refuse({"--mock-data", "--data-path"});
    config_.mock_data = false;
    config_.data_args_path = dir_ / "args";
    refuse({"--data-args-path"});
    config_.data_args_path.clear();
    config_.train_data_path = {dir_ / "big"};
    refuse({"--data-path", "single splits"});
    config_.data_path.clear();
    refuse({"--split"});
    config_.split.clear();
    EXPECT_TRUE(build().train);
    config_.per_split_data_args_path = dir_ / "x.json";
    refuse({"--per-split-data-args-path"});
    config_.per_split_data_args_path.clear();
    config_.valid_samples = 3;
    EXPECT_EQ(build().notes.size(), 1u);  // no path for validation: left out, and said
    config_.seed = -1;
    refuse({"--seed", "-1"});
}

TEST_F(DatasetBuilder, EmptyCorpus) {
    write_corpus(dir_ / "empty", {});
    config_.data_path = {dir_ / "empty"};
    refuse({"train split is empty", "0 sequences"});
    write_corpus(dir_ / "hollow", {{}, {}, {}});
    config_.data_path = {dir_ / "hollow"};
    refuse({"train split is empty"});
}

TEST_F(DatasetBuilder, TokenBeyondTheVocabularyIsNamed) {
    config_.vocab_size = 40;
    const GptDatasets data = build();
    std::vector<std::int32_t> ids(17);
    expect_usage_error(
        [&] {
            for (std::int64_t i = 0; i < data.train->samples->size(); ++i) data.train->samples->read(i, ids.data());
        },
        {"big.bin: sequence", "outside the vocabulary of 40"});
}

TEST_F(DatasetBuilder, SourcesWithNothingInASplitAreLeftOut) {
    config_.data_path = {"1", dir_ / "small", "3", dir_ / "big"};
    config_.valid_samples = 10;
    const GptDatasets data = build();
    ASSERT_TRUE(data.valid);
    EXPECT_EQ(data.train->sources[0].weight, 0.25);
    EXPECT_EQ(data.valid->sources[0].weight, 0.0);
    EXPECT_EQ(data.valid->sources[1].weight, 1.0);
    ASSERT_EQ(data.notes.size(), 1u);
    EXPECT_NE(data.notes[0].find("small has no tokens in the valid split"), std::string::npos) << data.notes[0];
    std::vector<std::int32_t> ids(17);
    EXPECT_EQ(data.valid->samples->read(0, ids.data()), 1);
}

TEST_F(DatasetBuilder, Report) {
    config_.data_path = {"1", dir_ / "small", "3", dir_ / "big"};
    config_.split = "1";
    config_.train_samples = 400;
    const GptDatasets data = build();
    ASSERT_EQ(data.train->sources.size(), 2u);
    const SourceReport& small = data.train->sources[0];
    EXPECT_EQ(small.sequences, 5);
    EXPECT_EQ(small.tokens, 100);
    EXPECT_EQ(small.used_samples, 100);
    EXPECT_DOUBLE_EQ(small.epochs, 16.0);
    EXPECT_EQ(data.train->sources[1].used_samples, 300);
    EXPECT_NE(data.report().find("16.000 epochs (repeated)"), std::string::npos) << data.report();
}

TEST_F(DatasetBuilder, MoreThanOneEpochWithoutWeightsIsSaid) {
    config_.data_path = {dir_ / "small", dir_ / "big", dir_ / "small"};
    config_.split = "1";
    config_.train_samples = 100000;
    const GptDatasets data = build();
    EXPECT_EQ(data.train->samples->size(), 6 + 249 + 6);
    ASSERT_EQ(data.notes.size(), 1u);
    EXPECT_NE(data.notes[0].find("261 samples in one epoch"), std::string::npos) << data.notes[0];
    EXPECT_LT(data.train->sources[1].epochs, 1.0);
}

// Description and md5 confirmed with Megatron's own class.
TEST(IndexCache, KeyOfTheVector) {
    GptIdentity identity;
    identity.dataset_path = "data/my_text_document";
    identity.num_samples = 1200;
    identity.sequence_length = 1024;
    identity.split = parse_split("949,50,1");
    identity.tokenizer = {"_GPT2BPETokenizer", {"gpt2-vocab.json", "gpt2-merges.txt"}, {}};
    EXPECT_EQ(md5_hex(describe(identity)), "eee613b15f0543f8043935e9e881e18d");
}

TEST(Md5, Rfc1321) {
    EXPECT_EQ(md5_hex(""), "d41d8cd98f00b204e9800998ecf8427e");
    EXPECT_EQ(md5_hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
    EXPECT_EQ(md5_hex("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
    EXPECT_EQ(md5_hex("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
              "57edf4a22be3c955ac49da2e2107b67a");
    EXPECT_EQ(md5_hex(std::string(55, 'a')), "ef1772b6dff9a122358552954ad0df65");
    EXPECT_EQ(md5_hex(std::string(56, 'a')), "3b0c8ac703f828b04c6c197006d17218");
    EXPECT_EQ(md5_hex(std::string(64, 'a')), "014842d480b571495a4a0363793f7367");
}

class Cache : public DatasetBuilder {
  protected:
    Cache() {
        config_.data_cache_path = dir_ / "cache/deep";
        first_ = tokens(build());
    }
    static std::vector<std::int32_t> tokens(const GptDatasets& data) {
        std::vector<std::int32_t> all;
        std::vector<std::int32_t> ids(17);
        for (std::int64_t i = 0; i < data.train->samples->size(); ++i) {
            data.train->samples->read(i, ids.data());
            all.insert(all.end(), ids.begin(), ids.end());
        }
        return all;
    }
    std::vector<std::string> files() const {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(config_.data_cache_path))
            names.push_back(entry.path().string());
        return names;
    }
    std::vector<std::int32_t> first_;
};

TEST_F(Cache, IsUsed) {
    EXPECT_EQ(files().size(), 4u);
    const GptDatasets again = build();
    EXPECT_TRUE(again.train->from_cache);
    EXPECT_TRUE(again.notes.empty());
    EXPECT_EQ(tokens(again), first_);
    config_.seed = 4;
    EXPECT_FALSE(build().train->from_cache);
}

TEST_F(Cache, DamagedFilesAreRebuiltWithANote) {
    for (const std::string& name : files()) {
        const std::string whole = slurp(name);
        for (const std::string& damage :
             {whole.substr(0, whole.size() / 2), std::string(), whole + "x", std::string(whole.size(), 'x')}) {
            spill(name, damage);
            const GptDatasets data = build();
            EXPECT_FALSE(data.train->from_cache) << name;
            ASSERT_EQ(data.notes.size(), 1u) << name;
            EXPECT_NE(data.notes[0].find("building anew"), std::string::npos) << data.notes[0];
            EXPECT_EQ(tokens(data), first_);
            EXPECT_EQ(slurp(name), whole);
        }
        fs::remove(name);
        EXPECT_FALSE(build().train->from_cache);
        EXPECT_EQ(slurp(name), whole);
    }
    EXPECT_EQ(files().size(), 4u);
}

TEST_F(Cache, ThatCannotBeWrittenIsNoError) {
    spill(dir_ / "file", "x");
    config_.data_cache_path = dir_ / "file/cache";
    const GptDatasets data = build();
    ASSERT_EQ(data.notes.size(), 1u);
    EXPECT_NE(data.notes[0].find("cache not written"), std::string::npos) << data.notes[0];
    EXPECT_EQ(tokens(data), first_);
}

TEST_F(Cache, ReadersDoNotWrite) {
    config_.data_cache_path = dir_ / "other";
    config_.write_data_cache = false;
    build();
    EXPECT_FALSE(fs::exists(dir_ / "other"));
}

TEST_F(Cache, ManyWritersAtOnce) {
    config_.data_cache_path = dir_ / "crowd";
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
            const GptDatasets data = build();
            EXPECT_TRUE(data.notes.empty()) << data.notes.front();
            EXPECT_EQ(tokens(data), first_);
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(files().size(), 4u);
}

TEST(SlowDatasetBuilder, AThousandSources) {
    const TempFolder dir;
    DataConfig config;
    config.sample.sequence_length = 16;
    config.split = "1";
    config.train_samples = 100000;
    for (int i = 0; i < 1000; ++i) {
        const std::string prefix = dir / ("c" + std::to_string(i));
        if (i == 0) {
            write_corpus(prefix, corpus(200, 20));
        } else {
            fs::copy(dir / "c0.bin", prefix + ".bin");
            fs::copy(dir / "c0.idx", prefix + ".idx");
        }
        config.data_path.push_back(std::to_string(1 + i % 5));
        config.data_path.push_back(prefix);
    }
    const auto begin = std::chrono::steady_clock::now();
    const GptDatasets data = build_gpt_datasets(config);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("1000 sources, %lld samples: %.2f s\n", static_cast<long long>(data.train->samples->size()), seconds);
    EXPECT_LT(seconds, 2.0);
}

}  // namespace
}  // namespace tera
