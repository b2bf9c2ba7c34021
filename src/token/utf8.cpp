#include "token/utf8.h"

#include <cstring>

namespace tera {

void append_utf8(std::string& out, std::uint32_t value) {
    const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
    if (value < 0x80) {
        put(value);
    } else if (value < 0x800) {
        put(0xC0 | value >> 6);
        put(0x80 | (value & 0x3F));
    } else if (value < 0x10000) {
        put(0xE0 | value >> 12);
        put(0x80 | (value >> 6 & 0x3F));
        put(0x80 | (value & 0x3F));
    } else {
        put(0xF0 | value >> 18);
        put(0x80 | (value >> 12 & 0x3F));
        put(0x80 | (value >> 6 & 0x3F));
        put(0x80 | (value & 0x3F));
    }
}

std::size_t find_invalid_utf8(std::string_view text) {
    const char* p = text.data();
    const char* end = p + text.size();
    while (p < end) {
        std::uint64_t word = 0;
        while (end - p >= 8) {
            std::memcpy(&word, p, 8);
            if (word & 0x8080808080808080) break;
            p += 8;
        }
        if (p == end) break;
        const CodePoint code = decode_utf8(p, end);
        if (code.value == CodePoint::invalid) return static_cast<std::size_t>(p - text.data());
        p += code.bytes;
    }
    return std::string_view::npos;
}

std::size_t count_utf8(std::string_view text) {
    std::size_t count = 0;
    for (const char c : text) count += (c & 0xC0) != 0x80;
    return count;
}

namespace {

/// Length of the longest prefix at p that could begin a character but does not complete one.
std::size_t broken_length(const char* p, const char* end) {
    const auto byte = [p](std::ptrdiff_t i) { return static_cast<unsigned char>(p[i]); };
    const unsigned first = byte(0);
    if (first < 0xC2 || first > 0xF4) return 1;
    const std::ptrdiff_t wanted = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    unsigned low = 0x80, high = 0xBF;  // the second byte's range excludes overlong forms and surrogates
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
    if (end - p < 2 || byte(1) < low || byte(1) > high) return 1;
    std::ptrdiff_t length = 2;
    while (length < wanted && p + length < end && (byte(length) & 0xC0) == 0x80) ++length;
    return static_cast<std::size_t>(length);
}

}  // namespace

std::string replace_invalid_utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    const char* end = text.data() + text.size();
    while (!text.empty()) {
        const std::size_t bad = find_invalid_utf8(text);
        out.append(text.substr(0, bad));
        if (bad == std::string_view::npos) break;
        out += "\xEF\xBF\xBD";
        text.remove_prefix(bad + broken_length(text.data() + bad, end));
    }
    return out;
}

}  // namespace tera
