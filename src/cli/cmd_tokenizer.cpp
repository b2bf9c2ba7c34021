// teratron tokenizer train | encode | decode.
#include <unistd.h>

#include <cstdio>

#include "cli/commands.h"
#include "cli/tokenizer_flags.h"
#include "config/arg_parser.h"
#include "core/error.h"
#include "data/preprocess_lines.h"
#include "io/durable_file.h"
#include "token/json_scan.h"
#include "token/train_bpe.h"
#include "token/utf8.h"

namespace tera {
namespace {

void write_files(const std::string& folder, const std::vector<TokenizerFile>& files) {
    make_folders(folder);
    for (const TokenizerFile& file : files) write_file_durably(folder + "/" + file.name, file.bytes);
}

/// Counts the pieces of every text of a file: JSON lines under `key`, or plain lines if `key` is empty. Returns the
/// bytes read.
std::int64_t count_pieces(const std::string& input, const std::string& key, PieceCounter& pieces) {
    LineBlockReader reader(input);
    KeyedStrings keyed({key});
    std::string block;
    std::int64_t number = 0, bytes = 0;
    while (reader.next(block)) {
        bytes += static_cast<std::int64_t>(block.size());
        for (std::string_view rest = block; !rest.empty();) {
            const Line line = take_line(rest);
            ++number;
            if (key.empty()) {
                pieces.add(line.raw);
                continue;
            }
            try {
                keyed.parse(line.text);
            } catch (const UsageError& error) {
                usage_error(input, ": line ", number, ": ", error.what());
            }
            for (const std::string& text : keyed.strings(0)) pieces.add(text);
        }
    }
    return bytes;
}

int train(const CommandArgs& args) {
    ArgParser parser("teratron tokenizer train",
                     "Learns a byte-level BPE tokenizer and writes vocab.json, merges.txt and tokenizer.json.");
    parser.option("input", ArgType::text).values(ArgCount::one_or_more()).required().help("files of JSON lines");
    parser.option("vocab-size", ArgType::integer).required().help("tokens in all, with 256 bytes and <|endoftext|>");
    parser.option("output", ArgType::text).required().help("folder to write to");
    parser.option("json-key", ArgType::text).defaults("text").help("key whose text is taken");
    parser.flag("plain-text").help("the inputs are plain text, not JSON lines");
    parser.option("min-frequency", ArgType::integer).defaults("2").help("least count of a pair that is merged");
    const ParsedArgs parsed = parser.parse(args);
    if (parsed.help_wanted) return 0;

    BpeTrainOptions options;
    options.vocab_size = parsed.integer("vocab_size");
    options.min_frequency = parsed.integer("min_frequency");
    check_train_options(options);
    const std::string key = parsed.boolean("plain_text") ? "" : parsed.text("json_key");
    if (key.empty() && !parsed.boolean("plain_text"))
        usage_error("--json-key is empty; name a key or give --plain-text");
    PieceCounter pieces;
    std::int64_t bytes = 0;
    for (const std::string& input : parsed.list("input")) {
        std::printf("Reading %s\n", input.c_str());
        std::fflush(stdout);
        bytes += count_pieces(input, key, pieces);
    }
    std::printf("Counted %zu different words in %.1f MB\n", pieces.counts().size(),
                static_cast<double>(bytes) / 1048576);
    std::fflush(stdout);
    if (isatty(STDERR_FILENO) == 1) {
        options.progress = [](std::int64_t done, std::int64_t total) {
            if (done % 64 == 0 || done == total)
                std::fprintf(stderr, "\rLearning tokens: %lld of %lld%s", static_cast<long long>(done),
                             static_cast<long long>(total), done == total ? "\n" : "");
        };
    }
    const TrainedBpe trained = train_bpe(pieces, options);
    const auto size = static_cast<std::int64_t>(trained.vocab.token_of_id.size());
    if (size < options.vocab_size)
        std::fprintf(stderr, "WARNING: the text has pairs for %lld tokens only, not %lld\n",
                     static_cast<long long>(size), static_cast<long long>(options.vocab_size));
    const std::string output = parsed.text("output");
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
