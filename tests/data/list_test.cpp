#include "data/list.h"

#include <gtest/gtest.h>

#include "data/file_walk.h"
#include "data/tools_fixture.h"
#include "support/expect_usage_error.h"
#include "support/temp_folder.h"

namespace tera {
namespace {

TEST(DataList, FindsPairsBelowEveryFolder) {
    TempFolder folder;
    write_pair(folder / "a/one", 3);
    write_pair(folder / "a/deep/er/two", 4);
    write_pair(folder / "b/three", 5);
    spill(folder / "a/notes.txt", "");
    ListOptions options;
    options.folders = {folder / "b", folder / "a"};
    // Files of a folder come before those of its sub-folders, folders in the order given.
    EXPECT_EQ(list_prefixes(options).prefixes,
              (std::vector<std::string>{folder / "b/three", folder / "a/one", folder / "a/deep/er/two"}));
    options.sorted = true;
    EXPECT_EQ(list_prefixes(options).prefixes,
              (std::vector<std::string>{folder / "a/deep/er/two", folder / "a/one", folder / "b/three"}));
    options.seq_length = 4;  // a sample is one token longer
    const PrefixList list = list_prefixes(options);
    EXPECT_EQ(list.prefixes, std::vector<std::string>{folder / "b/three"});
    EXPECT_EQ(list.too_small.size(), 2u);
    options.seq_length = 5;
    expect_usage_error([&] { list_prefixes(options); }, {"more than 5 tokens"});
}

TEST(DataList, NamesWhatIsWrong) {
    TempFolder folder;
    ListOptions options;
    options.folders = {folder / "nowhere"};
    expect_usage_error([&] { list_prefixes(options); }, {"nowhere", "No such file"});
    options.folders = {folder.path()};
    expect_usage_error([&] { list_prefixes(options); }, {"no .bin/.idx pair under"});
    spill(folder / "x.bin", "");
    expect_usage_error([&] { list_prefixes(options); }, {"x.bin", "x.idx", "unfinished"});
    std::filesystem::remove(folder / "x.bin");
    write_pair(folder / "two words", 1);
    expect_usage_error([&] { list_prefixes(options); }, {"two words", "blank"});
}

TEST(FileWalk, FollowsLinksOnlyIfAsked) {
    TempFolder folder;
    write_pair(folder / "real/x", 1);
    std::filesystem::create_directory(folder / "top");
    std::filesystem::create_directory_symlink(folder / "real", folder / "top/link");
    std::filesystem::create_directory_symlink(folder.path(), folder / "real/back");  // a circle
    EXPECT_TRUE(walk_files(folder / "top", false).empty());
    EXPECT_EQ(walk_prefixes(folder / "top", true).front(), folder / "top/link/x");
    EXPECT_EQ(path_inside(folder / "top/link/x.bin", (folder / "top") + "/"), "link/x.bin");
    EXPECT_EQ(base_name("a/b//"), "b");
    EXPECT_EQ(base_name("b"), "b");
}

}  // namespace
}  // namespace tera
