// teratron preprocess: JSON lines, CSV or Parquet to .bin/.idx, with the flags and console lines of Megatron's
// preprocess_data.py.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>

#include "cli/commands.h"
#include "cli/tokenizer_flags.h"
#include "config/arg_parser.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "data/input_files.h"
#include "data/preprocess.h"
#include "io/durable_file.h"
#include "io/json_file.h"

namespace tera {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A float as Python prints it: the shortest text that reads back as the same number.
std::string python_float(double value) {
    char text[400];
    char* end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed).ptr;
    const std::string out(text, end);
    return out.find_first_of(".n") == std::string::npos ? out + ".0" : out;
}

ArgParser make_parser() {
    ArgParser parser(
        "teratron preprocess",
        "Tokenises JSON lines, CSV or Parquet into PREFIX_KEY_document.bin and .idx, one pair per key. A run "
        "that was stopped goes on where it was when the same command is given again.");
    const std::string input = "input data", output = "output data", runtime = "runtime";
    parser.option("input", ArgType::text)
        .values(ArgCount::one_or_more())
        .help("files, patterns in quotes, folders, or - for standard input; plain, gzip, zstd, xz or bzip2")
        .group(input);
    parser.option("input-format", ArgType::text)
        .choices({"auto", "jsonl", "csv", "parquet"})
        .defaults("auto")
        .help("auto: Parquet by its first bytes, CSV by the name .csv or .tsv, else JSON lines")
        .group(input);
    parser.option("paths-file", ArgType::text)
        .help("file with a path on each line, instead of --input (data split-work writes such)")
        .group(input);
    parser.option("dataset", ArgType::text)
        .alias("dataset-folder")
        .help("folder that the paths in --paths-file are relative to")
        .group(input);
    parser.option("json-keys", ArgType::text)
        .alias("columns")
        .alias("column")
        .values(ArgCount::one_or_more())
        .defaults("text")
        .help("keys, or columns of CSV and Parquet, whose text is taken")
        .group(input);
    parser.flag("skip-invalid")
        .help("leave out lines that are not valid, name and count them; else the first ends the run")
        .group(input);
    parser.flag("split-sentences")
        .help("cut texts into sentences, each a sequence of its own; the files are PREFIX_KEY_sentence")
        .group(input);
    parser.flag("keep-newlines")
        .help("with --split-sentences: white space behind a sentence stays part of it")
        .group(input);
    parser.option("lang", ArgType::text)
        .defaults("english")
        .help("with --split-sentences: whose abbreviations to know")
        .group(input);
    add_tokenizer_flags(parser);
    parser.flag("append-eod").help("end each document with the tokenizer's end-of-document token").group("tokenizer");
    parser.option("eos-token", ArgType::text)
        .help("end each document with this token of the vocabulary instead")
        .group("tokenizer");
    parser.option("tokenizer-name-or-path", ArgType::text)
        .help("a tokenizer.json or its folder: --tokenizer-type HuggingFaceTokenizer --tokenizer-model")
        .group("tokenizer");
    parser.option("output-prefix", ArgType::text).help("path of the output without suffix").group(output);
    parser.option("output-folder", ArgType::text)
        .help("instead of it: a folder that gets a pair {task}_tokens, five digits, of each of --n-tasks")
        .group(output);
    parser.option("n-tasks", ArgType::integer)
        .help("with --output-folder: task i of n takes the files i, i + n, i + 2n, ... (default 1)")
        .group(output);
    parser.option("logging-dir", ArgType::text)
        .help("with --output-folder: a folder for marks completions/{task}; a task that has one is not done again")
        .group(output);
    parser.option("dataset-impl", ArgType::text).choices({"mmap"}).help("always mmap").group(output);
    parser.option("workers", ArgType::integer)
        .alias("n-workers")
        .help("threads that tokenise (default, or -1: one per core); the output does not depend on it")
        .group(runtime);
    parser.option("partitions", ArgType::integer)
        .defaults("1")
        .help("write documents to so many pairs PREFIX_{i}_KEY_document in turns, then join those in order")
        .group(runtime);
    parser.option("log-interval", ArgType::integer).defaults("1000").help("documents between reports").group(runtime);
    parser.option("resume-interval", ArgType::real)
        .defaults("10")
        .help("seconds between two notes on disk of how far it has come; below 0: none, a stopped run begins anew")
        .group(runtime);
    parser.flag("keep-sequential-samples")
        .help("with --partitions: equal blocks in a row, so that the joined files have the order of the input")
        .group(runtime);
    parser.flag("find-optimal-num-workers")
        .help("only measure how fast each number of --workers-to-check is, and write nothing")
        .group(runtime);
    parser.option("workers-to-check", ArgType::integer)
        .values(ArgCount::one_or_more())
        .help("with --find-optimal-num-workers; default 1, 2, 4, ... up to the number of cores")
        .group(runtime);
    parser.option("max-documents", ArgType::integer)
        .defaults("100000")
        .help("with --find-optimal-num-workers: documents to read each time")
        .group(runtime);
    return parser;
}

