// Reads JSON text from front to back without building a tree, as Python's json module would: NaN, Infinity and
// -Infinity are numbers, control characters inside strings are errors, blanks are space, \t, \n and \r.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tera {

/// What is wrong and at which byte of the text; callers add the file and line.
class JsonSyntaxError : public std::runtime_error {
  public:
    JsonSyntaxError(const std::string& what, std::size_t offset) : std::runtime_error(what), offset_(offset) {}
    std::size_t offset() const { return offset_; }

  private:
    std::size_t offset_;
};

class JsonScanner {
  public:
    /// `text` must stay alive, and be valid UTF-8 where that matters to the caller (not checked here).
    explicit JsonScanner(std::string_view text)
        : begin_(text.data()), p_(text.data()), end_(text.data() + text.size()) {}

    /// The next character that is not blank, or '\0' at the end of the text.
    char peek();
    /// Consumes `wanted` if it is next.
    bool accept(char wanted);
    /// Consumes `wanted`, or fails with `what` expected.
    void expect(char wanted, const char* what);
    /// Nothing but blanks may be left.
    void expect_end();

    /// Reads a string, replacing the contents of `out`. Returns false if it holds a lone surrogate escape (kept in
    /// `out` as three bytes that are not valid UTF-8).
    bool read_string(std::string& out);
    /// Reads a number that must be an integer of 64 bits.
    std::int64_t read_integer();
    /// Checks and passes over one value of any kind, nested at most 1000 deep.
    void skip_value();

    std::size_t offset() const { return static_cast<std::size_t>(p_ - begin_); }
    [[noreturn]] void fail(const std::string& what) const;

  private:
    void skip_string();
    void skip_number();
    bool accept_word(std::string_view word);
    const char* plain_run_end() const;
    void read_blocks(std::string& out);
    void read_escape(std::string& out, bool& has_lone_surrogate);
    std::uint32_t read_hex4();

    const char* begin_;
    const char* p_;
    const char* end_;
};

/// The text as a JSON string with its quotes; characters beyond ASCII stay as they are.
std::string json_string(std::string_view text);

}  // namespace tera
