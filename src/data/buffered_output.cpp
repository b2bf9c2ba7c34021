#include "data/buffered_output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace tera {
namespace {

constexpr std::int64_t start_every = std::int64_t{1} << 24;  // bytes

}  // namespace

FileLock::FileLock(const std::string& path) : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (fd_ < 0) {
        if (errno == ENOENT)
            usage_error("cannot create ", path, ": there is no folder ", folder_of(path), "; create it first");
        usage_error("cannot create ", path, ": ", std::strerror(errno));
    }
    // File systems without locks fail with another error: then two writers are the user's to avoid.
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        ::close(fd_);
        usage_error("cannot write ", path, ": another process is writing it; wait for it or choose another output");
    }
}

FileLock::~FileLock() { ::close(fd_); }

BufferedOutput::BufferedOutput(std::string path)
    : lock_(path), path_(std::move(path)), file_(path_, OutputFile::Mode::create), buffer_(most_room) {}

BufferedOutput::BufferedOutput(std::string path, std::int64_t keep)
    : lock_(path),
      path_(std::move(path)),
      file_(path_, OutputFile::Mode::join),
      buffer_(most_room),
      size_(keep),
      flushed_(keep),
      started_(keep) {
    if (::truncate(path_.c_str(), keep) != 0) usage_error("cannot cut ", path_, ": ", std::strerror(errno));
}

BufferedOutput::~BufferedOutput() {
    if (!renamed_ && !kept_) ::unlink(path_.c_str());
}

void BufferedOutput::write(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::byte*>(data);
    if (size > buffer_.size() - used_) flush();
    if (size > buffer_.size()) {
        file_.write_at(static_cast<std::uint64_t>(flushed_), {bytes, size});
        flushed_ += static_cast<std::int64_t>(size);
    } else if (size > 0) {
        std::memcpy(buffer_.data() + used_, bytes, size);
        used_ += size;
    }
    size_ += static_cast<std::int64_t>(size);
}

std::byte* BufferedOutput::write_room(std::size_t size) {
    TERA_CHECK(size <= most_room, size);
    if (size > buffer_.size() - used_) flush();
    std::byte* const room = buffer_.data() + used_;
    used_ += size;
    size_ += static_cast<std::int64_t>(size);
    return room;
}

void BufferedOutput::flush() {
    if (used_ > 0) file_.write_at(static_cast<std::uint64_t>(flushed_), {buffer_.data(), used_});
    flushed_ += static_cast<std::int64_t>(used_);
    used_ = 0;
    // The disk works while we do; else all would wait for it at the end.
    if (flushed_ - started_ < start_every) return;
    file_.start_sync(static_cast<std::uint64_t>(started_), static_cast<std::uint64_t>(flushed_ - started_));
    started_ = flushed_;
}

void BufferedOutput::overwrite_front(const void* data, std::size_t size) {
    flush();
    TERA_CHECK(static_cast<std::int64_t>(size) <= size_, path_);
    file_.write_at(0, {static_cast<const std::byte*>(data), size});
}

void BufferedOutput::sync() {
    flush();
    file_.sync();
}

void BufferedOutput::rename_to(const std::string& final_path) {
    rename_durably(path_, final_path);
    renamed_ = true;
}

}  // namespace tera
