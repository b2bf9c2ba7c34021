#include "io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace tera {
namespace {

[[noreturn]] void cannot_open(const std::string& path, int error) {
    if (error == ENOENT) usage_error("cannot open ", path, ": no such file; check the path");
    if (error == EACCES) usage_error("cannot open ", path, ": permission denied; check its owner and mode");
    if (error == EMFILE || error == ENFILE)
        usage_error("cannot open ", path, ": too many open files; raise the limit (ulimit -n)");
    usage_error("cannot open ", path, ": ", std::strerror(error));
}

void require_regular(const std::string& path, const struct stat& info) {
    if (S_ISDIR(info.st_mode)) usage_error("cannot read ", path, ": it is a folder, a file is needed");
    if (!S_ISREG(info.st_mode)) usage_error("cannot read ", path, ": it is not a regular file");
}

class Descriptor {
  public:
    explicit Descriptor(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
        if (fd_ < 0) cannot_open(path, errno);
    }
    ~Descriptor() { ::close(fd_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return fd_; }

  private:
    int fd_;
};

}  // namespace

MappedFile::MappedFile(const std::string& path, Access access) : path_(path) {
    const Descriptor file(path);
    struct stat info {};
    if (::fstat(file.get(), &info) != 0) cannot_open(path, errno);
    require_regular(path, info);
    size_ = static_cast<std::size_t>(info.st_size);
    if (size_ == 0) return;
    void* address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
    if (address == MAP_FAILED) {
        size_ = 0;
        if (errno == ENOMEM)
            usage_error("cannot map ", path, ": out of address space or mappings; raise vm.max_map_count or ulimit -v");
        usage_error("cannot map ", path, ": ", std::strerror(errno));
    }
    data_ = static_cast<const std::byte*>(address);
    if (access == Access::sequential) ::madvise(address, size_, MADV_SEQUENTIAL);
    if (access == Access::random) ::madvise(address, size_, MADV_RANDOM);
}

MappedFile::~MappedFile() { unmap(); }

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    if (this != &other) {
        unmap();
        path_ = std::move(other.path_);
        data_ = std::exchange(other.data_, nullptr);
        size_ = std::exchange(other.size_, 0);
    }
    return *this;
}

void MappedFile::will_need(std::size_t offset, std::size_t size) const noexcept {
    static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t begin = offset / page * page, end = offset + size;
    if (end > size_ || end - begin <= page) return;
    ::madvise(const_cast<std::byte*>(data_ + begin), end - begin, MADV_WILLNEED);
}

void MappedFile::unmap() noexcept {
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
    data_ = nullptr;
    size_ = 0;
}

std::int64_t regular_file_size(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) cannot_open(path, errno);
    require_regular(path, info);
    return info.st_size;
}

}  // namespace tera
