#include "data/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "core/error.h"

namespace tera {
namespace {

constexpr std::size_t buffer_size = std::size_t{1} << 20;

[[noreturn]] void write_failed(const std::string& path, int error) {
    if (error == ENOSPC || error == EDQUOT)
        usage_error("cannot write ", path, ": ", std::strerror(error), "; free some space and run again");
    usage_error("cannot write ", path, ": ", std::strerror(error));
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0) {
        const int error = errno;
        const std::string folder = std::filesystem::path(path_).parent_path().string();
        if (error == ENOENT) usage_error("cannot create ", path_, ": there is no folder ", folder, "; create it first");
        usage_error("cannot create ", path_, ": ", std::strerror(error));
    }
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        ::close(fd_);
        usage_error("cannot write ", path_, ": another process is writing it");
    }
    if (::ftruncate(fd_, 0) != 0) {
        const int error = errno;
        ::close(fd_);
        write_failed(path_, error);
    }
    buffer_.resize(buffer_size);
}

OutputFile::~OutputFile() {
    if (!committed_) ::unlink(path_.c_str());
    ::close(fd_);
}

void OutputFile::put(std::int64_t position, const std::byte* data, std::size_t size) {
    while (size > 0) {
        const ::ssize_t done = ::pwrite(fd_, data, size, position);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) write_failed(path_, done == 0 ? ENOSPC : errno);
        data += done;
        position += done;
        size -= static_cast<std::size_t>(done);
    }
}

void OutputFile::flush() {
    put(flushed_, buffer_.data(), used_);
    flushed_ += static_cast<std::int64_t>(used_);
    used_ = 0;
}

void OutputFile::write(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::byte*>(data);
    if (size > buffer_size - used_) {
        flush();
        if (size >= buffer_size) {
            put(flushed_, bytes, size);
            flushed_ += static_cast<std::int64_t>(size);
            return;
        }
    }
    if (size > 0) std::memcpy(buffer_.data() + used_, bytes, size);
    used_ += size;
}

void OutputFile::write_at(std::int64_t position, const void* data, std::size_t size) {
    flush();
    TERA_CHECK(position >= 0 && position + static_cast<std::int64_t>(size) <= flushed_, path_);
    put(position, static_cast<const std::byte*>(data), size);
}

void OutputFile::read_at(std::int64_t position, void* data, std::size_t size) {
    flush();
    auto* bytes = static_cast<std::byte*>(data);
    while (size > 0) {
        const ::ssize_t got = ::pread(fd_, bytes, size, position);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            usage_error("cannot read back ", path_, ": ", got == 0 ? "it has become shorter" : std::strerror(errno));
        bytes += got;
        position += got;
        size -= static_cast<std::size_t>(got);
    }
}

void OutputFile::sync() {
    flush();
    if (::fsync(fd_) != 0) write_failed(path_, errno);
}

void OutputFile::commit(const std::string& final_path) {
    sync();
    if (std::rename(path_.c_str(), final_path.c_str()) != 0)
        usage_error("cannot rename ", path_, " to ", final_path, ": ", std::strerror(errno));
    committed_ = true;
}

void sync_folder(const std::string& path) {
    const std::string folder = (std::filesystem::path(path).parent_path() / ".").string();
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) usage_error("cannot open folder ", folder, ": ", std::strerror(errno));
    const int result = ::fsync(fd);
    const int error = errno;
    ::close(fd);
    // Some network file systems refuse to sync a folder; they keep renames in order themselves.
    if (result != 0 && error != EINVAL && error != ENOTSUP) write_failed(folder, error);
}

}  // namespace tera
