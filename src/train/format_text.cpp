#include "train/format_text.h"

#include <charconv>
#include <cmath>
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
    return text;
}

std::string python_float(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    const double size = std::abs(value);
    const bool scientific = size != 0 && (size < 1e-4 || size >= 1e16);
    char buffer[64];
    const auto how = scientific ? std::chars_format::scientific : std::chars_format::fixed;
    const auto result = std::to_chars(buffer, buffer + sizeof buffer, value, how);
    std::string text(buffer, result.ptr);
    if (!scientific && text.find('.') == std::string::npos) text += ".0";
    return text;
}

}  // namespace tera
