#include "io/lost_pages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "support/temp_folder.h"

namespace tera {
namespace {

constexpr std::size_t page = 4096;
constexpr int may_not = 77;

struct Ended {
    int status = 0;  ///< as wait gives it
    std::string said;
};

/// How a process ends that does this, and what it says.
Ended child(const std::function<void()>& does) {
    int pipe[2];
    EXPECT_EQ(::pipe(pipe), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::dup2(pipe[1], STDERR_FILENO);
        ::close(pipe[0]);
        explain_lost_pages();
        does();
        ::_exit(0);
    }
    ::close(pipe[1]);
    Ended ended;
    char block[512];
    for (ssize_t n = 0; (n = ::read(pipe[0], block, sizeof block)) > 0;)
        ended.said.append(block, static_cast<std::size_t>(n));
    ::close(pipe[0]);
    ::waitpid(pid, &ended.status, 0);
    return ended;
}

volatile char* mapped(const std::string& path, std::size_t bytes, int access = PROT_READ) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) ::_exit(may_not);
    void* data = ::mmap(nullptr, bytes, access, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) ::_exit(may_not);
    return static_cast<volatile char*>(data);
}

std::string cut_short(const std::string& path) {
    return "teratron: " + path +
           " became shorter while it was read, or its disk failed; restore it and start again from the last "
           "checkpoint\n";
}

TEST(LostPages, NameTheirFileAmongOthers) {
    const TempFolder dir;
    for (const std::size_t lost : {0u, 1u, 2u}) {
        const auto path = [&](std::size_t i) { return (dir / ("file " + std::to_string(i))); };
        const Ended ended = child([&] {
            volatile char* files[3];
            for (std::size_t i = 0; i < 3; ++i) files[i] = mapped(path(i), 2 * page);
            std::filesystem::resize_file(path(lost), page);
            (void)files[lost][page - 1];  // still there
            (void)files[lost][page];
        });
        EXPECT_TRUE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 2) << ended.status;
        EXPECT_EQ(ended.said, cut_short(path(lost)));
    }
}

/// Every byte is in one file only, that where a mapping begins too: the one before it ends there.
TEST(LostPages, OfMappingsSideBySide) {
    const TempFolder dir;
    const Ended ended = child([&] {
        auto* room = static_cast<char*>(::mmap(nullptr, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        for (int i = 0; i < 2; ++i) {
            const int fd = ::open((dir / std::to_string(i)).c_str(), O_RDWR | O_CREAT, 0600);
            if (::ftruncate(fd, page) != 0) ::_exit(may_not);
            ::mmap(room + static_cast<std::size_t>(i) * page, page, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
        }
        std::filesystem::resize_file(dir / "1", 0);
        (void)static_cast<volatile char*>(room)[page];
    });
    EXPECT_EQ(ended.said, cut_short(dir / "1"));
}

TEST(LostPages, AreSaidOnceByAllThreads) {
    const TempFolder dir;
    for (int round = 0; round < 20; ++round) {
        const Ended ended = child([&] {
            volatile char* file = mapped(dir / "f", 8 * page);
            std::filesystem::resize_file(dir / "f", 0);
            std::barrier together(8);
            std::vector<std::jthread> threads;
            for (std::size_t i = 0; i < 8; ++i)
                threads.emplace_back([&, i] {
                    together.arrive_and_wait();
                    (void)file[i * page];
                });
        });
        ASSERT_TRUE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 2) << ended.status;
        ASSERT_EQ(ended.said, cut_short(dir / "f"));
    }
}

TEST(LostPages, OfDataInSharedMemory) {
    const TempFolder dir(TempFolder::Where::memory);
    const Ended ended = child([&] {
        volatile char* file = mapped(dir / "f", page);
        std::filesystem::resize_file(dir / "f", 0);
        (void)file[0];
    });
    EXPECT_EQ(ended.said, cut_short(dir / "f"));
}

TEST(LostPages, OfNamesThatArePeculiar) {
    const TempFolder dir;
    const std::string longest = dir / std::string(255, 'x');
    for (const auto& [path, shown] : {std::pair<std::string, std::string>{dir / "a\nb", dir / "a\\012b"},
                                      std::pair<std::string, std::string>{longest, longest}}) {
        const Ended ended = child([&, path = path] {
            volatile char* file = mapped(path, page);
            std::filesystem::resize_file(path, 0);
            (void)file[0];
        });
        EXPECT_EQ(ended.said, cut_short(shown));
    }
}

TEST(LostPages, OfSharedMemoryThatIsFull) {
    const Ended ended = child([&] {
        if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64k") != 0)
            ::_exit(may_not);
        volatile char* shared = mapped("/dev/shm/segment", 256 * page, PROT_READ | PROT_WRITE);
        for (std::size_t i = 0; i < 256; ++i) shared[i * page] = 1;
    });
    if (WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == may_not)
        GTEST_SKIP() << "may not mount a file system here";
    EXPECT_TRUE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 2) << ended.status;
    EXPECT_EQ(ended.said,
              "teratron: /dev/shm is full: there is no memory for /dev/shm/segment; give a container more (docker run "
              "--shm-size, or in Kubernetes an emptyDir with medium: Memory mounted there)\n");
}

}  // namespace
}  // namespace tera
