// The files of a large data set shared out evenly among jobs that tokenise them: one list of paths for each job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tera {

struct SplitWorkOptions {
    std::string dataset_folder;  // searched with all its sub-folders, links followed
    std::string format;          // "parquet", "jsonl" or "csv": how names end, before .gz, .zst, .xz or .bz2
    std::vector<std::string> filter_in, filter_out;  // parts of paths; none: all
    std::string metadata_folder;                     // gets raw-dataset-link and dumps/paths_file_{i}.txt
    std::int64_t dumps = 0;                          // 0: one per 150 GB begun
    bool overwrite = false;                          // replace the lists of an earlier split
};

struct WorkFile {
    std::string path;
    std::int64_t size = 0;
};

struct WorkDump {
    std::vector<WorkFile> files;
    std::int64_t size = 0;
};

struct WorkSplit {
    std::int64_t found = 0;  // files of the format, before the filters
    std::vector<WorkDump> dumps;
    std::int64_t files() const;
    std::int64_t size() const;
};

/// Each file, the largest first, to the dump that has least so far (the first of equals). Dumps that get no file are
/// left out.
std::vector<WorkDump> balance(std::vector<WorkFile> files, std::int64_t dumps);

/// UsageError if no file passes the filters.
WorkSplit split_work(const SplitWorkOptions& options);

/// Writes the lists, each path relative to the data set's folder on a line of its own, in the order of the split, and
/// the link raw-dataset-link to that folder. UsageError if lists of an earlier split are there that would be lost or
/// left over, unless `overwrite`.
void write_split(const SplitWorkOptions& options, const WorkSplit& split);

}  // namespace tera
