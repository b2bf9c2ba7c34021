#include "data/preprocess_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "token/json_scan.h"
#include "token/utf8.h"

namespace tera {

namespace {

struct ForeignKind {
    std::string_view magic;
    const char* name;
};
constexpr std::array<ForeignKind, 6> foreign_kinds = {{
    {{"\x1f\x8b", 2}, "gzip"},
    {{"\x28\xb5\x2f\xfd", 4}, "zstd"},
    {{"\xfd"
      "7zXZ",
      5},
     "xz"},
    {{"BZh", 3}, "bzip2"},
    {{"PAR1", 4}, "Parquet"},
    {{"PK\x03\x04", 4}, "zip"},
}};

/// Length of the beginning of `text` that consists of whole lines; a \r at the very end may still be half of a \r\n.
std::size_t whole_lines(std::string_view text) {
    const std::size_t newline = text.rfind('\n');
    if (newline != std::string_view::npos) return newline + 1;
    const std::size_t lone = text.substr(0, text.empty() ? 0 : text.size() - 1).rfind('\r');
    return lone == std::string_view::npos ? 0 : lone + 1;
}

}  // namespace

LineBlockReader::LineBlockReader(std::string path, std::size_t block_bytes)
    : path_(std::move(path)), block_bytes_(block_bytes) {
    fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) usage_error("--input ", path_, ": cannot be opened: ", std::strerror(errno));
    struct stat info {};
    const bool known = ::fstat(fd_, &info) == 0;
    if (known && S_ISDIR(info.st_mode)) {
        ::close(fd_);
        usage_error("--input ", path_, ": is a folder; give a file of JSON lines");
    }
    if (known && S_ISREG(info.st_mode)) file_size_ = info.st_size;
    ::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
}

LineBlockReader::~LineBlockReader() {
    if (fd_ >= 0) ::close(fd_);
}

void LineBlockReader::check_kind(std::string_view beginning) const {
    for (const auto& [magic, name] : foreign_kinds) {
        if (beginning.starts_with(magic))
            usage_error("--input ", path_, ": is ", name, " data, which is not read yet; give plain JSON lines");
    }
}

/// Reads on until `block` holds one line end past block_bytes_, or the file ends.
bool LineBlockReader::fill(std::string& block) {
    const std::size_t before = block.size();
    block.resize(before + block_bytes_);
    std::size_t got = 0;
    while (got < block_bytes_) {
        const ssize_t n = ::read(fd_, block.data() + before + got, block_bytes_ - got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) usage_error("--input ", path_, ": cannot be read: ", std::strerror(errno));
        if (n == 0) {
            at_end_ = true;
            break;
        }
        got += static_cast<std::size_t>(n);
    }
    block.resize(before + got);
    return got > 0;
}

bool LineBlockReader::next(std::string& block) {
    block.clear();
    block.swap(rest_);
    std::size_t lines = 0;
    while (!at_end_) {
        // Only the newly read part can hold a line end, but for a \r whose neighbour was not known.
        const std::size_t searched = block.empty() ? 0 : block.size() - 1;
        fill(block);
        if (is_first_) check_kind(block);
        is_first_ = false;
        lines = whole_lines(std::string_view(block).substr(searched));
        if (lines > 0) {
            lines += searched;
            break;
        }
    }
    if (at_end_) lines = block.size();
    rest_.assign(block, lines);
    block.resize(lines);
    return !block.empty();
}

Line take_line(std::string_view& rest) {
    // memchr is far quicker than looking for two characters at once, and \r is rare.
    const auto* newline = static_cast<const char*>(std::memchr(rest.data(), '\n', rest.size()));
    std::size_t length = newline ? static_cast<std::size_t>(newline - rest.data()) : rest.size();
    std::size_t end_length = newline ? 1 : 0;
    const auto* carriage = static_cast<const char*>(std::memchr(rest.data(), '\r', length));
    if (carriage) {
        const auto at = static_cast<std::size_t>(carriage - rest.data());
        end_length = at + 1 == length && newline ? 2 : 1;
        length = at;
    }
    const Line line{rest.substr(0, length), rest.substr(0, length + end_length)};
    rest.remove_prefix(line.raw.size());
    return line;
}

KeyedStrings::KeyedStrings(std::vector<std::string> keys) : keys_(std::move(keys)), values_(keys_.size()) {}

void KeyedStrings::parse(std::string_view line) {
    if (line.starts_with("\xEF\xBB\xBF")) usage_error("begins with a byte-order mark; remove it");
    const std::size_t bad = find_invalid_utf8(line);
    if (bad != std::string_view::npos) usage_error("byte ", bad, " is not valid UTF-8");
    if (line.find_first_not_of(" \t") == std::string_view::npos)
        usage_error("is blank; every line must be one JSON object");
    for (Value& value : values_) value.found = false;
    try {
        parse_object(line);
    } catch (const JsonSyntaxError& error) {
        usage_error("invalid JSON at byte ", error.offset(), ": ", error.what());
    }
    for (std::size_t k = 0; k < keys_.size(); ++k) {
        if (!values_[k].found) usage_error("has no key \"", keys_[k], "\"; choose the key with --json-keys");
    }
}

void KeyedStrings::parse_object(std::string_view line) {
    JsonScanner json(line);
    if (json.peek() != '{') {
        json.skip_value();
        usage_error("is not a JSON object");
    }
    json.expect('{', "'{'");
    if (!json.accept('}')) {
        do {
            json.read_string(key_);
            json.expect(':', "':'");
            std::size_t k = 0;
            while (k < keys_.size() && keys_[k] != key_) ++k;
            if (k < keys_.size())
                parse_value(json, k);
            else
                json.skip_value();
        } while (json.accept(','));
        json.expect('}', "',' or '}'");
    }
    json.expect_end();
}

void KeyedStrings::parse_value(JsonScanner& json, std::size_t k) {
    Value& value = values_[k];  // a repeated key takes the last value
    value.found = true;
    std::size_t count = 0;
    const auto read_one = [&] {
        if (json.peek() != '"')
            usage_error("the value of \"", keys_[k], "\" is neither a string nor a list of strings (byte ",
                        json.offset(), ")");
        if (count == value.strings.size()) value.strings.emplace_back();
        if (!json.read_string(value.strings[count++]))
            usage_error("the value of \"", keys_[k], "\" holds a lone surrogate escape before byte ", json.offset());
    };
    if (json.accept('[')) {
        if (!json.accept(']')) {
            do read_one();
            while (json.accept(','));
            json.expect(']', "',' or ']'");
        }
    } else {
        read_one();
    }
    value.strings.resize(count);
}

}  // namespace tera