void note_idle_flags(const ParsedArgs& args) {
    struct Pair {
        const char *name, *dest, *owner, *owner_dest;
    };
    for (const Pair& pair :
         {Pair{"keep-newlines", "keep_newlines", "split-sentences", "split_sentences"},
          Pair{"lang", "lang", "split-sentences", "split_sentences"},
          Pair{"n-tasks", "n_tasks", "output-folder", "output_folder"},
          Pair{"logging-dir", "logging_dir", "output-folder", "output_folder"},
          Pair{"workers-to-check", "workers_to_check", "find-optimal-num-workers", "find_optimal_num_workers"},
          Pair{"max-documents", "max_documents", "find-optimal-num-workers", "find_optimal_num_workers"}}) {
        if (args.given(pair.dest) && !args.given(pair.owner_dest))
            std::fprintf(stderr, "--%s changes nothing: --%s is not given\n", pair.name, pair.owner);
    }
}

/// Reports on stderr: a bar on a terminal, else Megatron's line every log_interval documents.
class Reporter {
  public:
    Reporter(std::int64_t log_interval, Clock::time_point start)
        : log_interval_(log_interval), start_(start), is_terminal_(isatty(STDERR_FILENO) == 1) {}

    void operator()(const PreprocessProgress& progress) {
        if (is_first_ && progress.documents > 1) earlier_ = progress;  // goes on with a run that was stopped
        is_first_ = false;
        if (is_terminal_) {
            if (progress.documents % 64 == 0) draw(progress, false);
        } else if (progress.documents % log_interval_ == 0) {
            const double seconds = seconds_since(start_);
            const double rate = static_cast<double>(progress.characters - earlier_.characters) / seconds / 1024 / 1024;
            const double documents = static_cast<double>(progress.documents - earlier_.documents);
            std::fprintf(stderr, "Processed %lld documents (%s docs/s, %s MB/s).\n",
                         static_cast<long long>(progress.documents), python_float(documents / seconds).c_str(),
                         python_float(rate).c_str());
        }
    }

    void finish(const PreprocessProgress& progress) {
        if (is_terminal_) draw(progress, true);
    }

  private:
    void draw(const PreprocessProgress& progress, bool last) {
        const double now = seconds_since(start_);
        if (!last && now - drawn_ < 0.1) return;
        drawn_ = now;
        constexpr int width = 30;
        const double part = progress.total_bytes > 0
                                ? static_cast<double>(progress.stored_bytes) / static_cast<double>(progress.total_bytes)
                                : (last ? 1.0 : 0.0);
        const int filled = std::min(width, static_cast<int>(part * width));
        std::fprintf(stderr, "\r[%s%s] %3.0f%%  %lld documents  %.1f MB/s ", std::string(filled, '#').c_str(),
                     std::string(width - filled, '.').c_str(), part * 100, static_cast<long long>(progress.documents),
                     static_cast<double>(progress.bytes - earlier_.bytes) / now / 1048576);
        if (last) std::fputc('\n', stderr);
        std::fflush(stderr);
    }

    std::int64_t log_interval_;
    Clock::time_point start_;
    bool is_terminal_;
    PreprocessProgress earlier_;
    bool is_first_ = true;
    double drawn_ = -1;
};

/// What --paths-file lists, below --dataset.
std::vector<std::string> listed_paths(const ParsedArgs& args) {
    const std::string list = args.text("paths_file"), folder = args.text("dataset");
    std::vector<std::string> paths;
    std::istringstream lines(read_text_file(list, std::uint64_t{1} << 32));
    for (std::string line; std::getline(lines, line);) {
        if (line.ends_with('\r')) line.pop_back();
        if (line.empty()) continue;
        paths.push_back(folder.empty() || line.starts_with('/') ? line : folder + "/" + line);
    }
    if (paths.empty()) usage_error("--paths-file ", list, ": lists no file");
    return paths;
}

/// Tells of what is passed over and left out; only of the first so many, the count comes at the end.
class Notes {
  public:
    void operator()(const std::string& text) {
        if (++count_ <= most) std::fprintf(stderr, "%s\n", text.c_str());
        if (count_ == most) std::fprintf(stderr, "... more such notes are not shown\n");
    }

  private:
    static constexpr int most = 100;
    int count_ = 0;
};

