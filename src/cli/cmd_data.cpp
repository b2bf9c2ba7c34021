// teratron data merge | mix | list | split-work; data inspect and data export are in cmd_data_read.cpp.
#include <cstdio>

#include "cli/cmd_data.h"
#include "cli/commands.h"
#include "config/arg_parser.h"
#include "core/error.h"
#include "data/list.h"
#include "data/merge.h"
#include "data/mix.h"
#include "data/python_text.h"
#include "data/split_work.h"

namespace tera {
namespace {

int merge(const CommandArgs& args) {
    ArgParser parser("teratron data merge",
                     "Merges all .bin/.idx pairs of a folder, in the order of their names, into one pair.");
    parser.option("input", ArgType::text).required().help("folder that holds pairs and nothing else");
    parser.option("output-prefix", ArgType::text).required().help("path of the output without suffix");
    parser.flag("multimodal").help("the pairs hold images too");
    const ParsedArgs parsed = parser.parse(args);
    if (parsed.help_wanted) return 0;
    MergeOptions options;
    options.input = parsed.text("input");
    options.output_prefix = parsed.text("output_prefix");
    options.multimodal = parsed.boolean("multimodal");
    const MergeResult result = merge_datasets(
        options, [](const std::string& prefix) { std::fprintf(stderr, "Merging %s\n", prefix.c_str()); });
    std::printf("Wrote %s.bin and .idx: %zu pairs, %lld documents, %lld sequences, %lld tokens (%s)\n",
                options.output_prefix.c_str(), result.prefixes.size(), static_cast<long long>(result.documents),
                static_cast<long long>(result.sequences), static_cast<long long>(result.tokens),
                type_name(result.type));
    return 0;
}

using Shares = std::vector<std::pair<std::string, double>>;

int mix(const CommandArgs& args) {
    ArgParser parser("teratron data mix",
                     "Chooses files from several folders so that each has its share of the bytes, none taken twice, "
                     "until a folder has no more. The output folder gets dataset_mixture_manifest.txt for "
                     "--data-args-path, links to the files, and dataset_mixture_summary.txt.");
    parser.option("folders", ArgType::text)
        .values(ArgCount::one_or_more())
        .required()
        .help("folders of .bin/.idx pairs");
    parser.option("weights", ArgType::real)
        .values(ArgCount::one_or_more())
        .required()
        .help("share of each folder; only their ratios matter");
    parser.option("output", ArgType::text).required().help("folder to write to");
    parser.flag("no-symlinks").help("write the manifest only");
    parser.flag("fill-up").help(
        "go on past the first folder that is used up, until a file is needed that is not there");
    const ParsedArgs parsed = parser.parse(args);
    if (parsed.help_wanted) return 0;
    MixOptions options;
    options.folders = parsed.list("folders");
    for (const std::string& weight : parsed.list("weights")) options.weights.push_back(parse_real(weight, "--weights"));
    options.output = parsed.text("output");
    options.symlinks = !parsed.boolean("no_symlinks");
    options.fill_up = parsed.boolean("fill_up");
    const Mixture mixture = write_mixture(options);
    Shares wanted, natural;
    double available = 0;
    for (const MixFolder& folder : mixture.folders) available += static_cast<double>(folder.available_bytes);
    for (const MixFolder& folder : mixture.folders) {
        wanted.emplace_back(folder.path, python_round(folder.weight, 4));
        if (available > 0)
            natural.emplace_back(folder.path, python_round(static_cast<double>(folder.available_bytes) / available, 4));
    }
    std::printf("Creating data mixture from %s...\n", python_repr(wanted).c_str());
    std::printf("INFO: Natural data ratio (taking all files as is) would be: %s\n", python_repr(natural).c_str());
    if (mixture.is_limited) std::printf("Dataset %zu exhausted!\n", mixture.used_up);
    std::printf("%s\n", mixture.summary.c_str());
    std::printf("Train on it with --data-args-path %s\n", mixture_manifest_path(options).c_str());
    return 0;
}

/// A, B,C -> {"A", "B", "C"}
std::vector<std::string> comma_list(const std::string& text) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::size_t first = text.find_first_not_of(" \t", begin);
        if (first < end) parts.push_back(text.substr(first, text.find_last_not_of(" \t", end - 1) + 1 - first));
        begin = end + 1;
    }
    return parts;
}

int list(CommandArgs args) {
    for (std::string& word : args) {
        if (word == "-p") word = "--paths";
        if (word.starts_with("-p") && !word.starts_with("--")) word = "--paths=" + word.substr(2);
    }
    ArgParser parser("teratron data list",
                     "Prints the prefixes of all .bin/.idx pairs under some folders, separated by blanks, for "
                     "--data-path.");
    parser.option("paths", ArgType::text).required().help("folders, separated by commas (also -p)");
    parser.option("seq-length", ArgType::integer).help("leave out pairs too small for one sample of this length");
    parser.flag("sort").help("by name; else in the order of the file system");
    const ParsedArgs parsed = parser.parse(args);
    if (parsed.help_wanted) return 0;
    ListOptions options;
    options.folders = comma_list(parsed.text("paths"));
    if (options.folders.empty()) usage_error("--paths is empty; name at least one folder");
    if (parsed.has("seq_length")) {
        options.seq_length = parsed.integer("seq_length");
        if (options.seq_length < 1) usage_error("--seq-length ", options.seq_length, " is out of range");
    }
    options.sorted = parsed.boolean("sort");
    const PrefixList found = list_prefixes(options);
    if (!found.too_small.empty()) {
        std::fprintf(stderr, "Left out, too small for one sample of %lld tokens:\n",
                     static_cast<long long>(options.seq_length));
        for (const std::string& prefix : found.too_small) std::fprintf(stderr, "  %s\n", prefix.c_str());
    }
    for (std::size_t i = 0; i < found.prefixes.size(); ++i)
        std::printf("%s%s", i == 0 ? "" : " ", found.prefixes[i].c_str());
    std::printf("\n");
    return 0;
}

