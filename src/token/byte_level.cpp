#include "token/byte_level.h"

#include <array>

#include "token/utf8.h"

namespace tera {

namespace {

constexpr bool stands_for_itself(int byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
    std::array<std::uint16_t, 256> of_byte{};
    std::array<std::int16_t, 256 + 68> of_code{};
};

constexpr Alphabet make_alphabet() {
    Alphabet alphabet;
    for (auto& byte : alphabet.of_code) byte = -1;
    int next = 256;
    for (int byte = 0; byte < 256; ++byte) {
        const int code = stands_for_itself(byte) ? byte : next++;
        alphabet.of_byte[byte] = static_cast<std::uint16_t>(code);
        alphabet.of_code[code] = static_cast<std::int16_t>(byte);
    }
    return alphabet;
}

constexpr Alphabet alphabet = make_alphabet();

}  // namespace

std::uint32_t byte_to_code_point(std::uint8_t byte) { return alphabet.of_byte[byte]; }

int code_point_to_byte(std::uint32_t code_point) {
    return code_point < alphabet.of_code.size() ? alphabet.of_code[code_point] : -1;
}

std::string to_printable(std::string_view bytes) {
    std::string token;
    token.reserve(bytes.size() * 2);
    for (const char c : bytes) append_utf8(token, byte_to_code_point(static_cast<std::uint8_t>(c)));
    return token;
}

std::string from_printable(std::string_view token) {
    std::string bytes;
    const char* end = token.data() + token.size();
    for (const char* p = token.data(); p < end;) {
        const CodePoint code = decode_utf8(p, end);
        const int byte = code_point_to_byte(code.value);
        if (byte >= 0)
            bytes += static_cast<char>(byte);
        else
            bytes.append(p, code.bytes);
        p += code.bytes;
    }
    return bytes;
}

bool is_printable(std::string_view token) {
    const char* end = token.data() + token.size();
    for (const char* p = token.data(); p < end;) {
        const CodePoint code = decode_utf8(p, end);
        if (code_point_to_byte(code.value) < 0) return false;
        p += code.bytes;
    }
    return true;
}

}  // namespace tera
