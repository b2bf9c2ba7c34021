// A temporary file written from front to back through a buffer. It is deleted in the end unless it was renamed or is
// to be kept; a killed program leaves it too, and the next run can go on with its beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/durable_file.h"

namespace tera {

/// Holds a file against other processes of this program. UsageError if another holds it.
class FileLock {
  public:
    explicit FileLock(const std::string& path);
    ~FileLock();
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;

  private:
    int fd_;
};

class BufferedOutput {
  public:
    explicit BufferedOutput(std::string path);
    /// Goes on behind the first `keep` bytes of the file that a killed program left; it has at least so many.
    BufferedOutput(std::string path, std::int64_t keep);
    ~BufferedOutput();
    BufferedOutput(const BufferedOutput&) = delete;
    BufferedOutput& operator=(const BufferedOutput&) = delete;

    const std::string& path() const { return path_; }
    /// Bytes written so far.
    std::int64_t size() const { return size_; }
    void write(const void* data, std::size_t size);
    /// Room for the next `size` bytes (at most most_room), which are to be filled before the next call.
    std::byte* write_room(std::size_t size);
    static constexpr std::size_t most_room = std::size_t{1} << 20;
    /// After this all that was written can be read from the file.
    void flush();
    /// Replaces the first bytes.
    void overwrite_front(const void* data, std::size_t size);
    /// Returns once all is on disk.
    void sync();
    /// The file stays as it is when this is destroyed.
    void keep_unfinished() { kept_ = true; }
    /// Gives a synced file its name.
    void rename_to(const std::string& final_path);

  private:
    FileLock lock_;
    std::string path_;
    OutputFile file_;
    std::vector<std::byte> buffer_;
    std::size_t used_ = 0;
    std::int64_t size_ = 0;     // in all
    std::int64_t flushed_ = 0;  // of those, in the file
    std::int64_t started_ = 0;  // of those, on their way to the disk
    bool renamed_ = false, kept_ = false;
};

}  // namespace tera
