#include "io/durable_file.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/expect_usage_error.h"
#include "support/temp_folder.h"

namespace tera {
namespace {
namespace fs = std::filesystem;

std::string content_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

std::size_t files_in(const std::string& folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator{}));
}

/// Lowers the size that files of this process may reach.
class FileSizeLimit {
  public:
    explicit FileSizeLimit(rlim_t bytes) {
        getrlimit(RLIMIT_FSIZE, &old_);
        rlimit now{bytes, old_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &now);
    }
    ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &old_); }

  private:
    rlimit old_{};
};

TEST(DurableFile, AppearsOnlyWhenCommitted) {
    TempFolder folder;
    const std::string path = folder / "note.txt";
    {
        DurableFile file(path);
        file.out().append("first ");
        file.out().append("second");
        EXPECT_FALSE(fs::exists(path));
        file.commit();
        EXPECT_EQ(content_of(path), "first second");
    }
    EXPECT_EQ(files_in(folder.path()), 1u);
    {
        DurableFile abandoned(path);
        abandoned.out().append("never");
    }
    EXPECT_EQ(content_of(path), "first second");
    EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(DurableFile, WritesRangesInAnyOrder) {
    TempFolder folder;
    OutputFile file(folder / "ranges", OutputFile::Mode::create);
    file.reserve(6);
    const std::string b = "def", a = "abc";
    file.write_at(3, std::as_bytes(std::span(b)));
    {
        OutputFile other(folder / "ranges", OutputFile::Mode::join);
        other.write_at(0, std::as_bytes(std::span(a)));
        other.close();
    }
    file.sync();
    file.close();
    EXPECT_EQ(content_of(folder / "ranges"), "abcdef");
}

TEST(DurableFile, FullDeviceIsAnErrorWithThePlace) {
    if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
    OutputFile file("/dev/full", OutputFile::Mode::join);
    const std::string text(5000, 'x');
    expect_usage_error([&] { file.append(text); }, {"/dev/full", "No space left", "5.0 kB", "make room"});
}

TEST(DurableFile, FileSizeLimitLeavesTheOldFile) {
    TempFolder folder;
    const std::string path = folder / "state.json";
    write_file_durably(path, "old");
    const FileSizeLimit limit(4096);
    expect_usage_error([&] { write_file_durably(path, std::string(10000, 'x')); },
                       {path.c_str(), "File too large", "10.0 kB", "ulimit -f"});
    expect_usage_error(
        [&] {
            DurableFile file(path);
            file.out().reserve(20000);
        },
        {"File too large", "20.0 kB"});
    EXPECT_EQ(content_of(path), "old");
    EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(DurableFile, FullDiskLeavesTheOldFileAndNoTemporary) {
    TempFolder folder;
    if (mount("none", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
        GTEST_SKIP() << "mounting a small tmpfs needs root";
    }
    const std::string path = folder / "state.json";
    write_file_durably(path, "old");
    expect_usage_error([&] { write_file_durably(path, std::string(200000, 'x')); },
                       {path.c_str(), "No space left", "200 kB", "free there", "make room"});
    expect_usage_error(
        [&] {
            DurableFile file(path);
            file.out().reserve(1 << 20);
        },
        {"No space left", "1.0 MB"});
    EXPECT_EQ(content_of(path), "old");
    EXPECT_EQ(files_in(folder.path()), 1u);
    umount(folder.path().c_str());
}

TEST(DurableFile, NamesWhatCannotBeCreated) {
    TempFolder folder;
    expect_usage_error([&] { write_file_durably(folder / "absent/file", "x"); }, {"absent/file", "No such file"});
    write_file_durably(folder / "plain", "x");
    expect_usage_error([&] { make_folders(folder / "plain/below"); }, {"plain/below"});
    expect_usage_error([&] { make_folders(folder / "plain"); }, {"plain"});
    expect_usage_error([&] { rename_durably(folder / "nothing", folder / "else"); }, {"nothing", "No such file"});
    expect_usage_error([&] { sync_folder(folder / "nothing"); }, {"nothing"});
    make_folders(folder / "a/b/c");
    EXPECT_TRUE(fs::is_directory(folder / "a/b/c"));
    remove_tree(folder / "a");
    EXPECT_FALSE(fs::exists(folder / "a"));
    remove_tree(folder / "a");
}

TEST(DurableFile, HumanBytes) {
    EXPECT_EQ(human_bytes(0), "0 bytes");
    EXPECT_EQ(human_bytes(999), "999 bytes");
    EXPECT_EQ(human_bytes(1000), "1.0 kB");
    EXPECT_EQ(human_bytes(99949), "99.9 kB");
    EXPECT_EQ(human_bytes(123456), "123 kB");
    EXPECT_EQ(human_bytes(1500000000), "1.5 GB");
}

}  // namespace
}  // namespace tera
