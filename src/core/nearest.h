// "Did you mean": the known word nearest to a mistyped one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tera {

/// Fewest single-letter insertions, deletions, substitutions and swaps of neighbours that turn a into b.
size_t edit_distance(const std::string& a, const std::string& b);

/// The word nearest to `typed` (the first of several), or "" when none is near enough to be meant: more than a third of
/// its letters differ.
std::string nearest(const std::string& typed, const std::vector<std::string>& words);

}  // namespace tera
