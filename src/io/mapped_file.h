// A whole file mapped read-only into memory: its pages are read when they are touched, and shared by all processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tera {

class MappedFile {
  public:
    enum class Access { normal, sequential, random };  // what the kernel should expect (read-ahead)

    MappedFile() = default;
    /// Maps the file. UsageError, naming the path and the cause, if it is missing, unreadable or not a regular file.
    /// An empty file gives an empty span.
    explicit MappedFile(const std::string& path, Access access = Access::normal);
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    const std::string& path() const { return path_; }
    std::span<const std::byte> bytes() const { return {data_, size_}; }
    const std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }
    /// Starts reading a range in one go where touching it would read page by page. Only a hint.
    void will_need(std::size_t offset, std::size_t size) const noexcept;

  private:
    void unmap() noexcept;

    std::string path_;
    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

/// Size in bytes of a regular file; the same UsageErrors as MappedFile, without opening it.
std::int64_t regular_file_size(const std::string& path);

}  // namespace tera
