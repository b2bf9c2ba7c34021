#include "train/format_text.h"

#include <cstdarg>
#include <cstdio>

namespace tera {

std::string format_text(const char* format, ...) {
    std::va_list first, second;
    va_start(first, format);
    va_copy(second, first);
    const int length = std::vsnprintf(nullptr, 0, format, first);
    va_end(first);
    std::string text(static_cast<std::size_t>(length > 0 ? length : 0), '\0');
    std::vsnprintf(text.data(), text.size() + 1, format, second);
    va_end(second);
    for (const char* nan : {"-nan", "-NAN"})  // Python's has no sign
        for (std::size_t at; (at = text.find(nan)) != std::string::npos;) text.erase(at, 1);
    return text;
}

std::string size_text(double bytes) {
    if (bytes >= 0.1 * 0x1p30) return format_text("%.2f GiB", bytes / 0x1p30);
    if (bytes >= 0.1 * 0x1p20) return format_text("%.2f MiB", bytes / 0x1p20);
    return bytes > 0 ? format_text("%.2f KiB", bytes / 0x1p10) : "0";
}

std::string grouped(std::int64_t n, char separator) {
    std::string digits = std::to_string(n);
    const std::size_t first = n < 0 ? 1 : 0;
    for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, 1, separator);
    return digits;
}

std::string report_line(const std::string& name, const std::string& value) {
    return format_text("%-27s ", name.c_str()) + value + "\n";
}

}  // namespace tera
