// teratron tokenizer train | encode | decode.
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "cli/commands.h"
#include "cli/tokenizer_flags.h"
#include "config/arg_parser.h"
#include "core/error.h"
#include "data/input_files.h"
#include "data/preprocess_lines.h"
#include "io/durable_file.h"
#include "token/json_scan.h"
#include "token/train_bpe.h"
#include "token/utf8.h"

namespace tera {
namespace {

constexpr const char* trained_files[] = {"vocab.json", "merges.txt", "tokenizer.json", "tokenizer_config.json"};

/// Before hours of reading, not behind them.
void refuse_earlier_tokenizer(const std::string& folder) {
    for (const char* name : trained_files)
        if (std::filesystem::exists(std::filesystem::path(folder) / name))
            usage_error("--output ", folder, ": holds a tokenizer already (", name,
                        "); give another folder, or --overwrite to replace it");
}

void write_files(const std::string& folder, const std::vector<TokenizerFile>& files) {
    make_folders(folder);
    for (const TokenizerFile& file : files) write_file_durably(folder + "/" + file.name, file.bytes);
}

/// The files to learn from, as preprocess finds them.
std::vector<std::string> training_inputs(const std::vector<std::string>& words, bool plain_text) {
    if (plain_text) {
        for (const std::string& word : words)
            if (std::filesystem::is_directory(word))
                usage_error("--input ", word, ": is a folder, which --plain-text does not take; give '", word, "/*'");
    }
    const FoundInputs found = find_inputs(words, plain_text ? "jsonl" : "auto");
    std::vector<std::string> paths;
    for (const InputFile& file : found.files) {
        if (file.format != InputFormat::json_lines)
            usage_error(file.path, ": is not JSON lines, the only kind that tokenizer train reads beside plain text");
        paths.push_back(file.path);
    }
    if (!found.passed_over.empty())
        std::fprintf(stderr, "Passed over %zu files that are not named .jsonl or .json, the first %s\n",
                     found.passed_over.size(), found.passed_over.front().c_str());
    return paths;
}

/// Reads texts and counts their pieces.
class TrainingText {
  public:
    /// JSON lines under `key`, or plain lines if `key` is empty.
    TrainingText(const std::string& key, bool skip_invalid)
        : is_plain_(key.empty()), skip_invalid_(skip_invalid), keyed_({key}) {}

    void read(const std::string& input) {
        LineBlockReader reader(input);
        std::string block;
        std::int64_t number = 0;
        while (reader.next(block)) {
            bytes_ += static_cast<std::int64_t>(block.size());
            for (std::string_view rest = block; !rest.empty();) {
                const Line line = take_line(rest);
                ++number;
                if (is_plain_)
                    pieces_.add(line.raw);
                else
                    add_object(line.text, input, number);
            }
        }
    }
    const PieceCounter& pieces() const { return pieces_; }
    std::int64_t bytes() const { return bytes_; }
    std::int64_t left_out() const { return left_out_; }  // lines

  private:
    void add_object(std::string_view line, const std::string& input, std::int64_t number) {
        try {
            keyed_.parse(line);
        } catch (const UsageError& error) {
            const std::string problem = cat(input, ": line ", number, ": ", error.what());
            if (!skip_invalid_) usage_error(problem);
            std::fprintf(stderr, "Left out %s\n", problem.c_str());
            ++left_out_;
            return;
        }
        for (const std::string& text : keyed_.strings(0)) pieces_.add(text);
    }

