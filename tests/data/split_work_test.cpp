#include "data/split_work.h"

#include <gtest/gtest.h>

#include "data/tools_fixture.h"
#include "support/expect_usage_error.h"
#include "support/temp_folder.h"

namespace tera {
namespace {

std::vector<std::int64_t> sizes(const WorkDump& dump) {
    std::vector<std::int64_t> out;
    for (const WorkFile& file : dump.files) out.push_back(file.size);
    return out;
}

TEST(SplitWork, GivesEachFileToTheSmallestDump) {
    const auto dumps = balance({{"a", 3}, {"b", 9}, {"c", 4}, {"d", 4}, {"e", 8}, {"f", 2}}, 2);
    EXPECT_EQ(sizes(dumps[0]), (std::vector<std::int64_t>{9, 4, 2}));
    EXPECT_EQ(sizes(dumps[1]), (std::vector<std::int64_t>{8, 4, 3}));
    EXPECT_EQ(dumps[0].files[1].path, "d");  // equals stay in order: c goes to the smaller dump 1
    EXPECT_EQ(dumps[0].size, 15);
}

class SplitWorkFiles : public ::testing::Test {
  protected:
    SplitWorkFiles() {
        put("en/a.parquet", 30);
        put("en/b.parquet", 10);
        put("fr/c.PARQUET", 20);
        put("fr/test_d.parquet", 25);
        put("fr/e.jsonl.zst", 5);
        put("fr/e.jsonl", 6);
        put("readme.md", 1);
        options_.dataset_folder = folder_ / "set";
        options_.format = "parquet";
        options_.metadata_folder = folder_ / "meta";
        options_.dumps = 2;
    }
    void put(const std::string& name, std::size_t size) {
        const std::string path = folder_ / ("set/" + name);
        std::filesystem::create_directories(std::filesystem::path(path).parent_path());
        spill(path, std::string(size, 'x'));
    }
    std::string list(int i) { return slurp(folder_ / ("meta/dumps/paths_file_" + std::to_string(i) + ".txt")); }
    void run() { write_split(options_, split_work(options_)); }

    TempFolder folder_;
    SplitWorkOptions options_;
};

TEST_F(SplitWorkFiles, WritesListsRelativeToTheLink) {
    run();
    EXPECT_EQ(list(0), "en/a.parquet\nen/b.parquet\n");
    EXPECT_EQ(list(1), "fr/test_d.parquet\nfr/c.PARQUET\n");
    EXPECT_TRUE(std::filesystem::exists(folder_ / "meta/raw-dataset-link/en/a.parquet"));
    run();  // the same again changes nothing
    options_.dumps = 3;
    expect_usage_error([&] { run(); }, {"paths_file_", "another split", "--overwrite"});
    options_.overwrite = true;
    options_.dumps = 1;
    run();
    EXPECT_EQ(names_in(folder_ / "meta/dumps"), std::vector<std::string>{"paths_file_0.txt"});
    EXPECT_EQ(list(0), "en/a.parquet\nfr/test_d.parquet\nfr/c.PARQUET\nen/b.parquet\n");
    options_.dataset_folder = folder_ / "set/en";
    expect_usage_error([&] { run(); }, {"raw-dataset-link", "leads elsewhere"});
}

TEST_F(SplitWorkFiles, FiltersByPartsOfThePath) {
    options_.filter_out = {"test_d", "en/b"};
    EXPECT_EQ(split_work(options_).files(), 2);
    EXPECT_EQ(split_work(options_).found, 4);
    options_.filter_in = {"/en/", "PARQUET"};
    options_.filter_out = {"b."};
    const WorkSplit split = split_work(options_);
    EXPECT_EQ(split.files(), 2);
    EXPECT_EQ(split.size(), 50);
    options_.filter_in = {"de"};
    expect_usage_error([&] { split_work(options_); }, {"none of the 4", "--filter-in"});
    options_.filter_in.clear();
    options_.format = "jsonl";
    EXPECT_EQ(split_work(options_).found, 2);
    options_.format = "csv";
    expect_usage_error([&] { split_work(options_); }, {"no .csv files"});
}

TEST_F(SplitWorkFiles, NeverMakesEmptyDumps) {
    options_.dumps = 100;
    EXPECT_EQ(split_work(options_).dumps.size(), 4u);
    options_.format = "jsonl";
    put("fr/empty.jsonl", 0);
    put("fr/void.jsonl", 0);
    EXPECT_EQ(split_work(options_).dumps.size(), 3u);
    EXPECT_EQ(split_work(options_).files(), 4);
    options_.format = "parquet";
    options_.dumps = 0;  // one per 150 GB begun
    EXPECT_EQ(split_work(options_).dumps.size(), 1u);
}

}  // namespace
}  // namespace tera
