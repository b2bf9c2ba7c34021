// MD5 (RFC 1321): names Megatron's cache files. Not for security.
#pragma once

#include <string>
#include <string_view>

namespace tera {

/// 32 lower-case hexadecimal digits.
std::string md5_hex(std::string_view text);

}  // namespace tera
