// Values as Python prints them, for the lines and files whose readers expect that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tera {

/// repr(float) for numbers below 1e16: the shortest digits that read back as the same number, never an exponent.
std::string python_repr(double value);
/// repr(str): single quotes, unless only those are inside.
std::string python_repr(std::string_view text);
/// repr of a list of integers: [1, 2].
std::string python_repr(const std::vector<std::int64_t>& values);
/// repr of a dict sorted by key: {'a': 0.5, 'b': 1.0}.
std::string python_repr(std::vector<std::pair<std::string, double>> entries);

/// round(value, digits): to the nearest decimal, by the exact value of the double.
double python_round(double value, int digits);

}  // namespace tera
