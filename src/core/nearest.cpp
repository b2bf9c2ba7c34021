#include "core/nearest.h"

#include <algorithm>
#include <numeric>

namespace tera {

size_t edit_distance(const std::string& a, const std::string& b) {
    // Three rows of the table of distances between prefixes: two back (for swaps), one back, and the current one.
    std::vector<size_t> two_back(b.size() + 1), back(b.size() + 1), row(b.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 1; i <= a.size(); ++i) {
        std::swap(two_back, back);
        std::swap(back, row);
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({back[j] + 1, row[j - 1] + 1, back[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0)});
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) row[j] = std::min(row[j], two_back[j - 2] + 1);
        }
    }
    return row[b.size()];
}

std::string nearest(const std::string& typed, const std::vector<std::string>& words) {
    std::string best;
    size_t best_distance = 0;
    for (const std::string& word : words) {
        const size_t distance = edit_distance(typed, word);
        const size_t limit = std::max<size_t>(1, std::max(typed.size(), word.size()) / 3);
        if (distance <= limit && (best.empty() || distance < best_distance)) {
            best = word;
            best_distance = distance;
        }
    }
    return best;
}

}  // namespace tera
