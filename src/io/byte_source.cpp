#include "io/byte_source.h"

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "io/compressed_source.h"
#include "io/file_source.h"

namespace tera {

const char* packing_name(Packing packing) {
    switch (packing) {
        case Packing::plain:
            return "plain";
        case Packing::gzip:
            return "gzip";
        case Packing::zstd:
            return "zstd";
        case Packing::xz:
            return "xz";
        case Packing::bzip2:
            return "bzip2";
    }
    return "";
}

Packing packing_of(std::string_view beginning) {
    using namespace std::string_view_literals;
    if (beginning.starts_with("\x1F\x8B"sv)) return Packing::gzip;
    if (beginning.starts_with("\x28\xB5\x2F\xFD"sv)) return Packing::zstd;
    // A frame that zstd passes over may come first: 0x184D2A50 to 0x184D2A5F, little-endian.
    if (beginning.size() >= 4 && (beginning[0] & 0xF0) == 0x50 && beginning.substr(1, 3) == "\x2A\x4D\x18"sv)
        return Packing::zstd;
    if (beginning.starts_with("\xFD\x37\x7A\x58\x5A\x00"sv)) return Packing::xz;
    if (beginning.size() >= 10 && beginning.starts_with("BZh"sv) && beginning[3] >= '1' && beginning[3] <= '9' &&
        (beginning.substr(4, 6) == "1AY&SY"sv || beginning.substr(4, 6) == "\x17\x72\x45\x38\x50\x90"sv))
        return Packing::bzip2;
    return Packing::plain;
}

void ByteSource::skip_to(std::int64_t position) {
    TERA_CHECK(position >= this->position(), name(), ": ", position, " is behind ", this->position());
    std::vector<char> rest(std::size_t{1} << 18);
    while (this->position() < position) {
        const auto size = std::min<std::int64_t>(position - this->position(), static_cast<std::int64_t>(rest.size()));
        if (read({rest.data(), static_cast<std::size_t>(size)}) < static_cast<std::size_t>(size))
            usage_error(name(), ": ends at byte ", this->position(), " of its content, before ", position,
                        "; it has changed since the run that stopped");
    }
}

std::unique_ptr<ByteSource> open_bytes(const std::string& path, RestartPoint at) {
    auto file = std::make_unique<FileSource>(path);
    const Packing packing = packing_of(file->peek());
    file->seek(at.stored);
    if (packing != Packing::plain) return std::make_unique<CompressedSource>(std::move(file), packing, at.position);
    TERA_CHECK(at.stored == at.position, path, ": ", at.stored, " and ", at.position);
    return file;
}

}  // namespace tera
