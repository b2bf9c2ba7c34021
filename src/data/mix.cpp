#include "data/mix.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "core/error.h"
#include "data/file_walk.h"
#include "data/python_random.h"
#include "data/python_text.h"
#include "io/durable_file.h"
#include "io/mapped_file.h"

namespace tera {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t shuffle_seed = 1234;

std::string absolute(const std::string& path) { return fs::absolute(path).lexically_normal().string(); }

/// Without links and dots, so that equal files have equal paths. The end of it need not be there.
std::string real_path(const std::string& path) {
    std::error_code error;
    std::string real = fs::weakly_canonical(expand_home(path), error).string();
    if (error) usage_error("cannot read ", path, ": ", error.message());
    return real;
}

/// Under which the mixture lists a folder: its last part, which "..", "." and "a/.." do not have as they stand.
std::string name_of(const std::string& folder) { return base_name(absolute(expand_home(folder))); }

void check(const MixOptions& options) {
    if (options.folders.size() != options.weights.size())
        usage_error("--folders names ", options.folders.size(), " folders and --weights gives ", options.weights.size(),
                    " weights; give one for each");
    if (options.folders.empty()) usage_error("--folders is empty; name at least one folder");
    std::map<std::string, std::string> names;
    for (std::size_t i = 0; i < options.folders.size(); ++i) {
        const std::string& folder = options.folders[i];
        if (!std::isfinite(options.weights[i]) || !(options.weights[i] > 0))
            usage_error("--weights: ", options.weights[i], " for ", folder,
                        " is not a number above 0; leave a folder out that should give nothing");
        const auto [other, is_new] = names.emplace(name_of(folder), folder);
        if (!is_new)
            usage_error("--folders: ", other->second, " and ", folder, " have the same name '", other->first,
                        "', under which the mixture lists them; rename one");
        const std::string real = real_path(folder);
        if ((real_path(options.output) + "/").starts_with(real.ends_with('/') ? real : real + "/"))
            usage_error("--output ", options.output, " is inside --folders ", folder,
                        ", where the next run would find its links; give a folder outside");
    }
}

/// Real path of a .bin -> the folder of --folders that holds it.
using Holders = std::map<std::string, std::string>;

/// A pair to which several paths lead counts once, under the first by name. One that an earlier folder holds too has no
/// share that is its own: UsageError.
std::vector<std::string> files_of(const std::string& folder, Holders& holders) {
    std::vector<std::string> paths, files;
    for (const std::string& prefix : walk_prefixes(folder, /*follow_links=*/true)) paths.push_back(prefix + ".bin");
    std::sort(paths.begin(), paths.end());
    for (std::string& path : paths) {
        const auto [holder, is_new] = holders.emplace(real_path(path), folder);
        if (!is_new && holder->second != folder)
            usage_error("--folders: ", holder->second, " and ", folder, " both hold the pair ",
                        path.substr(0, path.size() - 4), ", which would be taken twice; give folders apart");
        if (is_new) files.push_back(std::move(path));
    }
    return files;
}

MixFolder collect(const std::string& folder, double weight, Holders& holders) {
    MixFolder found;
    found.path = folder;
    found.weight = weight;
    found.files = files_of(folder, holders);
    if (found.files.empty()) usage_error("no .bin/.idx pair under ", folder);
    PythonRandom(shuffle_seed).shuffle(found.files);
    for (const std::string& file : found.files) {
        found.sizes.push_back(regular_file_size(file));
        found.available_bytes += found.sizes.back();
    }
    return found;
}

/// The folder that is furthest below its weight; the first of equals.
std::size_t most_lacking(const std::vector<MixFolder>& folders, std::int64_t total) {
    std::size_t most = 0;
    double most_by = 0;
    for (std::size_t i = 0; i < folders.size(); ++i) {
        const double share = total > 0 ? static_cast<double>(folders[i].bytes) / static_cast<double>(total)
                                       : folders[i].weight;  // nothing taken yet: all are where they should be
        const double lacking = folders[i].weight - share;
        if (i == 0 || lacking > most_by) {
            most = i;
            most_by = lacking;
        }
    }
    return most;
}

void take_files(Mixture& mixture, bool fill_up) {
    std::int64_t total = 0;
    std::size_t all_files = 0;
    for (const MixFolder& folder : mixture.folders) all_files += folder.files.size();
    for (std::size_t n = 0; n < all_files; ++n) {
        const std::size_t i = most_lacking(mixture.folders, total);
        MixFolder& folder = mixture.folders[i];
        const auto available = static_cast<std::int64_t>(folder.files.size());
        const bool is_empty = folder.taken == available;
        if (!is_empty) {
            const std::int64_t size = folder.sizes[static_cast<std::size_t>(folder.taken++)];
            folder.bytes += size;
            total += size;
        }
        if (is_empty || (!fill_up && folder.taken == available)) {
            mixture.used_up = i;
            mixture.is_limited = true;
            return;
        }
    }
}

std::string summary_of(const Mixture& mixture, const std::string& output) {
    std::int64_t files = 0, bytes = 0;
    std::vector<std::int64_t> counts;
    for (const MixFolder& folder : mixture.folders) {
        counts.push_back(folder.taken);
        files += folder.taken;
        bytes += folder.bytes;
    }
    std::vector<std::pair<std::string, double>> shares;
    for (const MixFolder& folder : mixture.folders) {
        if (folder.taken == 0) continue;
        const double share = bytes > 0 ? static_cast<double>(folder.bytes) / static_cast<double>(bytes) : 0.0;
        shares.emplace_back((output.ends_with('/') ? output : output + "/") + name_of(folder.path),
                            python_round(share, 4));
    }
    const auto size = static_cast<double>(bytes);
    return cat("Dataset mixture created in ", output, " | ", files, " files (", python_repr(counts), ") | ",
               python_repr(python_round(size / 1e12, 2)), " TB | ", python_repr(python_round(size / 4e9, 2)),
               " Billion Tokens (x2 if Vocab < 65536) | Resulting mixture is ", python_repr(shares));
}

/// Link -> what it shows to, for both files of every pair taken.
std::map<std::string, std::string> links_of(const Mixture& mixture, const std::string& output) {
    std::map<std::string, std::string> links;
    for (const MixFolder& folder : mixture.folders) {
        for (std::int64_t i = 0; i < folder.taken; ++i) {
            const std::string& file = folder.files[static_cast<std::size_t>(i)];
            const std::string link =
                (fs::path(output) / name_of(folder.path) / path_inside(file, folder.path)).string();
            for (const char* suffix : {".bin", ".idx"})
                links.emplace(link.substr(0, link.size() - 4) + suffix,
                              absolute(file.substr(0, file.size() - 4) + suffix));
        }
    }
    return links;
}

void make_links(const std::map<std::string, std::string>& links, const std::string& output) {
    for (const std::string& there : walk_files(output, /*follow_links=*/false)) {
        if ((there.ends_with(".bin") || there.ends_with(".idx")) && links.count(fs::path(there).string()) == 0)
            usage_error(there, ": is not part of this mixture; give an empty --output folder");
    }
    for (const auto& [link, target] : links) {
        make_folders(folder_of(link));
        std::error_code error;
        if (fs::is_symlink(fs::symlink_status(link, error))) {
            const fs::path old = fs::read_symlink(link, error);
            if (old == target) continue;
            usage_error(link, ": is there already and leads to ", old.string(), "; give an empty --output folder");
        }
        fs::create_symlink(target, link, error);
        if (error) usage_error("cannot create the link ", link, ": ", error.message());
    }
}

}  // namespace

