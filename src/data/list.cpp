#include "data/list.h"

#include <algorithm>

#include "core/error.h"
#include "data/file_walk.h"
#include "data/indexed_dataset.h"

namespace tera {

PrefixList list_prefixes(const ListOptions& options) {
    PrefixList list;
    for (const std::string& folder : options.folders) {
        for (std::string& prefix : walk_prefixes(folder, /*follow_links=*/false)) {
            require_no_blank(prefix);
            const bool too_small =
                options.seq_length > 0 && IndexedDataset(prefix).index().tokens() <= options.seq_length;
            (too_small ? list.too_small : list.prefixes).push_back(std::move(prefix));
        }
    }
    if (list.prefixes.empty()) {
        std::string names;
        for (const std::string& folder : options.folders) names += (names.empty() ? "" : ", ") + folder;
        usage_error("no .bin/.idx pair under ", names,
                    list.too_small.empty() ? "" : cat(" has more than ", options.seq_length, " tokens"));
    }
    if (options.sorted) std::sort(list.prefixes.begin(), list.prefixes.end());
    return list;
}

}  // namespace tera
