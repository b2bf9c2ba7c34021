#include "data/split_work.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/error.h"
#include "data/file_walk.h"
#include "io/durable_file.h"
#include "io/json_file.h"
#include "io/mapped_file.h"

namespace tera {
namespace {

namespace fs = std::filesystem;

constexpr double dump_bytes = 150e9;

bool has_format(std::string name, const std::string& format) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    for (const char* packed : {"", ".gz", ".zst", ".xz", ".bz2"})
        if (name.ends_with("." + format + packed)) return true;
    return false;
}

/// Files with any of the parts in their path: all with the first part, then those with the second, ...
std::vector<std::string> filtered_in(const std::vector<std::string>& files, const std::vector<std::string>& parts) {
    std::vector<std::string> kept;
    std::vector<bool> taken(files.size());
    for (const std::string& part : parts) {
        for (std::size_t i = 0; i < files.size(); ++i) {
            if (taken[i] || files[i].find(part) == std::string::npos) continue;
            taken[i] = true;
            kept.push_back(files[i]);
        }
    }
    return kept;
}

std::string list_name(std::size_t i) { return cat("paths_file_", i, ".txt"); }

/// Lists of an earlier split that this one does not write again with the same content.
void check_earlier_split(const std::string& folder, const std::map<std::string, std::string>& lists, bool overwrite) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        if (!name.starts_with("paths_file_") || !name.ends_with(".txt")) continue;
        const auto same = lists.find(name);
        const std::string path = entry->path().string();
        if (same != lists.end() && read_text_file(path, std::uint64_t{1} << 40) == same->second) continue;
        if (!overwrite)
            usage_error(path, ": is a list of another split; give another --preprocessing-metadata-folder, or ",
                        "--overwrite to replace it");
        remove_tree(path);
    }
}

void link_dataset(const std::string& link, const std::string& dataset) {
    const std::string target = fs::absolute(expand_home(dataset)).lexically_normal().string();
    std::error_code error;
    if (fs::exists(fs::symlink_status(link, error))) {
        if (fs::equivalent(link, target, error)) return;
        usage_error(link, ": is there already and leads elsewhere than ", target,
                    "; give another --preprocessing-metadata-folder");
    }
    fs::create_symlink(target, link, error);
    if (error) usage_error("cannot create the link ", link, ": ", error.message());
}

}  // namespace

std::int64_t WorkSplit::files() const {
    std::int64_t sum = 0;
    for (const WorkDump& dump : dumps) sum += static_cast<std::int64_t>(dump.files.size());
    return sum;
}

std::int64_t WorkSplit::size() const {
    std::int64_t sum = 0;
    for (const WorkDump& dump : dumps) sum += dump.size;
    return sum;
}

std::vector<WorkDump> balance(std::vector<WorkFile> files, std::int64_t dumps) {
    TERA_CHECK(dumps > 0, dumps);
    std::stable_sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.size > b.size; });
    std::vector<WorkDump> result(static_cast<std::size_t>(dumps));
    for (WorkFile& file : files) {
        const auto least = std::min_element(result.begin(), result.end(),
                                            [](const auto& a, const auto& b) { return a.size < b.size; });
        least->size += file.size;
        least->files.push_back(std::move(file));
    }
    // Files without a byte all go to the same dump, which may leave others without any file.
    std::erase_if(result, [](const WorkDump& dump) { return dump.files.empty(); });
    return result;
}

WorkSplit split_work(const SplitWorkOptions& options) {
    if (options.dumps < 0) usage_error("--n-dumps ", options.dumps, " is out of range; give at least 1");
    std::vector<std::string> paths;
    for (std::string& path : walk_files(options.dataset_folder, /*follow_links=*/true))
        if (has_format(base_name(path), options.format)) paths.push_back(std::move(path));
    WorkSplit split;
    split.found = static_cast<std::int64_t>(paths.size());
    if (paths.empty()) usage_error("no .", options.format, " files found in ", options.dataset_folder);
    if (!options.filter_in.empty()) paths = filtered_in(paths, options.filter_in);
    for (const std::string& part : options.filter_out)
        std::erase_if(paths, [&](const std::string& path) { return path.find(part) != std::string::npos; });
    if (paths.empty())
        usage_error("none of the ", split.found, " .", options.format, " files in ", options.dataset_folder,
                    " passes --filter-in and --filter-out");
    std::vector<WorkFile> files;
    std::int64_t total = 0;
    for (std::string& path : paths) {
        const std::int64_t size = regular_file_size(path);
        total += size;
        files.push_back({std::move(path), size});
    }
    const std::int64_t wanted =
        options.dumps > 0 ? options.dumps : static_cast<std::int64_t>(static_cast<double>(total) / dump_bytes) + 1;
    const auto most = static_cast<std::int64_t>(files.size());
    split.dumps = balance(std::move(files), std::min(wanted, most));
    return split;
}

void write_split(const SplitWorkOptions& options, const WorkSplit& split) {
    std::map<std::string, std::string> lists;
    for (std::size_t i = 0; i < split.dumps.size(); ++i) {
        std::string& text = lists[list_name(i)];
        for (const WorkFile& file : split.dumps[i].files) {
            if (file.path.find_first_of("\r\n") != std::string::npos)
                usage_error("'", file.path, "' holds a line end, which a list of paths cannot; rename it");
            text += path_inside(file.path, options.dataset_folder) + "\n";
        }
    }
    const std::string folder = options.metadata_folder + "/dumps";
    make_folders(folder);
    check_earlier_split(folder, lists, options.overwrite);
    link_dataset(options.metadata_folder + "/raw-dataset-link", options.dataset_folder);
    for (const auto& [name, text] : lists) write_file_durably(folder + "/" + name, text);
}

}  // namespace tera
