#include "data/merge.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "data/indexed_dataset_writer.h"

namespace tera {
namespace {

namespace fs = std::filesystem;

/// What a stopped run left behind while writing `prefix`; the next run takes these files over.
bool is_remainder_of(const std::string& path, const std::string& prefix) {
    for (const char* suffix : {".bin.tmp", ".idx.tmp", ".documents.tmp", ".modes.tmp"})
        if (!prefix.empty() && path == prefix + suffix) return true;
    return false;
}

bool same_file(const std::string& a, const std::string& b) {
    std::error_code ignored;
    return fs::equivalent(a, b, ignored);
}

}  // namespace

std::vector<std::string> pairs_in_folder(const std::string& folder, const std::string& output_prefix) {
    std::error_code error;
    if (!fs::is_directory(folder, error))
        usage_error("--input ", folder, ": is not a folder; give one that holds pairs");
    std::set<std::string> prefixes;
    const fs::path output = fs::path(output_prefix).lexically_normal();
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        std::error_code ignored;
        const std::string path = entry->path().string();
        if (entry->is_symlink(ignored) && !fs::exists(path, ignored))
            usage_error(path, ": is a link to a file that is not there; restore the file or remove the link");
        if (!entry->is_regular_file(ignored)) continue;
        if (is_remainder_of(entry->path().lexically_normal().string(), output.string())) continue;
        const std::string suffix = entry->path().extension().string();
        if (suffix != ".bin" && suffix != ".idx")
            usage_error(path, ": belongs to no .bin/.idx pair; move it out of --input ", folder);
        const std::string prefix = path.substr(0, path.size() - 4);
        const std::string partner = prefix + (suffix == ".bin" ? ".idx" : ".bin");
        if (!fs::is_regular_file(partner, ignored))
            usage_error(path, ": its other half ", partner, " is missing; a pair without it cannot be merged");
        prefixes.insert(prefix);
    }
    if (error) usage_error("cannot read --input ", folder, ": ", error.message());
    if (prefixes.empty()) usage_error("--input ", folder, ": holds no .bin/.idx pair");
    return {prefixes.begin(), prefixes.end()};
}

MergeResult merge_datasets(const MergeOptions& options, const std::function<void(const std::string& prefix)>& report) {
    MergeResult result;
    result.prefixes = pairs_in_folder(options.input, options.output_prefix);
    for (const std::string& prefix : result.prefixes) {
        if (same_file(prefix + ".bin", options.output_prefix + ".bin"))
            usage_error("--output-prefix ", options.output_prefix,
                        " is one of the pairs to be merged; write it outside --input ", options.input);
    }
    // Every index is read before the first byte is copied: hours of work must not end at a pair of another type.
    result.type = IndexedDataset(result.prefixes.front()).index().type();
    for (const std::string& prefix : result.prefixes) {
        const IndexedDataset pair(prefix);
        const SequenceIndex& index = pair.index();
        if (index.type() != result.type)
            usage_error("cannot merge ", prefix, ": it holds ", type_name(index.type()), ", ", result.prefixes.front(),
                        " holds ", type_name(result.type));
        if (index.has_modes() && !options.multimodal)
            usage_error("cannot merge ", prefix, ": it is multimodal; give --multimodal");
        if (!index.has_modes() && options.multimodal && index.sequences() > 0)
            usage_error("cannot merge ", prefix, ": it has no modes; leave --multimodal out");
    }
    IndexedDatasetWriter writer(options.output_prefix, result.type, options.multimodal);
    for (const std::string& prefix : result.prefixes) {
        if (report) report(prefix);
        writer.add_dataset(prefix);
    }
    result.sequences = writer.sequences();
    result.documents = writer.documents();
    result.tokens = writer.tokens();
    writer.finish();
    return result;
}

}  // namespace tera
