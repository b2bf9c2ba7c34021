#include "io/lost_pages.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <string_view>

namespace tera {
namespace {

// All below runs in a signal's handler: no memory is taken, nothing is locked, and only what POSIX allows there is
// called.

/// Text of a limited length; what does not fit is left out.
class Line {
  public:
    void clear() { size_ = 0; }
    void add(char c) { add(std::string_view(&c, 1)); }
    void add(std::string_view text) {
        const std::size_t n = std::min(text.size(), sizeof text_ - size_);
        std::copy_n(text.data(), n, text_ + size_);
        size_ += n;
    }
    std::string_view text() const { return {text_, size_}; }

  private:
    char text_[PATH_MAX + 512];
    std::size_t size_ = 0;
};

/// The lines of a file; one longer than Line is cut.
class Lines {
  public:
    explicit Lines(const char* path) : fd_(::open(path, O_RDONLY | O_CLOEXEC)) {}
    bool next(Line& line) {
        line.clear();
        for (;; ++at_) {
            if (at_ == end_) {
                at_ = 0, end_ = fd_ < 0 ? 0 : ::read(fd_, block_, sizeof block_);
                if (end_ <= 0) return false;
            }
            if (block_[at_] == '\n') break;
            line.add(block_[at_]);
        }
        ++at_;
        return true;
    }

  private:
    int fd_;
    char block_[1024];
    ssize_t at_ = 0, end_ = 0;
};

/// Takes a number in hexadecimal digits off the front.
std::uintptr_t take_hex(std::string_view& text) {
    std::uintptr_t value = 0;
    for (; !text.empty(); text.remove_prefix(1)) {
        const char c = text[0];
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) break;
        value = value * 16 + static_cast<std::uintptr_t>(digit);
    }
    return value;
}

struct Mapping {
    std::string_view file;  ///< empty where there is none
    bool writable = false;
};

/// What is at an address. Lines of the kernel's list are "first-last rw.. offset device inode    path", the path with
/// its line ends written as \012.
Mapping mapping_at(std::uintptr_t address, Line& line) {
    Lines lines("/proc/self/maps");
    while (lines.next(line)) {
        std::string_view rest = line.text();
        const std::uintptr_t first = take_hex(rest);
        if (rest.empty()) continue;
        rest.remove_prefix(1);
        if (address < first || address >= take_hex(rest)) continue;
        const std::size_t path = rest.find('/');
        return {path == rest.npos ? std::string_view{} : rest.substr(path), rest.substr(0, 3) == " rw"};
    }
    return {};
}

void say_and_leave(int, siginfo_t* info, void*) {
    static std::atomic_flag said;  // one thread speaks; the others are ended with the program
    while (said.test_and_set()) ::pause();
    static Line found, message;
    const auto [file, writable] = mapping_at(reinterpret_cast<std::uintptr_t>(info->si_addr), found);
    message.add("teratron: ");
    if (writable && file.rfind("/dev/shm/", 0) == 0) {
        message.add("/dev/shm is full: there is no memory for ");
        message.add(file);
        message.add(
            "; give a container more (docker run --shm-size, or in Kubernetes an emptyDir with medium: Memory "
            "mounted there)\n");
    } else {
        message.add(file.empty() ? "a file" : file);
        message.add(
            " became shorter while it was read, or its disk failed; restore it and start again from the last "
            "checkpoint\n");
    }
    if (::write(STDERR_FILENO, message.text().data(), message.text().size()) < 0) ::_exit(3);
    ::_exit(2);
}

}  // namespace

void explain_lost_pages() {
    struct sigaction action {};
    action.sa_sigaction = say_and_leave;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace tera
