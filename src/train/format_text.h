// printf into a string. The C conversions %d, %.1f and %.6E print what Python's {:d}, {:.1f} and {:.6E} print, which
// is what makes the log lines exact.
#pragma once

#include <string>

namespace tera {

[[gnu::format(printf, 1, 2)]] std::string format_text(const char* format, ...);

/// Bytes in the largest of GiB, MiB and KiB of which there is a tenth.
std::string size_text(double bytes);

}  // namespace tera