PreprocessOptions options_of(const ParsedArgs& args) {
    PreprocessOptions options;
    if (args.given("input") == args.given("paths_file"))
        usage_error("teratron preprocess: --input is required, or --paths-file instead of it (see --help)");
    options.inputs = args.given("input") ? args.list("input") : listed_paths(args);
    options.input_format = args.text("input_format");
    options.skip_invalid = args.boolean("skip_invalid");
    options.note = Notes();
    options.journal_seconds = args.real("resume_interval");
    const std::int64_t partitions = args.integer("partitions");
    if (partitions < 1 || partitions > 1000)
        usage_error("--partitions ", partitions, " is out of range; give 1 to 1000");
    options.partitions = static_cast<int>(partitions);
    options.keep_sequential_samples = args.boolean("keep_sequential_samples");
    if (args.given("output_prefix") == args.given("output_folder"))
        usage_error("teratron preprocess: --output-prefix is required, or --output-folder instead of it (see --help)");
    options.output_prefix = args.text("output_prefix");
    if (args.given("output_prefix") && options.output_prefix.empty()) usage_error("--output-prefix is empty");
    options.json_keys = args.list("json_keys");
    options.append_eod = args.boolean("append_eod");
    options.split_sentences = args.boolean("split_sentences");
    options.sentences = {args.text("lang"), args.boolean("keep_newlines")};
    std::int64_t workers = args.has("workers") ? args.integer("workers") : -1;
    if (workers == -1) workers = ThreadPool::default_size();
    if (workers < 1 || workers > 4096) usage_error("--workers ", workers, " is out of range; give 1 to 4096");
    options.workers = static_cast<int>(workers);
    return options;
}

/// --find-optimal-num-workers.
int find_workers(const ParsedArgs& args, const Tokenizer& tokenizer, PreprocessOptions options) {
    const std::int64_t most = args.integer("max_documents");
    if (most < 1) usage_error("--max-documents ", most, " is out of range; give at least 1");
    std::vector<std::int64_t> counts;
    if (args.given("workers_to_check")) {
        counts = args.integers("workers_to_check");
    } else {
        const std::int64_t cores = ThreadPool::default_size();
        for (std::int64_t n = 1; n < cores; n *= 2) counts.push_back(n);
        counts.push_back(cores);
    }
    for (const InputFile& file : find_inputs(options.inputs, options.input_format).files)
        if (!can_be_read_again(file))
            usage_error("--find-optimal-num-workers reads the input several times; give a file instead of ", file.path);
    std::int64_t best = 0;
    double best_rate = 0;
    for (const std::int64_t count : counts) {
        if (count < 1 || count > 4096) usage_error("--workers-to-check ", count, " is out of range; give 1 to 4096");
        options.workers = static_cast<int>(count);
        const Clock::time_point began = Clock::now();
        const PreprocessProgress done = measure_preprocess(tokenizer, options, most);
        const double seconds = seconds_since(began), rate = static_cast<double>(done.documents) / seconds;
        std::printf("%lld workers: %lld documents in %.2f s, %.1f docs/s, %.1f MB/s\n", static_cast<long long>(count),
                    static_cast<long long>(done.documents), seconds, rate,
                    static_cast<double>(done.bytes) / seconds / 1048576);
        std::fflush(stdout);
        if (rate > best_rate) {
            best = count;
            best_rate = rate;
        }
    }
    std::printf("The fastest is --workers %lld\n", static_cast<long long>(best));
    return 0;
}

TokenizerConfig tokenizer_of(const ParsedArgs& args) {
    TokenizerConfig config = tokenizer_config(args);
    if (!args.given("tokenizer_name_or_path")) return config;
    if (args.given("tokenizer_type") || args.given("tokenizer_model"))
        usage_error("--tokenizer-name-or-path stands for --tokenizer-type and --tokenizer-model; leave those out");
    config.tokenizer_type = "HuggingFaceTokenizer";
    config.tokenizer_model = args.text("tokenizer_name_or_path");
    return config;
}

/// --eos-token, which is one token for this tokenizer, and the only thing behind a text.
std::int32_t end_token_of(const std::string& text, const Tokenizer& tokenizer) {
    std::vector<std::int32_t> nothing, ids;
    tokenizer.encode("", nothing);
    if (!nothing.empty())
        usage_error("--eos-token: this tokenizer adds tokens of its own to every text; use --append-eod, or take them ",
                    "out of its post_processor");
    tokenizer.encode(text, ids);
    if (ids.size() != 1)
        usage_error("--eos-token ", text, ": must be one token of the vocabulary, and is ", ids.size());
    return ids[0];
}

