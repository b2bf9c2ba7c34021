#include "io/file_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace tera {
namespace {

constexpr std::size_t peek_size = 16;

}  // namespace

FileSource::FileSource(const std::string& path) : name_(path == "-" ? "standard input" : path) {
    owns_fd_ = path != "-";
    fd_ = owns_fd_ ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (fd_ < 0) usage_error(name_, ": cannot be opened: ", std::strerror(errno));
    struct stat info {};
    const bool known = ::fstat(fd_, &info) == 0;
    if (known && S_ISDIR(info.st_mode)) {
        if (owns_fd_) ::close(fd_);
        usage_error(name_, ": is a folder, not a file");
    }
    if (known && S_ISREG(info.st_mode)) {
        size_ = info.st_size;
        ::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
    }
}

FileSource::~FileSource() {
    if (owns_fd_ && fd_ >= 0) ::close(fd_);
}

std::size_t FileSource::read_stored(char* out, std::size_t size) {
    std::size_t got = 0;
    while (got < size) {
        const ssize_t n = ::read(fd_, out + got, size - got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            usage_error(name_, ": cannot be read at byte ", position_ + static_cast<std::int64_t>(got), ": ",
                        std::strerror(errno));
        if (n == 0) break;
        got += static_cast<std::size_t>(n);
    }
    return got;
}

std::size_t FileSource::read(std::span<char> out) {
    const std::size_t ready = std::min(peeked_.size(), out.size());
    std::copy_n(peeked_.begin(), ready, out.begin());
    peeked_.erase(0, ready);
    const std::size_t got = ready + read_stored(out.data() + ready, out.size() - ready);
    position_ += static_cast<std::int64_t>(got);
    return got;
}

std::string_view FileSource::peek() {
    if (peeked_.size() < peek_size) {
        const std::size_t before = peeked_.size();
        peeked_.resize(peek_size);
        peeked_.resize(before + read_stored(peeked_.data() + before, peek_size - before));
    }
    return peeked_;
}

void FileSource::seek(std::int64_t position) {
    if (position == position_) return;
    if (position <= size_ && ::lseek(fd_, position, SEEK_SET) == position) {
        peeked_.clear();
        position_ = position;
        return;
    }
    if (position < position_ || size_ > 0)
        usage_error(name_, ": has no byte ", position, " to go on from; it has changed since the run that stopped");
    skip_to(position);
}

}  // namespace tera
