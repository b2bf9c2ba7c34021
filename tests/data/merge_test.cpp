#include "data/merge.h"

#include <gtest/gtest.h>

#include "data/tools_fixture.h"
#include "support/expect_usage_error.h"
#include "support/temp_folder.h"

namespace tera {
namespace {

using Ids = std::vector<std::int32_t>;

class Merge : public ::testing::Test {
  protected:
    Merge() { std::filesystem::create_directory(folder_ / "in"); }
    MergeOptions options() const {
        MergeOptions chosen;
        chosen.input = folder_ / "in";
        chosen.output_prefix = folder_ / "all";
        return chosen;
    }
    TempFolder folder_;
};

TEST_F(Merge, JoinsPairsInTheOrderOfTheirNames) {
    // "b10" < "b2" as text; the empty document and the two-sequence one must survive.
    write_corpus(folder_ / "in/b2", {Ids{7}});
    {
        IndexedDatasetWriter writer(folder_ / "in/b10", TokenType::u16);
        writer.add_document(Ids{1, 2, 3}, Ids{1, 2});
        writer.add_document({}, {});
        writer.finish();
    }
    write_corpus(folder_ / "in/a", {Ids{9, 8}, Ids{65535}});
    const MergeResult result = merge_datasets(options());
    EXPECT_EQ(result.prefixes, (std::vector<std::string>{folder_ / "in/a", folder_ / "in/b10", folder_ / "in/b2"}));
    EXPECT_EQ(result.documents, 5);
    EXPECT_EQ(result.tokens, 7);
    const IndexedDataset merged(folder_ / "all");
    std::vector<std::int64_t> lengths, documents;
    for (std::int64_t i = 0; i < merged.size(); ++i) lengths.push_back(merged.index().length(i));
    for (std::int64_t i = 0; i <= merged.index().documents(); ++i)
        documents.push_back(merged.index().document_index(i));
    EXPECT_EQ(lengths, (std::vector<std::int64_t>{2, 1, 1, 2, 1}));
    EXPECT_EQ(documents, (std::vector<std::int64_t>{0, 1, 2, 4, 4, 5}));
    EXPECT_EQ(slurp(folder_ / "all.bin"),
              slurp(folder_ / "in/a.bin") + slurp(folder_ / "in/b10.bin") + slurp(folder_ / "in/b2.bin"));
}

TEST_F(Merge, OnePairComesOutAsItWas) {
    write_corpus(folder_ / "in/x", {Ids{1, 2, 3}, Ids{}, Ids{4}}, TokenType::i32);
    merge_datasets(options());
    EXPECT_EQ(slurp(folder_ / "all.bin"), slurp(folder_ / "in/x.bin"));
    EXPECT_EQ(slurp(folder_ / "all.idx"), slurp(folder_ / "in/x.idx"));
}

TEST_F(Merge, KeepsModes) {
    MergeOptions chosen = options();
    chosen.multimodal = true;
    for (const char* name : {"in/p", "in/q"}) {
        IndexedDatasetWriter writer(folder_ / name, TokenType::i32, true);
        writer.add_sequence(Ids{5});
        writer.add_sequence(Ids{6, 7}, 1);
        writer.end_document();
        writer.finish();
    }
    merge_datasets(chosen);
    const IndexedDataset merged(folder_ / "all");
    ASSERT_TRUE(merged.index().has_modes());
    for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(merged.index().mode(i), i % 2) << i;
    expect_usage_error([&] { merge_datasets(options()); }, {"in/p", "multimodal", "--multimodal"});
    write_corpus(folder_ / "in/r", {Ids{1}}, TokenType::i32);
    expect_usage_error([&] { merge_datasets(chosen); }, {"in/r", "no modes"});
}

TEST_F(Merge, RefusesWhatIsNotPairs) {
    expect_usage_error([&] { merge_datasets(options()); }, {"in", "holds no .bin/.idx pair"});
    write_corpus(folder_ / "in/x", {Ids{1}});
    std::filesystem::create_directory(folder_ / "in/inner");  // sub-folders are passed over
    spill(folder_ / "in/lone.bin", "");
    expect_usage_error([&] { merge_datasets(options()); }, {"lone.bin", "lone.idx is missing"});
    std::filesystem::rename(folder_ / "in/lone.bin", folder_ / "in/notes.txt");
    expect_usage_error([&] { merge_datasets(options()); }, {"notes.txt", "no .bin/.idx pair"});
    std::filesystem::remove(folder_ / "in/notes.txt");
    write_corpus(folder_ / "in/y", {Ids{1}}, TokenType::i32);
    expect_usage_error([&] { merge_datasets(options()); }, {"in/y", "int32", "uint16"});
    EXPECT_FALSE(std::filesystem::exists(folder_ / "all.bin"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "all.bin.tmp"));
    MergeOptions elsewhere = options();
    elsewhere.input = folder_ / "nowhere";
    expect_usage_error([&] { merge_datasets(elsewhere); }, {"nowhere", "not a folder"});
}

TEST_F(Merge, FollowsLinksAndNamesThoseThatLeadNowhere) {
    write_corpus(folder_ / "real", {Ids{1, 2}});
    write_corpus(folder_ / "in/x", {Ids{3}});
    for (const char* suffix : {".bin", ".idx"})
        std::filesystem::create_symlink((folder_ / "real") + suffix, (folder_ / "in/link") + suffix);
    EXPECT_EQ(merge_datasets(options()).tokens, 3);
    for (const char* suffix : {".bin", ".idx"}) std::filesystem::remove((folder_ / "real") + suffix);
    expect_usage_error([&] { merge_datasets(options()); }, {"in/link", "link to a file that is not there"});
}

TEST_F(Merge, NeverMergesItsOwnOutput) {
    write_corpus(folder_ / "in/x", {Ids{1}});
    MergeOptions inside = options();
    inside.output_prefix = folder_ / "in/x";
    expect_usage_error([&] { merge_datasets(inside); }, {"in/x", "one of the pairs"});
    inside.output_prefix = folder_ / "in/all";
    spill(folder_ / "in/all.bin.tmp", "left by a stopped run");
    merge_datasets(inside);
    EXPECT_EQ(IndexedDataset(folder_ / "in/all").index().tokens(), 1);
    expect_usage_error([&] { merge_datasets(inside); }, {"in/all", "one of the pairs"});
}

}  // namespace
}  // namespace tera
