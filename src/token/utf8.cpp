#include "token/utf8.h"

#include <bit>
#include <cstring>

#include "token/byte_masks.h"

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

namespace {

/// The characters that begin in 64 bytes at p and end in them: whether all are valid, and how many bytes they have.
struct BlockCheck {
    bool valid;
    unsigned size;
};

/// p is at the beginning of a character.
BlockCheck check_block(const char* p) {
    const Bytes64 bytes(p);
    const std::uint64_t multi = bytes.at_least(0x80);
    if (multi == 0) return {true, 64};
    const std::uint64_t lead = bytes.at_least(0xC0), three = bytes.at_least(0xE0), four = bytes.at_least(0xF0);
    const std::uint64_t wrong_count = (lead << 1 | three << 2 | four << 3) ^ (multi & ~lead);
    std::uint64_t wrong = wrong_count | bytes.at_least(0xF5) | bytes.equal(0xC0) | bytes.equal(0xC1);
    if (three != 0) {  // second bytes that would make it too long, a surrogate or beyond U+10FFFF
        const std::uint64_t from_a0 = bytes.at_least(0xA0), from_90 = bytes.at_least(0x90);
        wrong |= (bytes.equal(0xE0) << 1 & ~from_a0) | (bytes.equal(0xED) << 1 & from_a0);
        wrong |= (bytes.equal(0xF0) << 1 & ~from_90) | (bytes.equal(0xF4) << 1 & from_90);
    }
    // The last character may go on behind the block; then its beginning is looked at again with the next.
    const unsigned cut = lead >> 63 ? 1 : three >> 62 ? 2 : four >> 61 ? 3 : 0;
    const std::uint64_t seen =
        ~std::uint64_t{0} >> (cut == 0 ? 0 : cut - 1);  // its first byte still ends what is before
    return {(wrong & seen) == 0, 64 - cut};
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view text) {
    const char* p = text.data();
    const char* end = p + text.size();
    while (has_byte_masks && end - p >= 64) {
        const BlockCheck block = check_block(p);
        if (!block.valid) break;  // the loop below finds it
        p += block.size;
    }
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
    for (; has_byte_masks && text.size() >= 64; text.remove_prefix(64)) {
        const Bytes64 bytes(text.data());
        count += static_cast<std::size_t>(std::popcount(~bytes.at_least(0x80) | bytes.at_least(0xC0)));
    }
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