    bool is_plain_, skip_invalid_;
    KeyedStrings keyed_;
    PieceCounter pieces_;
    std::int64_t bytes_ = 0, left_out_ = 0;
};

TrainingText read_training_text(const ParsedArgs& args) {
    const bool is_plain = args.boolean("plain_text");
    if (args.text("json_key").empty() && !is_plain) usage_error("--json-key is empty; name a key or give --plain-text");
    TrainingText text(is_plain ? "" : args.text("json_key"), args.boolean("skip_invalid"));
    for (const std::string& path : training_inputs(args.list("input"), is_plain)) {
        std::printf("Reading %s\n", path.c_str());
        std::fflush(stdout);
        text.read(path);
    }
    if (text.left_out() > 0)
        std::fprintf(stderr, "Left out %lld invalid lines\n", static_cast<long long>(text.left_out()));
    if (text.pieces().counts().empty()) usage_error("--input holds no text to learn from");
    std::printf("Counted %zu different words in %.1f MB\n", text.pieces().counts().size(),
                static_cast<double>(text.bytes()) / 1048576);
    std::fflush(stdout);
    return text;
}

int train(const CommandArgs& args) {
    ArgParser parser("teratron tokenizer train",
                     "Learns a byte-level BPE tokenizer and writes vocab.json, merges.txt and tokenizer.json.");
    parser.option("input", ArgType::text)
        .values(ArgCount::one_or_more())
        .required()
        .help("files, patterns, folders or -, of JSON lines");
    parser.option("vocab-size", ArgType::integer).required().help("tokens in all, with 256 bytes and <|endoftext|>");
    parser.option("output", ArgType::text).required().help("folder to write to");
    parser.option("json-key", ArgType::text).defaults("text").help("key whose text is taken");
    parser.flag("plain-text").help("the inputs are plain text, not JSON lines");
    parser.flag("skip-invalid").help("name, count and leave out lines that are not valid, instead of ending there");
    parser.option("min-frequency", ArgType::integer).defaults("2").help("least count of a pair that is merged");
    parser.flag("overwrite").help("replace a tokenizer in the output folder");
    const ParsedArgs parsed = parser.parse(args);
    if (parsed.help_wanted) return 0;

    BpeTrainOptions options;
    options.vocab_size = parsed.integer("vocab_size");
    options.min_frequency = parsed.integer("min_frequency");
    check_train_options(options);
    const std::string output = parsed.text("output");
    if (!parsed.boolean("overwrite")) refuse_earlier_tokenizer(output);
    const TrainingText text = read_training_text(parsed);
    if (isatty(STDERR_FILENO) == 1) {
        options.progress = [](std::int64_t done, std::int64_t total) {
            if (done % 64 == 0 || done == total)
                std::fprintf(stderr, "\rLearning tokens: %lld of %lld%s", static_cast<long long>(done),
                             static_cast<long long>(total), done == total ? "\n" : "");
        };
    }
    const TrainedBpe trained = train_bpe(text.pieces(), options);
    const auto size = static_cast<std::int64_t>(trained.vocab.token_of_id.size());
    if (size < options.vocab_size)
        std::fprintf(stderr, "WARNING: the text has pairs for %lld tokens only, not %lld\n",
                     static_cast<long long>(size), static_cast<long long>(options.vocab_size));
    write_files(output, bpe_tokenizer_files(trained.vocab, trained.merges));
    std::printf("Wrote a vocabulary of %lld tokens to %s\n", static_cast<long long>(size), output.c_str());
    return 0;
}

/// Calls f(line, number) for every line of a file, or of standard input if `path` is empty.
template <class F>
void for_each_line(const std::string& path, const F& f) {
    LineBlockReader reader(path.empty() ? "/dev/stdin" : path);
    std::string block;
    std::int64_t number = 0;
    while (reader.next(block)) {
        for (std::string_view rest = block; !rest.empty();) {
            const Line line = take_line(rest);
            ++number;
            try {
                f(line.text);
            } catch (const UsageError& error) {
                usage_error(path.empty() ? "standard input" : path, ": line ", number, ": ", error.what());
            } catch (const JsonSyntaxError& error) {
                usage_error(path.empty() ? "standard input" : path, ": line ", number, ": byte ", error.offset(), ": ",
                            error.what());
            }
        }
    }
}

int encode(const CommandArgs& args) {
    ArgParser parser("teratron tokenizer encode", "Prints the token ids of each line.");
    parser.option("input", ArgType::text).help("text file (default: standard input)");
    parser.flag("json").help("each line is a JSON string; print JSON lists");
    add_tokenizer_flags(parser);
    const ParsedArgs parsed = parser.parse(args);
    if (parsed.help_wanted) return 0;
    const auto tokenizer = make_tokenizer(tokenizer_config(parsed));
    const auto encoder = tokenizer->make_encoder();
    const bool json = parsed.boolean("json");
    std::vector<std::int32_t> ids;
    std::string text, out;
    for_each_line(parsed.text("input"), [&](std::string_view line) {
        if (json) {
            JsonScanner scanner(line);
            if (!scanner.read_string(text)) usage_error("holds a lone surrogate escape");
            scanner.expect_end();
            line = text;
        }
        ids.clear();
        encoder->encode(line, ids);
        out = json ? "[" : "";
        for (std::size_t i = 0; i < ids.size(); ++i) {
            if (i > 0) out += json ? ", " : " ";
            out += std::to_string(ids[i]);
        }
        out += json ? "]\n" : "\n";
        std::fwrite(out.data(), 1, out.size(), stdout);
    });
    return 0;
}

int decode(const CommandArgs& args) {
    ArgParser parser("teratron tokenizer decode", "Prints the text of each line of token ids.");
    parser.option("input", ArgType::text)
        .help("file of ids separated by blanks or as JSON lists (default: standard input)");
    parser.flag("json").help("print each text as a JSON string");
    add_tokenizer_flags(parser);
    const ParsedArgs parsed = parser.parse(args);
    if (parsed.help_wanted) return 0;
    const auto tokenizer = make_tokenizer(tokenizer_config(parsed));
    const bool json = parsed.boolean("json");
    std::vector<std::int32_t> ids;
    for_each_line(parsed.text("input"), [&](std::string_view line) {
        ids.clear();
        JsonScanner scanner(line);
        const bool listed = scanner.accept('[');
        while (scanner.peek() != '\0' && scanner.peek() != ']') {
            const std::int64_t id = scanner.read_integer();
            if (id < 0 || id >= tokenizer->vocab_size())
                usage_error("token id ", id, " is outside the vocabulary of ", tokenizer->vocab_size(), " entries");
            ids.push_back(static_cast<std::int32_t>(id));
            scanner.accept(',');
        }
        if (listed) scanner.expect(']', "']'");
        scanner.expect_end();
        std::string text = replace_invalid_utf8(tokenizer->decode(ids));
        if (json) text = json_string(text);
        text += '\n';
        std::fwrite(text.data(), 1, text.size(), stdout);
    });
    return 0;
}

}  // namespace

int cmd_tokenizer(const CommandArgs& args) {
    const std::string what = args.empty() ? "" : args[0];
    const CommandArgs rest(args.begin() + (args.empty() ? 0 : 1), args.end());
    if (what == "train") return train(rest);
    if (what == "encode") return encode(rest);
    if (what == "decode") return decode(rest);
    if (what == "-h" || what == "--help") {
        std::printf(
            "usage: teratron tokenizer <what> [flags]\n\n"
            "  train    learn a byte-level BPE tokenizer from text\n"
            "  encode   text to token ids\n"
            "  decode   token ids to text\n\n"
            "  teratron tokenizer <what> --help   its flags\n");
        return 0;
    }
    if (what.empty()) usage_error("tokenizer: say what to do: train, encode or decode");
    usage_error("tokenizer: '", what, "' is unknown; there are train, encode and decode");
}

}  // namespace tera
