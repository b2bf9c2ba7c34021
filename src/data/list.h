// The prefixes under folders, for --data-path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tera {

struct PrefixList {
    std::vector<std::string> prefixes;
    std::vector<std::string> too_small;  // left out: fewer tokens than one sample needs
};

struct ListOptions {
    std::vector<std::string> folders;
    std::int64_t seq_length = 0;  // if above 0, pairs of fewer than seq_length + 1 tokens are left out
    bool sorted = false;          // by name, instead of in the order in which the file system lists them
};

/// UsageError if a folder is missing or no pair is found.
PrefixList list_prefixes(const ListOptions& options);

}  // namespace tera
