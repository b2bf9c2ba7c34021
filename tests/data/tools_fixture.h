// Folders of .bin/.idx pairs for the tests of the data tools.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/data_fixture.h"

namespace tera {

/// A pair of one document of `tokens` tokens, in a folder that is made if needed.
inline void write_pair(const std::string& prefix, std::int32_t tokens) {
    std::filesystem::create_directories(std::filesystem::path(prefix).parent_path());
    std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens));
    for (std::int32_t i = 0; i < tokens; ++i) ids[static_cast<std::size_t>(i)] = i + 1;
    write_corpus(prefix, {ids});
}

inline std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        if (!entry.is_directory()) names.push_back(std::filesystem::relative(entry.path(), folder).string());
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace tera
