#include "token/json_scan.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <vector>

#include "token/byte_masks.h"
#include "token/utf8.h"

namespace tera {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_plain(char c) { return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20; }

/// Whether any of 8 bytes is a quote, a backslash or a control character.
bool has_special(std::uint64_t word) {
    constexpr std::uint64_t ones = 0x0101010101010101, tops = 0x8080808080808080;
    const auto zero_byte = [](std::uint64_t v) { return (v - ones) & ~v & tops; };
    const std::uint64_t below_space = (word - ones * 0x20) & ~word & tops;
    return (zero_byte(word ^ ones * '"') | zero_byte(word ^ ones * '\\') | below_space) != 0;
}

/// What stands for the character behind a backslash; 0: not so simple.
char simple_escape(char kind) {
    switch (kind) {
        case '"':
        case '\\':
        case '/':
            return kind;
        case 'b':
            return '\b';
        case 'f':
            return '\f';
        case 'n':
            return '\n';
        case 'r':
            return '\r';
        case 't':
            return '\t';
        default:
            return '\0';
    }
}

}  // namespace

void JsonScanner::fail(const std::string& what) const { throw JsonSyntaxError(what, offset()); }

char JsonScanner::peek() {
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\t' || *p_ == '\n' || *p_ == '\r')) ++p_;
    return p_ < end_ ? *p_ : '\0';
}

bool JsonScanner::accept(char wanted) {
    if (peek() != wanted || p_ == end_) return false;
    ++p_;
    return true;
}

void JsonScanner::expect(char wanted, const char* what) {
    if (!accept(wanted))
        fail(std::string(p_ == end_ ? "text ends where " : "expected ") + what + (p_ == end_ ? " is expected" : ""));
}

void JsonScanner::expect_end() {
    peek();
    if (p_ != end_) fail("extra data after the value");
}

const char* JsonScanner::plain_run_end() const {
    const char* p = p_;
    while (has_byte_masks && end_ - p >= 64) {
        const Bytes64 bytes(p);
        const std::uint64_t special = bytes.equal('"') | bytes.equal('\\') | ~bytes.at_least(0x20);
        if (special != 0) return p + std::countr_zero(special);
        p += 64;
    }
    while (end_ - p >= 8) {
        std::uint64_t word;
        std::memcpy(&word, p, 8);
        if (has_special(word)) break;
        p += 8;
    }
    while (p < end_ && is_plain(*p)) ++p;
    return p;
}

/// Copies 64 bytes at a time as long as there are so many, up to what needs a closer look.
void JsonScanner::read_blocks(std::string& out) {
    std::size_t used = out.size();
    while (end_ - p_ >= 65) {
        if (out.size() - used < 64) out.resize(used + 512);
        const Bytes64 bytes(p_);
        const std::uint64_t special = bytes.equal('"') | bytes.equal('\\') | ~bytes.at_least(0x20);
        std::memcpy(out.data() + used, p_, 64);
        const auto plain = static_cast<std::size_t>(std::countr_zero(special));
        p_ += plain;
        used += plain;
        if (plain == 64) continue;
        const char escaped = *p_ == '\\' ? simple_escape(p_[1]) : '\0';
        if (escaped == '\0') break;
        out[used++] = escaped;
        p_ += 2;
    }
    out.resize(used);
}

bool JsonScanner::read_string(std::string& out) {
    expect('"', "a string");
    out.clear();
    bool has_lone_surrogate = false;
    for (;;) {
        if (has_byte_masks && p_ < end_ && *p_ != '\\') read_blocks(out);
        const char* run = plain_run_end();
        out.append(p_, static_cast<std::size_t>(run - p_));
        p_ = run;
        if (p_ == end_) fail("a string is not closed");
        if (*p_ == '"') {
            ++p_;
            return !has_lone_surrogate;
        }
        if (*p_ != '\\') fail("a control character inside a string");
        read_escape(out, has_lone_surrogate);
    }
}

