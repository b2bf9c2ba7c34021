// printf into a string. The C conversions %d, %.1f and %.6E print what Python's {:d}, {:.1f} and {:.6E} print, which
// is what makes the log lines exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tera {

[[gnu::format(printf, 1, 2)]] std::string format_text(const char* format, ...);

/// Bytes in the largest of GiB, MiB and KiB of which there is a tenth.
std::string size_text(double bytes);
inline std::string size_text(std::size_t bytes) { return size_text(static_cast<double>(bytes)); }

/// "1,234,567".
std::string grouped(std::int64_t n, char separator = ',');

/// A line of a report: the name, and the value in its column.
std::string report_line(const std::string& name, const std::string& value);

}  // namespace tera
