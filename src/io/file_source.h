// The bytes of a file or a pipe as they are stored.
#pragma once

#include "io/byte_source.h"

namespace tera {

class FileSource : public ByteSource {
  public:
    /// "-" is standard input. UsageError if it cannot be opened or is a folder.
    explicit FileSource(const std::string& path);
    ~FileSource() override;

    std::size_t read(std::span<char> out) override;
    std::int64_t position() const override { return position_; }
    std::int64_t stored_position() const override { return position_; }
    std::int64_t stored_size() const override { return size_; }
    RestartPoint restart_point() const override { return {position_, position_}; }
    Packing packing() const override { return Packing::plain; }
    const std::string& name() const override { return name_; }

    /// The next bytes without taking them, at most 16; fewer at the end.
    std::string_view peek();
    /// Goes to a byte of the file; in a pipe, only forward.
    void seek(std::int64_t position);

  private:
    std::size_t read_stored(char* out, std::size_t size);

    std::string name_;
    int fd_ = -1;
    bool owns_fd_ = true;
    std::int64_t position_ = 0, size_ = 0;
    std::string peeked_;  // read but not taken
};

}  // namespace tera
