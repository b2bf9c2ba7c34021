#include "data/input_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "core/error.h"
#include "data/file_walk.h"
#include "io/file_source.h"
#include "io/parquet_rows.h"

namespace tera {
namespace {

/// The last suffix of a name that says what is in it, in small letters: "csv" of a/B.CSV.gz.
std::string kind_suffix(const std::string& path) {
    std::string name = base_name(path);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    for (const char* packed : {".gz", ".zst", ".xz", ".bz2"}) {
        if (!name.ends_with(packed)) continue;
        name.resize(name.size() - std::strlen(packed));
        break;
    }
    const std::size_t dot = name.rfind('.');
    return dot == std::string::npos ? "" : name.substr(dot + 1);
}

bool is_data_name(const std::string& path) {
    const std::string suffix = kind_suffix(path);
    for (const char* known : {"jsonl", "json", "ndjson", "csv", "tsv", "parquet"})
        if (suffix == known) return true;
    return false;
}

InputFile describe(const std::string& path, const std::string& format) {
    InputFile file;
    file.path = path;
    if (path == "-") {
        file.format = format == "csv" ? InputFormat::csv : InputFormat::json_lines;
        if (format == "parquet") usage_error("Parquet cannot be read from standard input; give a file");
        return file;
    }
    struct stat info {};
    const bool is_pipe = ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
    std::string beginning;
    if (!is_pipe) {              // opening a pipe and closing it would end its writer
        FileSource bytes(path);  // names what cannot be opened now rather than hours later
        file.size = bytes.stored_size();
        beginning = bytes.peek();
    }
    if (format == "auto" && !is_pipe && kind_suffix(path) == "parquet" && !is_parquet(beginning)) {
        if (packing_of(beginning) != Packing::plain) usage_error(path, ": packed Parquet is not read; unpack it first");
        usage_error(path, ": does not begin as a Parquet file does, though its name says that it is one; is it cut? ",
                    "If it is something else, rename it or give --input-format");
    }
    if (format != "auto") {
        file.format = format == "csv"       ? InputFormat::csv
                      : format == "parquet" ? InputFormat::parquet
                                            : InputFormat::json_lines;
    } else if (is_parquet(beginning)) {
        file.format = InputFormat::parquet;
    } else if (const std::string suffix = kind_suffix(path); suffix == "csv" || suffix == "tsv") {
        file.format = InputFormat::csv;
    }
    return file;
}

void add_folder(const std::string& folder, const std::string& format, FoundInputs& out) {
    std::vector<std::string> paths = walk_files(folder, /*follow_links=*/true);
    std::sort(paths.begin(), paths.end());
    const std::size_t before = out.files.size();
    for (const std::string& path : paths) {
        if (is_data_name(path))
            out.files.push_back(describe(path, format));
        else
            out.passed_over.push_back(path);
    }
    if (out.files.size() == before)
        usage_error("--input ", folder, ": the folder holds no .jsonl, .json, .csv, .tsv or .parquet file");
}

}  // namespace

bool can_be_read_again(const InputFile& file) {
    struct stat info {};
    return file.path != "-" && ::stat(file.path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

char csv_delimiter(const InputFile& file) { return kind_suffix(file.path) == "tsv" ? '\t' : ','; }

FoundInputs find_inputs(const std::vector<std::string>& words, const std::string& format) {
    FoundInputs out;
    for (const std::string& word : words) {
        const std::string path = expand_home(word);
        struct stat info {};
        const bool exists = path == "-" || ::stat(path.c_str(), &info) == 0;
        if (!exists && path.find_first_of("*?[") != std::string::npos) {
            const std::vector<std::string> found = matching_paths(path);
            if (found.empty()) usage_error("--input ", word, ": no file matches this pattern");
            for (const std::string& match : found) {
                struct stat inner {};
                if (::stat(match.c_str(), &inner) == 0 && S_ISDIR(inner.st_mode))
                    add_folder(match, format, out);
                else
                    out.files.push_back(describe(match, format));
            }
        } else if (exists && path != "-" && S_ISDIR(info.st_mode)) {
            add_folder(path, format, out);
        } else {
            out.files.push_back(describe(path, format));
        }
    }
    if (out.files.empty()) usage_error("--input names no file");
    return out;
}

}  // namespace tera