int split(const CommandArgs& args) {
    ArgParser parser("teratron data split-work",
                     "Shares the files of a data set out evenly among jobs: writes dumps/paths_file_0.txt, ... with "
                     "the paths for each, and raw-dataset-link, the folder they are relative to.");
    parser.option("dataset-folder", ArgType::text).required().help("searched with all its sub-folders");
    parser.option("format", ArgType::text)
        .choices({"parquet", "jsonl", "csv"})
        .defaults("parquet")
        .help("how the names end, before .gz, .zst, .xz or .bz2");
    parser.option("filter-in", ArgType::text)
        .values(ArgCount::one_or_more())
        .help("take only files with one of these in their path");
    parser.option("filter-out", ArgType::text)
        .values(ArgCount::one_or_more())
        .help("leave out files with one of these in their path");
    parser.option("preprocessing-metadata-folder", ArgType::text).required().help("folder to write to");
    parser.option("n-dumps", ArgType::integer).help("number of lists (default: one per 150 GB begun)");
    parser.flag("overwrite").help("replace the lists of an earlier split");
    const ParsedArgs parsed = parser.parse(args);
    if (parsed.help_wanted) return 0;
    SplitWorkOptions options;
    options.dataset_folder = parsed.text("dataset_folder");
    options.format = parsed.text("format");
    options.filter_in = parsed.list("filter_in");
    options.filter_out = parsed.list("filter_out");
    options.metadata_folder = parsed.text("preprocessing_metadata_folder");
    options.overwrite = parsed.boolean("overwrite");
    if (parsed.has("n_dumps")) {
        options.dumps = parsed.integer("n_dumps");
        if (options.dumps < 1) usage_error("--n-dumps ", options.dumps, " is out of range; give at least 1");
    }
    std::printf("Scanning .%s files in %s...\n", options.format.c_str(), options.dataset_folder.c_str());
    const WorkSplit found = split_work(options);
    std::printf("Found a total of %lld in %s\n", static_cast<long long>(found.found), options.dataset_folder.c_str());
    std::printf("Total number of files filtered to tokenize: %lld (%.2f GB)\n", static_cast<long long>(found.files()),
                static_cast<double>(found.size()) / 1e9);
    std::printf("Splitting %lld into %zu dumps...\n", static_cast<long long>(found.files()), found.dumps.size());
    if (static_cast<std::int64_t>(found.dumps.size()) < options.dumps)
        std::printf("There are no files for more of the %lld dumps asked for\n", static_cast<long long>(options.dumps));
    write_split(options, found);
    for (std::size_t i = 0; i < found.dumps.size(); ++i)
        std::printf("[ Dump %zu | %.2f GB | %zu Files ]\n", i, static_cast<double>(found.dumps[i].size) / 1e9,
                    found.dumps[i].files.size());
    std::printf("Finished preparing the dumps!\n");
    return 0;
}

}  // namespace

int cmd_data(const CommandArgs& args) {
    const std::string what = args.empty() ? "" : args[0];
    const CommandArgs rest(args.begin() + (args.empty() ? 0 : 1), args.end());
    if (what == "inspect") return cmd_data_inspect(rest);
    if (what == "export") return cmd_data_export(rest);
    if (what == "merge") return merge(rest);
    if (what == "mix") return mix(rest);
    if (what == "list") return list(rest);
    if (what == "split-work") return split(rest);
    if (what == "-h" || what == "--help") {
        std::printf(
            "usage: teratron data <what> [flags]\n\n"
            "  inspect      documents, tokens, lengths, samples; checks that files are whole\n"
            "  export       tokens back to text or JSON lines\n"
            "  merge        many .bin/.idx pairs into one\n"
            "  mix          a mixture of folders by weight, no file twice\n"
            "  list         the prefixes under folders, for --data-path\n"
            "  split-work   lists of input files for many jobs, evenly sized\n\n"
            "  teratron data <what> --help   its flags\n");
        return 0;
    }
    const std::string names = "inspect, export, merge, mix, list and split-work";
    if (what.empty()) usage_error("data: say what to do; there are ", names);
    const std::string near = nearest_name(what, {"inspect", "export", "merge", "mix", "list", "split-work"});
    usage_error("data: '", what, "' is unknown; ",
                near.empty() ? "there are " + names : "did you mean '" + near + "'?");
}

}  // namespace tera
