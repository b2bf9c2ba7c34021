// From a text file to blocks of whole lines, and from a line of JSON to the strings under chosen keys.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/byte_source.h"

namespace tera {

/// Cuts a file, packed or not, into blocks that end with a line, reading it once from front to back. Lines end at \n,
/// \r\n or a lone \r; the last line needs no end.
class LineBlockReader {
  public:
    /// "-" is standard input. Begins at byte `position` of the content, which is found from `restart` on. UsageError if
    /// the file cannot be opened, or is of a kind that has no lines (Parquet, zip).
    explicit LineBlockReader(std::string path, std::size_t block_bytes = std::size_t{1} << 20,
                             RestartPoint restart = {}, std::int64_t position = 0);

    /// Replaces `block` with the next whole lines, about block_bytes of them; false at the end of the file. UsageError
    /// for damaged compressed data and for a line of more than 1 GiB.
    bool next(std::string& block);

    /// Of the first line not handed out: its byte in the content, and where to begin reading to get there.
    std::int64_t position() const { return source_->position() - static_cast<std::int64_t>(rest_.size()); }
    RestartPoint restart_point() const;
    /// Bytes of the file read so far, and in all (0 if it is not a regular file).
    std::int64_t stored_position() const { return source_->stored_position(); }
    std::int64_t stored_size() const { return source_->stored_size(); }

  private:
    void fill(std::string& block);
    void note_restart(std::int64_t first_needed);
    void check_kind(std::string_view beginning) const;

    std::string path_;
    std::size_t block_bytes_;
    std::unique_ptr<ByteSource> source_;
    bool at_end_ = false;
    bool is_first_ = true;
    std::string rest_;                    // read, but behind the last line end
    std::vector<RestartPoint> restarts_;  // of packed files: where members begin, rising
};

/// Takes the next line off `rest`, with its line end; what is passed on ends before it.
struct Line {
    std::string_view text;  // without its end
    std::string_view raw;   // with it
};
Line take_line(std::string_view& rest);

/// The strings under some keys of one JSON object.
class KeyedStrings {
  public:
    explicit KeyedStrings(std::vector<std::string> keys);

    /// Reads one line. UsageError saying what is wrong, with the byte in the line where it can be told: not valid
    /// UTF-8 or JSON, not an object, a key missing, a value that is neither a string nor a list of strings.
    void parse(std::string_view line);
    const std::vector<std::string>& keys() const { return keys_; }
    /// What is under keys()[k]: one string, or those of a list.
    const std::vector<std::string>& strings(std::size_t k) const { return values_[k].strings; }

  private:
    struct Value {
        std::vector<std::string> strings;
        std::string problem;  // why it gives no strings
        bool found = false;
    };
    void parse_object(std::string_view line);
    void parse_value(class JsonScanner& json, std::size_t k);

    std::vector<std::string> keys_;
    std::vector<Value> values_;
    std::string key_;
};

}  // namespace tera
