// From a text file to blocks of whole lines, and from a line of JSON to the strings under chosen keys.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tera {

/// Cuts a file into blocks that end with a line, reading it once from front to back. Lines end at \n, \r\n or a lone
/// \r; the last line needs no end.
class LineBlockReader {
  public:
    /// UsageError if the file cannot be opened, or is of a kind that is not read (compressed, Parquet).
    explicit LineBlockReader(std::string path, std::size_t block_bytes = std::size_t{1} << 20);
    ~LineBlockReader();
    LineBlockReader(const LineBlockReader&) = delete;
    LineBlockReader& operator=(const LineBlockReader&) = delete;

    /// Replaces `block` with the next whole lines, about block_bytes of them; false at the end of the file.
    bool next(std::string& block);
    /// Bytes of the whole file, 0 if it is not a regular file.
    std::int64_t file_size() const { return file_size_; }

  private:
    bool fill(std::string& block);
    void check_kind(std::string_view beginning) const;

    std::string path_;
    std::size_t block_bytes_;
    int fd_ = -1;
    bool at_end_ = false;
    bool is_first_ = true;
    std::int64_t file_size_ = 0;
    std::string rest_;  // read, but behind the last line end
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
        bool found = false;
    };
    void parse_object(std::string_view line);
    void parse_value(class JsonScanner& json, std::size_t k);

    std::vector<std::string> keys_;
    std::vector<Value> values_;
    std::string key_;
};

}  // namespace tera
