// Which files an --input names, and what is in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tera {

enum class InputFormat { json_lines, csv, parquet };

struct InputFile {
    std::string path;  // "-" is standard input
    InputFormat format = InputFormat::json_lines;
    std::int64_t size = 0;  // in bytes as stored; 0 if not known
};

struct FoundInputs {
    std::vector<InputFile> files;
    std::vector<std::string> passed_over;  // files in folders whose names say that they are something else
};

/// Each word is a file, "-", a pattern (* ? [...]) or a folder, which stands for all files in it and below whose names
/// end in .jsonl, .json, .ndjson, .csv, .tsv or .parquet, before .gz, .zst, .xz or .bz2. What a pattern or a folder
/// gives is sorted by name. `format` is "jsonl", "csv", "parquet", or "auto": Parquet shows in the first bytes, CSV in
/// the name. UsageError for words that name nothing.
FoundInputs find_inputs(const std::vector<std::string>& words, const std::string& format = "auto");

/// It is a file, and not a pipe, whose content is gone once it was read.
bool can_be_read_again(const InputFile& file);

/// '\t' for a .tsv file, else ','.
char csv_delimiter(const InputFile& file);

}  // namespace tera
