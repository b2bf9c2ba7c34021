// The printable alphabet in which byte-level BPE files write bytes: 0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF stand for
// themselves, the other 68 bytes in increasing order are U+0100, U+0101, ... (a space is U+0120, "Ġ").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tera {

/// Code point that stands for the byte.
std::uint32_t byte_to_code_point(std::uint8_t byte);

/// Byte that the code point stands for, or -1.
int code_point_to_byte(std::uint32_t code_point);

/// Bytes to their printable form, in UTF-8.
std::string to_printable(std::string_view bytes);

/// The bytes a printable token stands for; a character outside the alphabet stands for its own UTF-8 bytes (special
/// tokens may hold any text).
std::string from_printable(std::string_view token);

/// Whether all characters are of the alphabet.
bool is_printable(std::string_view token);

}  // namespace tera
