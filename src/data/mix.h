// A mixture of data sets by weight, without repeating any file.
//
// The files of each folder are shuffled (seed 1234). Then, again and again, the folder whose share of the bytes so far
// is furthest below its weight gives its next file, until a folder has none left. Since whole files are taken, the
// mixture needs no weights: blended in proportion to its size it has the shares that were asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tera {

struct MixOptions {
    std::vector<std::string> folders;
    std::vector<double> weights;  // one per folder, above 0; only their ratios matter
    std::string output;           // folder
    bool symlinks = true;         // OUTPUT/NAME OF THE FOLDER/... for each file taken
    bool fill_up = false;         // go on past the first folder used up, until a file is needed that is not there
};

struct MixFolder {
    std::string path;
    double weight = 0;                 // of 1
    std::vector<std::string> files;    // .bin, shuffled
    std::vector<std::int64_t> sizes;   // of those, in bytes
    std::int64_t taken = 0;            // the first so many are in the mixture
    std::int64_t bytes = 0;            // of those taken
    std::int64_t available_bytes = 0;  // of all
};

struct Mixture {
    std::vector<MixFolder> folders;
    std::size_t used_up = 0;  // the folder that ended it
    bool is_limited = false;  // false if all files of all folders were taken
    std::string summary;      // the line in dataset_mixture_summary.txt
};

/// Chooses files; writes nothing. A pair to which several links of a folder lead counts once. UsageError for weights
/// that do not match, folders without a pair, a pair that two folders hold, and an output folder inside one of them.
Mixture choose_mixture(const MixOptions& options);

/// Chooses and writes to the output folder, created if needed:
///   dataset_mixture_manifest.txt   the prefixes taken, one per line, for --data-args-path
///   dataset_mixture_summary.txt    one line on how it came out
///   the links, if wanted
/// UsageError if the folder holds links that are not of this mixture. Links that are there already stay.
Mixture write_mixture(const MixOptions& options);

std::string mixture_manifest_path(const MixOptions& options);

}  // namespace tera
