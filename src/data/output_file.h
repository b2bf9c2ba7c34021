// A file being written under a temporary name: buffered, every error reported, gone unless it is committed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tera {

class OutputFile {
  public:
    /// Creates (or empties) the file and locks it; UsageError if that fails, or if another process is writing it.
    explicit OutputFile(std::string path);
    /// Deletes the file unless it was committed.
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    const std::string& path() const { return path_; }
    /// Bytes written so far.
    std::int64_t size() const { return flushed_ + static_cast<std::int64_t>(used_); }
    /// UsageError when the disk is full or fails.
    void write(const void* data, std::size_t size);
    /// Overwrites bytes already written.
    void write_at(std::int64_t position, const void* data, std::size_t size);
    /// Reads back bytes already written.
    void read_at(std::int64_t position, void* data, std::size_t size);
    /// Returns once all is on disk.
    void sync();
    /// sync(), then renames to its final name. sync_folder() makes the new name itself durable.
    void commit(const std::string& final_path);

  private:
    void flush();
    void put(std::int64_t position, const std::byte* data, std::size_t size);

    std::string path_;
    int fd_ = -1;
    bool committed_ = false;
    std::vector<std::byte> buffer_;
    std::size_t used_ = 0;
    std::int64_t flushed_ = 0;
};

/// Makes renames inside the folder of `path` durable.
void sync_folder(const std::string& path);

}  // namespace tera
