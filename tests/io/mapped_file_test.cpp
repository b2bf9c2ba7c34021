#include "io/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "support/expect_usage_error.h"
#include "support/temp_folder.h"

namespace tera {
namespace {

std::string text_of(const MappedFile& file) { return {reinterpret_cast<const char*>(file.data()), file.size()}; }

TEST(MappedFile, Reads) {
    const TempFolder dir;
    std::ofstream(dir / "f") << "hello";
    for (const auto access : {MappedFile::Access::normal, MappedFile::Access::sequential, MappedFile::Access::random})
        EXPECT_EQ(text_of(MappedFile(dir / "f", access)), "hello");
    EXPECT_EQ(regular_file_size(dir / "f"), 5);
    const MappedFile file(dir / "f");
    file.will_need(0, 5);
    file.will_need(4, 1000000);  // beyond the end: nothing happens
    EXPECT_EQ(text_of(file), "hello");
}

TEST(MappedFile, Empty) {
    const TempFolder dir;
    std::ofstream(dir / "f").flush();
    EXPECT_EQ(MappedFile(dir / "f").size(), 0u);
    EXPECT_EQ(MappedFile().size(), 0u);
    EXPECT_EQ(regular_file_size(dir / "f"), 0);
}

TEST(MappedFile, Moves) {
    const TempFolder dir;
    std::ofstream(dir / "a") << "aaa";
    std::ofstream(dir / "b") << "bb";
    MappedFile a(dir / "a"), b(dir / "b");
    a = std::move(b);
    EXPECT_EQ(text_of(a), "bb");
    EXPECT_EQ(a.path(), dir / "b");
    const MappedFile c(std::move(a));
    EXPECT_EQ(text_of(c), "bb");
}

TEST(MappedFile, Refused) {
    const TempFolder dir;
    expect_usage_error([&] { MappedFile(dir / "none"); }, {"none", "no such file"});
    expect_usage_error([&] { MappedFile{dir.path()}; }, {dir.path().c_str(), "folder"});
    expect_usage_error([&] { regular_file_size(dir / "none"); }, {"none", "no such file"});
    expect_usage_error([&] { regular_file_size(dir.path()); }, {"folder"});
    ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
    expect_usage_error([&] { MappedFile(dir / "pipe"); }, {"pipe", "regular"});  // and does not wait for a writer
}

}  // namespace
}  // namespace tera
