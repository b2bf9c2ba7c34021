#include "token/pretokenize.h"

#include "token/utf8.h"

namespace tera {

namespace {

struct Char {
    CharClass char_class;
    std::uint32_t bytes;
};

inline Char char_at(const char* p, const char* end, const CharClassTable& table) {
    const std::uint8_t first = table.first_byte()[static_cast<unsigned char>(*p)];
    if (first != CharClassTable::multi) return {static_cast<CharClass>(first), 1};
    const CodePoint code = decode_utf8(p, end);
    if (code.value == CodePoint::invalid) return {CharClass::other, 1};
    return {table(code.value), code.bytes};
}

/// End of the run of characters of one class that begins at p.
inline const char* run_end(const char* p, const char* end, CharClass wanted, const CharClassTable& table) {
    const auto& first_byte = table.first_byte();
    const auto wanted_byte = static_cast<std::uint8_t>(wanted);
    while (p < end) {
        const std::uint8_t first = first_byte[static_cast<unsigned char>(*p)];
        if (first == wanted_byte) {
            ++p;
            continue;
        }
        if (first != CharClassTable::multi) return p;
        const Char next = char_at(p, end, table);
        if (next.char_class != wanted) return p;
        p += next.bytes;
    }
    return p;
}

/// Length of the contraction ('s 't 're 've 'm 'll 'd) whose apostrophe is at p, or 0.
inline int contraction(const char* p, const char* end) {
    if (end - p < 2) return 0;
    switch (p[1]) {
        case 's':
        case 't':
        case 'm':
        case 'd':
            return 2;
        case 'r':
        case 'v':
            return end - p > 2 && p[2] == 'e' ? 3 : 0;
        case 'l':
            return end - p > 2 && p[2] == 'l' ? 3 : 0;
        default:
            return 0;
    }
}

/// p is at a space character. A run of spaces gives its last one to what follows: to the next piece if it is U+0020,
/// else it stands alone.
const char* space_piece_end(const char* p, const char* end, const CharClassTable& table) {
    const char* last = p;
    const char* q = p;
    while (q < end) {
        const Char c = char_at(q, end, table);
        if (c.char_class != CharClass::space) break;
        last = q;
        q += c.bytes;
    }
    if (q == end || last == p) return q;
    return last;
}

}  // namespace

const char* gpt2_piece_end(const char* p, const char* end, const CharClassTable& table) {
    const char* body = p;
    if (*p == ' ' && p + 1 < end) ++body;
    const Char c = char_at(body, end, table);
    if (c.char_class == CharClass::space) return space_piece_end(p, end, table);
    if (*p == '\'') {
        if (const int length = contraction(p, end)) return p + length;
    }
    return run_end(body + c.bytes, end, c.char_class, table);
}

}  // namespace tera
