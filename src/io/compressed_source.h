// The content of a compressed file: all its members, one after the other.
#pragma once

#include <vector>

#include "io/decoder.h"
#include "io/file_source.h"

namespace tera {

class CompressedSource : public ByteSource {
  public:
    /// `file` stands at the beginning of a member; `position` is the byte of the content that is found there.
    CompressedSource(std::unique_ptr<FileSource> file, Packing packing, std::int64_t position);

    std::size_t read(std::span<char> out) override;
    std::int64_t position() const override { return position_; }
    std::int64_t stored_position() const override { return taken_; }
    std::int64_t stored_size() const override { return file_->stored_size(); }
    RestartPoint restart_point() const override { return member_; }
    Packing packing() const override { return packing_; }
    const std::string& name() const override { return file_->name(); }

  private:
    bool refill();
    bool begin_next_member();
    [[noreturn]] void fail_damaged(const char* why) const;

    std::unique_ptr<FileSource> file_;
    Packing packing_;
    std::unique_ptr<Decoder> decoder_;
    std::vector<char> buffer_;
    std::size_t begin_ = 0, end_ = 0;        // what of the buffer is not decoded yet
    std::int64_t taken_ = 0, position_ = 0;  // bytes of the file decoded, bytes of content made
    RestartPoint member_;
    bool inside_member_ = true, file_ended_ = false;
};

}  // namespace tera