std::string mixture_manifest_path(const MixOptions& options) {
    return (options.output.ends_with('/') ? options.output : options.output + "/") + "dataset_mixture_manifest.txt";
}

Mixture choose_mixture(const MixOptions& options) {
    check(options);
    double sum = 0;
    for (const double weight : options.weights) sum += weight;
    Mixture mixture;
    Holders holders;
    for (std::size_t i = 0; i < options.folders.size(); ++i)
        mixture.folders.push_back(collect(options.folders[i], options.weights[i] / sum, holders));
    take_files(mixture, options.fill_up);
    mixture.summary = summary_of(mixture, options.output);
    return mixture;
}

Mixture write_mixture(const MixOptions& options) {
    Mixture mixture = choose_mixture(options);
    std::string manifest;
    for (const MixFolder& folder : mixture.folders) {
        for (std::int64_t i = 0; i < folder.taken; ++i) {
            const std::string file = absolute(folder.files[static_cast<std::size_t>(i)]);
            const std::string prefix = file.substr(0, file.size() - 4);
            require_no_blank(prefix);
            manifest += prefix + "\n";
        }
    }
    make_folders(options.output);
    if (options.symlinks) make_links(links_of(mixture, options.output), options.output);
    write_file_durably(mixture_manifest_path(options), manifest);
    write_file_durably(folder_of(mixture_manifest_path(options)) + "/dataset_mixture_summary.txt", mixture.summary);
    return mixture;
}

}  // namespace tera
