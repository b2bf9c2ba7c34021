// Many .bin/.idx pairs into one, as Megatron's tools/merge_datasets.py does: the token files one after the other in the
// order of their names, documents kept apart as they were.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/indexed_dataset.h"

namespace tera {

struct MergeOptions {
    std::string input;          // folder; what is in its sub-folders is not taken
    std::string output_prefix;  // its folder must be there
    bool multimodal = false;    // the pairs carry a mode for each sequence
};

struct MergeResult {
    std::vector<std::string> prefixes;  // in the order of the merged file
    std::int64_t sequences = 0, documents = 0, tokens = 0;
    TokenType type = TokenType::i32;  // that of the first pair
};

/// The pairs in a folder, sorted by name. UsageError if a file there belongs to no pair.
std::vector<std::string> pairs_in_folder(const std::string& folder, const std::string& output_prefix = "");

/// Nothing appears under the output names before all is written. `report`, if given, is called before each pair.
MergeResult merge_datasets(const MergeOptions& options,
                           const std::function<void(const std::string& prefix)>& report = {});

}  // namespace tera
