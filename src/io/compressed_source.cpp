#include "io/compressed_source.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace tera {
namespace {

constexpr std::size_t buffer_size = std::size_t{1} << 18;
constexpr std::size_t magic_size = 16;

}  // namespace

CompressedSource::CompressedSource(std::unique_ptr<FileSource> file, Packing packing, std::int64_t position)
    : file_(std::move(file)),
      packing_(packing),
      decoder_(make_decoder(packing)),
      buffer_(buffer_size),
      taken_(file_->position()),
      position_(position),
      member_{taken_, position} {}

/// Moves what is left to the front and reads more behind it. False at the end of the file.
bool CompressedSource::refill() {
    if (file_ended_) return false;
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    const std::size_t got = file_->read({buffer_.data() + end_, buffer_.size() - end_});
    file_ended_ = got < buffer_.size() - end_;
    end_ += got;
    return got > 0;
}

void CompressedSource::fail_damaged(const char* why) const {
    usage_error(name(), ": damaged ", packing_name(packing_), " data at or before byte ", taken_, ": ", why);
}

/// Behind a member: the next one, or zeros that fill a tape block, or the end.
bool CompressedSource::begin_next_member() {
    for (;;) {
        while (begin_ < end_ && buffer_[begin_] == '\0' && packing_ != Packing::zstd) {
            ++begin_;
            ++taken_;
        }
        if (end_ - begin_ >= magic_size || !refill()) break;
    }
    if (begin_ == end_) return false;
    const std::string_view next(buffer_.data() + begin_, std::min(magic_size, end_ - begin_));
    if (packing_of(next) != packing_)
        usage_error(name(), ": byte ", taken_, ": the ", packing_name(packing_),
                    " data is followed by something else; was it joined to another file or damaged?");
    decoder_->restart();
    member_ = {taken_, position_};
    inside_member_ = true;
    return true;
}

std::size_t CompressedSource::read(std::span<char> out) {
    std::size_t made = 0;
    while (made < out.size()) {
        if (!inside_member_ && !begin_next_member()) break;
        if (begin_ == end_) refill();
        const Decoder::Step step = decoder_->decode({buffer_.data() + begin_, end_ - begin_}, out.subspan(made));
        begin_ += step.taken;
        taken_ += static_cast<std::int64_t>(step.taken);
        made += step.made;
        position_ += static_cast<std::int64_t>(step.made);
        if (step.problem != nullptr) fail_damaged(step.problem);
        if (step.member_ended) {
            inside_member_ = false;
        } else if (step.taken == 0 && step.made == 0 && begin_ == end_ && file_ended_) {
            usage_error(name(), ": the ", packing_name(packing_), " data ends in the middle, at byte ", taken_,
                        "; the file is cut short");
        } else if (step.taken == 0 && step.made == 0 && begin_ < end_) {
            fail_damaged("invalid data");  // a decoder that takes nothing of what it has would never end
        }
    }
    return made;
}

}  // namespace tera
