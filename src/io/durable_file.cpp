#include "io/durable_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/error.h"

namespace tera {
namespace fs = std::filesystem;
namespace {

// Beyond the file size limit the kernel sends a deadly signal before write() can say EFBIG. We want the error.
void ignore_file_size_signal() {
    static const bool done = [] {
        struct sigaction old {};
        if (sigaction(SIGXFSZ, nullptr, &old) == 0 && old.sa_handler == SIG_DFL) signal(SIGXFSZ, SIG_IGN);
        return true;
    }();
    (void)done;
}

template <class Call>
auto retry_interrupted(const Call& call) {
    auto result = call();
    while (result < 0 && errno == EINTR) result = call();
    return result;
}

int open_for_writing(const std::string& path, OutputFile::Mode mode) {
    const int flags = O_WRONLY | O_CLOEXEC | (mode == OutputFile::Mode::create ? O_CREAT | O_TRUNC : 0);
    const int fd = retry_interrupted([&] { return ::open(path.c_str(), flags, 0666); });
    if (fd < 0) usage_error("cannot create ", path, ": ", std::strerror(errno));
    return fd;
}

}  // namespace

std::string folder_of(const std::string& path) {
    const std::string folder = fs::path(path).parent_path().string();
    return folder.empty() ? "." : folder;
}

std::optional<std::uint64_t> free_bytes(const std::string& path) {
    struct statvfs info {};
    if (statvfs(folder_of(path).c_str(), &info) != 0) return std::nullopt;
    return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
}

std::string human_bytes(std::uint64_t bytes) {
    constexpr const char* units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 999.5 && unit + 1 < std::size(units)) {
        value /= 1000;
        ++unit;
    }
    char text[32];
    std::snprintf(text, sizeof text, unit == 0 || value >= 99.95 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return text;
}

OutputFile::OutputFile(const std::string& path, Mode mode) : path_(path) {
    ignore_file_size_signal();
    fd_ = open_for_writing(path, mode);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), end_(other.end_), expected_(other.expected_) {}

OutputFile::~OutputFile() {
    if (fd_ >= 0) ::close(fd_);
}

void OutputFile::fail(const std::string& what, int error) const {
    std::string text = cat("cannot ", what, " ", path_, ": ", std::strerror(error));
    if (error == ENOSPC || error == EDQUOT) {
        if (expected_ > 0) text += cat("; the file needs ", human_bytes(expected_));
        if (const auto room = free_bytes(path_)) text += cat("; ", human_bytes(*room), " free there");
        text += error == EDQUOT ? "; raise the quota or choose another folder" : "; make room or choose another folder";
    } else if (error == EFBIG) {
        if (expected_ > 0) text += cat("; the file needs ", human_bytes(expected_));
        text += "; raise the file size limit (ulimit -f)";
    }
    throw UsageError(text);
}

void OutputFile::reserve(std::uint64_t bytes) {
    expected_ = bytes;
    if (bytes == 0) return;
    const auto size = static_cast<off_t>(bytes);
    if (retry_interrupted([&] { return ::fallocate(fd_, 0, 0, size); }) == 0) return;
    // Not every file system can: then the space is taken by the writes themselves.
    if (errno != EOPNOTSUPP && errno != ENOSYS && errno != ENODEV && errno != EINVAL) fail("reserve room for", errno);
    if (retry_interrupted([&] { return ::ftruncate(fd_, size); }) != 0 && errno != EINVAL) fail("resize", errno);
}

void OutputFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    constexpr std::size_t largest = std::size_t{1} << 30;  // the kernel takes a little less than 2 GiB at a time
    while (!bytes.empty()) {
        const ssize_t written = retry_interrupted(
            [&] { return ::pwrite(fd_, bytes.data(), std::min(bytes.size(), largest), static_cast<off_t>(offset)); });
        if (written <= 0) {
            if (expected_ == 0) expected_ = offset + bytes.size();
            fail("write to", written < 0 ? errno : ENOSPC);
        }
        offset += static_cast<std::uint64_t>(written);
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
}

void OutputFile::append(std::span<const std::byte> bytes) {
    write_at(end_, bytes);
    end_ += bytes.size();
}

void OutputFile::start_sync(std::uint64_t offset, std::uint64_t bytes) {
    (void)::sync_file_range(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
}

void OutputFile::sync() {
    if (retry_interrupted([&] { return ::fsync(fd_); }) != 0 && errno != EINVAL) fail("sync", errno);
}

void OutputFile::close() {
    if (fd_ < 0) return;
    if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) fail("close", errno);
}

DurableFile::DurableFile(const std::string& path)
    : path_(path), temporary_(cat(path, ".tmp-", ::getpid())), out_(temporary_, OutputFile::Mode::create) {}

DurableFile::~DurableFile() {
    if (!committed_) ::unlink(temporary_.c_str());
}

void DurableFile::commit() {
    out_.sync();
    out_.close();
    rename_durably(temporary_, path_);
    committed_ = true;
}

void write_file_durably(const std::string& path, std::string_view content) {
    DurableFile file(path);
    file.out().append(content);
    file.commit();
}

void rename_durably(const std::string& from, const std::string& to) {
    if (std::rename(from.c_str(), to.c_str()) != 0) {
        usage_error("cannot rename ", from, " to ", to, ": ", std::strerror(errno));
    }
    sync_folder(folder_of(to));
}

void sync_folder(const std::string& path) {
    const int fd = retry_interrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (fd < 0) usage_error("cannot open the folder ", path, ": ", std::strerror(errno));
    const int result = retry_interrupted([&] { return ::fsync(fd); });
    const int error = errno;
    ::close(fd);
    // Some network file systems know no sync of folders; there the rename is already durable or cannot be made so.
    if (result != 0 && error != EINVAL && error != ENOTSUP && error != EROFS) {
        usage_error("cannot sync the folder ", path, ": ", std::strerror(error));
    }
}

void make_folders(const std::string& path) {
    std::error_code error;
    fs::create_directories(path, error);
    if (error) usage_error("cannot create the folder ", path, ": ", error.message());
    if (!fs::is_directory(path, error)) usage_error(path, " is not a folder");
}

void remove_tree(const std::string& path) {
    std::error_code error;
    fs::remove_all(path, error);
    if (error) usage_error("cannot remove ", path, ": ", error.message());
}

}  // namespace tera
