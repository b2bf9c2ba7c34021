#include "core/error.h"

#include <string_view>

namespace tera {

std::string one_line(const std::string& text) {
    std::string out;
    for (char c : text) {
        auto byte = static_cast<unsigned char>(c);
        if (c == '\n') {
            out += "\\n";
        } else if (byte < 0x20 || byte == 0x7f) {
            constexpr const char* digits = "0123456789abcdef";
            out += "\\x";
            out += digits[byte >> 4];
            out += digits[byte & 15];
        } else {
            out += c;
        }
    }
    return out;
}

void contract_failed(const char* file, int line, const char* expression, const std::string& values) {
    std::string_view path = file;
    if (auto at = path.rfind("/src/"); at != path.npos) path.remove_prefix(at + 1);
    std::string text = cat(path, ":", line, ": broken contract: ", expression);
    if (!values.empty()) text += cat(" (", values, ")");
    throw Error(text);
}

}  // namespace tera
