#include "data/python_text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace tera {

std::string python_repr(double value) {
    char text[400];
    char* const end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed).ptr;
    const std::string out(text, end);
    return out.find_first_of(".n") == std::string::npos ? out + ".0" : out;
}

std::string python_repr(std::string_view text) {
    const bool single = text.find('\'') == std::string_view::npos || text.find('"') != std::string_view::npos;
    const char quote = single ? '\'' : '"';
    std::string out(1, quote);
    for (const char c : text) {
        if (c == quote || c == '\\') out += '\\';
        if (c == '\n' || c == '\r' || c == '\t') {
            out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
            char hex[8];
            std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned>(c));
            out += hex;
        } else {
            out += c;
        }
    }
    return out + quote;
}

std::string python_repr(const std::vector<std::int64_t>& values) {
    std::string out = "[";
    for (const std::int64_t value : values) out += (out.size() > 1 ? ", " : "") + std::to_string(value);
    return out + "]";
}

std::string python_repr(std::vector<std::pair<std::string, double>> entries) {
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::string out = "{";
    for (const auto& [key, value] : entries)
        out += (out.size() > 1 ? ", " : "") + python_repr(key) + ": " + python_repr(value);
    return out + "}";
}

double python_round(double value, int digits) {
    char text[400];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return std::strtod(text, nullptr);
}

}  // namespace tera
