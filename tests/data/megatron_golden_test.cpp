// Whole datasets against what Megatron core 0.12 made of the same corpora (tests/golden/data): sizes, items, and the
// cache files byte for byte.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/batch.h"
#include "data/blended_dataset.h"
#include "data/dataset_builder.h"
#include "data/md5.h"
#include "data_fixture.h"
#include "io/json_file.h"
#include "support/temp_folder.h"

namespace tera {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Dataset paths are part of the cache keys, so the tests run inside the folder of the corpora.
class MegatronGolden : public ::testing::Test {
  protected:
    MegatronGolden() : before_(fs::current_path()) {
        golden_ = read_json_file(std::string(TERA_SOURCE_DIR) + "/tests/golden/data/megatron_datasets.json");
        fs::current_path(dir_.path());
        std::int32_t k = 0;
        for (const std::string name : {"a", "b", "c"}) {
            std::vector<std::vector<std::int32_t>> sequences;
            for (const auto& length : golden_["lengths"][name]) {
                const auto i = static_cast<std::int32_t>(sequences.size());
                auto& s = sequences.emplace_back(length.get<std::size_t>());
                for (std::int32_t j = 0; j < static_cast<std::int32_t>(s.size()); ++j)
                    s[static_cast<std::size_t>(j)] = (37 * k + 11 * i + 3 * j) % 89 + 1;
                s.back() = 0;
            }
            write_corpus(name, sequences);
            ++k;
        }
    }
    ~MegatronGolden() override { fs::current_path(before_); }

    static std::optional<std::int64_t> count(const Json& json) {
        return json.is_null() ? std::nullopt : std::optional<std::int64_t>(json.get<std::int64_t>());
    }

    static DataConfig config_of(const Json& c) {
        DataConfig config;
        config.split = c.value("split", "");
        config.mock_data = c.value("mock", false);
        if (c.contains("data_path")) config.data_path = c["data_path"].get<std::vector<std::string>>();
        if (c.contains("per_split")) {
            config.train_data_path = c["per_split"][0].get<std::vector<std::string>>();
            config.valid_data_path = c["per_split"][1].get<std::vector<std::string>>();
            config.test_data_path = c["per_split"][2].get<std::vector<std::string>>();
        }
        config.seed = c["seed"];
        config.sample.sequence_length = c["sequence_length"];
        config.sample.eod_id = 0;
        config.sample.pad_id = c.value("pad", -1);
        config.vocab_size = 8192;
        config.tokenizer = {"_NullTokenizer", {""}, {{"vocab_size", "8191"}}};
        config.sample.reset_position_ids = c.value("reset_position_ids", false);
        config.sample.reset_attention_mask = c.value("reset_attention_mask", false);
        config.sample.eod_mask_loss = c.value("eod_mask_loss", false);
        config.train_samples = count(c["sizes"][0]);
        config.valid_samples = count(c["sizes"][1]);
        config.test_samples = count(c["sizes"][2]);
        config.data_cache_path = "cache";
        return config;
    }

    static void compare_items(const GptData& data, const GptSampleOptions& options, const Json& golden) {
        ASSERT_EQ(data.samples->size(), golden["size"].get<std::int64_t>());
        for (const Json& item : golden["items"]) {
            const std::int64_t i = item["index"];
            const Batch batch = make_batch(*data.samples, options, {{i}, {i}});
            EXPECT_EQ(batch.tokens, item["tokens"].get<std::vector<std::int32_t>>()) << i;
            EXPECT_EQ(batch.labels, item["labels"].get<std::vector<std::int32_t>>()) << i;
            EXPECT_EQ(batch.loss_mask, item["loss_mask"].get<std::vector<float>>()) << i;
            EXPECT_EQ(batch.positions, item["position_ids"].get<std::vector<std::int32_t>>()) << i;
            EXPECT_EQ(batch.doc_start, item["doc_start"].get<std::vector<std::int32_t>>()) << i;
            EXPECT_EQ(batch.sources[0], item.value("dataset_id", 0)) << i;
        }
    }

    static void compare_cache(const Json& golden) {
        std::map<std::string, std::string> ours;
        for (const auto& entry : fs::directory_iterator("cache"))
            ours[entry.path().filename().string()] = md5_hex(slurp(entry.path().string()));
        EXPECT_EQ(ours, (golden.get<std::map<std::string, std::string>>()));
    }

    const TempFolder dir_;
    const fs::path before_;
    Json golden_;
};

TEST_F(MegatronGolden, CorporaAreTheSameBytes) {
    for (const auto& [name, sum] : golden_["corpora"].items())
        EXPECT_EQ(md5_hex(slurp(name)), sum.get<std::string>()) << name;
}

TEST_F(MegatronGolden, DatasetsAndCacheFiles) {
    for (const Json& c : golden_["cases"]) {
        SCOPED_TRACE(c["name"].get<std::string>());
        fs::remove_all("cache");
        for (const bool cached : {false, true}) {  // built, then from the files just written
            const GptDatasets data = build_gpt_datasets(config_of(c));
            EXPECT_TRUE(data.notes.empty() || c["name"] == "no weights, all of it") << data.notes.front();
            const std::optional<GptData>* splits[3] = {&data.train, &data.valid, &data.test};
            for (std::size_t s = 0; s < 3; ++s) {
                const Json& expected = c["splits"][s];
                ASSERT_EQ(splits[s]->has_value(), !expected.is_null()) << s;
                if (expected.is_null()) continue;
                EXPECT_EQ((*splits[s])->from_cache, cached);
                compare_items(**splits[s], data.sample_options, expected);
            }
        }
        compare_cache(c["cache"]);
    }
}

TEST_F(MegatronGolden, WorksWithoutACache) {
    for (const Json& c : golden_["cases"]) {
        DataConfig config = config_of(c);
        config.data_cache_path.clear();
        const GptDatasets data = build_gpt_datasets(config);
        compare_items(*data.train, data.sample_options, c["splits"][0]);
        EXPECT_FALSE(fs::exists("cache"));
    }
}

}  // namespace
}  // namespace tera