std::uint32_t JsonScanner::read_hex4() {
    std::uint32_t value = 0;
    if (end_ - p_ < 4) fail("\\u needs four hexadecimal digits");
    for (int i = 0; i < 4; ++i, ++p_) {
        const char c = *p_;
        std::uint32_t digit = 0;
        if (is_digit(c))
            digit = static_cast<std::uint32_t>(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = static_cast<std::uint32_t>(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            digit = static_cast<std::uint32_t>(c - 'A' + 10);
        else
            fail("\\u needs four hexadecimal digits");
        value = value << 4 | digit;
    }
    return value;
}

void JsonScanner::read_escape(std::string& out, bool& has_lone_surrogate) {
    if (end_ - p_ < 2) fail("a string is not closed");
    const char kind = p_[1];
    p_ += 2;
    if (const char escaped = simple_escape(kind)) {
        out += escaped;
        return;
    }
    if (kind != 'u') {
        p_ -= 2;
        fail("an unknown escape inside a string");
    }
    std::uint32_t value = read_hex4();
    if (value >= 0xD800 && value < 0xDC00 && end_ - p_ >= 6 && p_[0] == '\\' && p_[1] == 'u') {
        const char* second = p_;
        p_ += 2;
        const std::uint32_t low = read_hex4();
        if (low >= 0xDC00 && low < 0xE000) {
            append_utf8(out, 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00));
            return;
        }
        p_ = second;
    }
    if (value >= 0xD800 && value < 0xE000) has_lone_surrogate = true;
    append_utf8(out, value);
}

void JsonScanner::skip_string() {
    ++p_;
    for (;;) {
        p_ = plain_run_end();
        if (p_ == end_) fail("a string is not closed");
        if (*p_ == '"') break;
        if (*p_ != '\\') fail("a control character inside a string");
        if (end_ - p_ < 2) fail("a string is not closed");
        if (p_[1] == 'u') {
            p_ += 2;
            read_hex4();
        } else if (std::strchr("\"\\/bfnrt", p_[1]) && p_[1] != '\0') {
            p_ += 2;
        } else {
            fail("an unknown escape inside a string");
        }
    }
    ++p_;
}

bool JsonScanner::accept_word(std::string_view word) {
    if (static_cast<std::size_t>(end_ - p_) < word.size() || std::string_view(p_, word.size()) != word) return false;
    p_ += word.size();
    return true;
}

void JsonScanner::skip_number() {
    const auto digits = [this] {
        const char* first = p_;
        while (p_ < end_ && is_digit(*p_)) ++p_;
        return p_ > first;
    };
    if (p_ < end_ && *p_ == '-') ++p_;
    if (accept_word("Infinity")) return;
    if (p_ < end_ && *p_ == '0')
        ++p_;
    else if (!digits())
        fail("expected a value");
    // Like Python, a dot or an exponent without digits ends the number before it; what follows is then extra data.
    const char* whole = p_;
    if (p_ < end_ && *p_ == '.') {
        ++p_;
        if (!digits()) p_ = whole;
    }
    const char* mantissa = p_;
    if (p_ < end_ && (*p_ == 'e' || *p_ == 'E')) {
        ++p_;
        if (p_ < end_ && (*p_ == '+' || *p_ == '-')) ++p_;
        if (!digits()) p_ = mantissa;
    }
}

std::int64_t JsonScanner::read_integer() {
    peek();
    const char* first = p_;
    skip_number();
    std::int64_t value = 0;
    const auto [stop, problem] = std::from_chars(first, p_, value);
    if (problem != std::errc() || stop != p_) {
        p_ = first;
        fail("expected an integer");
    }
    return value;
}

void JsonScanner::skip_value() {
    constexpr std::size_t max_depth = 1000;
    std::vector<char> closers;  // of the arrays and objects that are open
    const auto skip_key = [this] {
        if (peek() != '"') fail("expected a string as key");
        skip_string();
        expect(':', "':'");
    };
    for (;;) {
        const char c = peek();
        bool opened = false;
        if (c == '{' || c == '[') {
            ++p_;
            if (closers.size() == max_depth) fail("nested more than 1000 deep");
            closers.push_back(c == '{' ? '}' : ']');
            opened = true;
        } else if (c == '"') {
            skip_string();
        } else if (!accept_word("true") && !accept_word("false") && !accept_word("null") && !accept_word("NaN") &&
                   !accept_word("Infinity")) {
            if (p_ == end_) fail("text ends where a value is expected");
            skip_number();
        }
        while (!closers.empty()) {
            if (accept(closers.back())) {
                closers.pop_back();
                opened = false;
                continue;
            }
            if (!opened) expect(',', closers.back() == '}' ? "',' or '}'" : "',' or ']'");
            if (closers.back() == '}') skip_key();
            break;
        }
        if (closers.empty()) return;
    }
}

std::string json_string(std::string_view text) {
    static constexpr char hex[] = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (c == '\n') {
            out += "\\n";
        } else if (byte < 0x20) {
            out += "\\u00";
            out += hex[byte >> 4];
            out += hex[byte & 15];
        } else {
            out += c;
        }
    }
    return out + '"';
}

}  // namespace tera