void print_totals(const PreprocessOptions& options, const PreprocessProgress& total, double seconds) {
    for (const std::string& key : options.json_keys)
        std::printf("Wrote %s.bin and .idx\n", preprocess_output(options, key).c_str());
    if (options.skip_invalid) std::printf("%lld invalid records left out\n", static_cast<long long>(total.invalid));
    std::printf("%lld documents, %lld tokens, %.1f MB in %.2f s\n", static_cast<long long>(total.documents),
                static_cast<long long>(total.tokens), static_cast<double>(total.bytes) / 1048576, seconds);
    const StageSeconds& cpu = total.seconds;
    if (cpu.all() > 0)
        std::printf("Processor time %.2f s: reading %.0f %%, parsing %.0f %%, tokenising %.0f %%, writing %.0f %%\n",
                    cpu.all(), 100 * cpu.reading / cpu.all(), 100 * cpu.parsing / cpu.all(),
                    100 * cpu.tokenising / cpu.all(), 100 * cpu.writing / cpu.all());
    std::fflush(stdout);
}

void run_one(const Tokenizer& tokenizer, const PreprocessOptions& options, std::int64_t log_interval) {
    const Clock::time_point began = Clock::now();
    Reporter report(log_interval, began);
    const PreprocessProgress total =
        preprocess(tokenizer, options, [&report](const PreprocessProgress& progress) { report(progress); });
    report.finish(total);
    print_totals(options, total, seconds_since(began));
}

/// --output-folder: the files dealt out to tasks, and a pair of files from each, one task after the other. Its names,
/// its order and its two bytes up to 65,536 ids are those of datatrove's pipeline for Megatron.
void run_tasks(const ParsedArgs& args, const Tokenizer& tokenizer, PreprocessOptions options,
               std::int64_t log_interval) {
    const std::int64_t tasks = args.has("n_tasks") ? args.integer("n_tasks") : 1;
    if (tasks < 1 || tasks > 100'000) usage_error("--n-tasks ", tasks, " is out of range; give 1 to 100,000");
    const std::string folder = args.text("output_folder"), logs = args.text("logging_dir");
    const std::string marks = logs.empty() ? "" : logs + "/completions";
    std::error_code error;
    for (const std::string& made : {folder, marks}) {
        if (!made.empty() && !std::filesystem::create_directories(made, error) && error)
            usage_error("cannot make the folder ", made, ": ", error.message());
    }
    std::vector<InputFile> files = find_inputs(options.inputs, options.input_format).files;
    options.bare_names = true;
    options.token_type = tokenizer.vocab_size() <= 65'536 ? TokenType::u16 : TokenType::i32;
    for (std::int64_t task = 0; task < tasks; ++task) {
        char number[32];
        std::snprintf(number, sizeof number, "%05lld", static_cast<long long>(task));
        const std::string mark = marks + "/" + number;
        if (!marks.empty() && std::filesystem::exists(mark)) {
            std::printf("Task %s is done: %s is there\n", number, mark.c_str());
            continue;
        }
        options.inputs.clear();
        for (std::size_t i = static_cast<std::size_t>(task); i < files.size(); i += static_cast<std::size_t>(tasks))
            options.inputs.push_back(files[i].path);
        if (!options.inputs.empty()) {
            options.output_prefix = folder + "/" + number + "_tokens";
            run_one(tokenizer, options, log_interval);
        }
        if (!marks.empty()) OutputFile(mark, OutputFile::Mode::create).close();
    }
}

}  // namespace

int cmd_preprocess(const CommandArgs& args) {
    const Clock::time_point start = Clock::now();
    const ParsedArgs parsed = make_parser().parse(args);
    if (parsed.help_wanted) return 0;
    note_idle_flags(parsed);
    PreprocessOptions options = options_of(parsed);
    const std::int64_t log_interval = parsed.integer("log_interval");
    if (log_interval < 1) usage_error("--log-interval ", log_interval, " is out of range; give at least 1");
    const auto tokenizer = make_tokenizer(tokenizer_of(parsed));
    if (parsed.given("eos_token")) options.end_token = end_token_of(parsed.text("eos_token"), *tokenizer);
    if (parsed.boolean("find_optimal_num_workers")) return find_workers(parsed, *tokenizer, options);
    if (!options.split_sentences && tokenizer->name().starts_with("BertWordPiece"))
        std::printf("Are you sure you don't want to split sentences?\n");
    for (const std::string& input : options.inputs) std::printf("Opening %s\n", input.c_str());
    std::printf("Time to startup: %s\n", python_float(seconds_since(start)).c_str());
    std::fflush(stdout);
    if (parsed.given("output_folder"))
        run_tasks(parsed, *tokenizer, options, log_interval);
    else
        run_one(*tokenizer, options, log_interval);
    return 0;
}

}  // namespace tera
