// Tokenising on one thread, cold: every pass begins with a new encoder, which has seen no text. See run_tokenize.sh.
//
//   tokenize --corpus FILE.jsonl (--vocab V.json --merges M.txt | --ranks R.tiktoken[.gz]) [--passes 1] [--ids OUT]
//   tokenize --worst-case        (--vocab V.json --merges M.txt | --ranks R.tiktoken[.gz]) [--megabytes 1,10,100]
//            [--pattern cl100k]
//   tokenize --worst-case --type TOKENIZER-TYPE --file (vocab.txt | model | tokenizer.json) [--megabytes 1,10]
//
// Prints one JSON object per pass. --ids writes the ids as 32-bit numbers, -1 behind each document.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/preprocess_lines.h"
#include "io/byte_source.h"
#include "token/bpe_encoder.h"
#include "token/bpe_files.h"
#include "token/byte_level.h"
#include "token/tokenizer.h"

namespace tera {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }
/// Time that this process had a processor: what is left when other programs want it too.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Options {
    std::string corpus, vocab, merges, ranks, ids;
    std::string megabytes = "1,10,100", pattern, type, file;
    int passes = 1;
    bool worst_case = false;
};

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string flag = argv[i];
        if (flag == "--worst-case") {
            options.worst_case = true;
            continue;
        }
        if (i + 1 == argc) usage_error(flag, " needs a value");
        const std::string value = argv[++i];
        if (flag == "--corpus")
            options.corpus = value;
        else if (flag == "--vocab")
            options.vocab = value;
        else if (flag == "--merges")
            options.merges = value;
        else if (flag == "--ranks")
            options.ranks = value;
        else if (flag == "--ids")
            options.ids = value;
        else if (flag == "--megabytes")
            options.megabytes = value;
        else if (flag == "--pattern")
            options.pattern = value;
        else if (flag == "--type")
            options.type = value;
        else if (flag == "--file")
            options.file = value;
        else if (flag == "--passes")
            options.passes = std::stoi(value);
        else
            usage_error("unknown flag ", flag);
    }
    if (options.type.empty() && options.ranks.empty() && (options.vocab.empty() || options.merges.empty()))
        usage_error("give --vocab and --merges, or --ranks, or --worst-case with --type and --file");
    if (options.corpus.empty() != options.worst_case) usage_error("give either --corpus or --worst-case");
    return options;
}

std::string from_base64(std::string_view text) {
    constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    unsigned bits = 0, held = 0;
    for (const char c : text) {
        if (c == '=') break;
        bits = bits << 6 | static_cast<unsigned>(alphabet.find(c));
        held += 6;
        if (held >= 8) bytes += static_cast<char>(bits >> (held -= 8) & 0xFF);
    }
    return bytes;
}

/// "token rank" per line, the token in base64, in the order of the ranks; packed or not.
std::vector<std::string> read_ranks(const std::string& path) {
    LineBlockReader reader(path);
    std::vector<std::string> tokens;
    std::string block;
    while (reader.next(block)) {
        for (std::string_view rest = block; !rest.empty();) {
            const std::string_view line = take_line(rest).text;
            tokens.push_back(from_base64(line.substr(0, line.find(' '))));
        }
    }
    return tokens;
}

struct Vocabulary {
    std::string name;
    PretokenPattern pattern;
    BpeModel model;
};

Vocabulary load(const Options& options) {
    if (!options.ranks.empty())
        return {"cl100k", PretokenPattern::cl100k, BpeModel::from_ranks(read_ranks(options.ranks))};
    return {"gpt2", PretokenPattern::gpt2,
            BpeModel(parse_vocab_json(read_token_file(options.vocab), options.vocab),
                     parse_merges(read_token_file(options.merges), options.merges))};
}

std::vector<std::string> read_corpus(const std::string& path) {
    LineBlockReader reader(path);
    KeyedStrings line({"text"});
    std::vector<std::string> documents;
    std::string block;
    while (reader.next(block)) {
        for (std::string_view rest = block; !rest.empty();) {
            line.parse(take_line(rest).text);
            documents.push_back(line.strings(0).front());
        }
    }
    return documents;
}

void write_ids(const std::string& path, const Vocabulary& vocabulary, const std::vector<std::string>& documents) {
    std::ofstream out(path, std::ios::binary);
    BpeEncoder encoder(vocabulary.model, vocabulary.pattern);
    std::vector<std::int32_t> ids;
    for (const std::string& document : documents) {
        ids.clear();
        encoder.encode(document, ids);
        ids.push_back(-1);
        out.write(reinterpret_cast<const char*>(ids.data()), static_cast<std::streamsize>(ids.size() * 4));
    }
    if (!out) usage_error("cannot write ", path);
}

void bench_corpus(const Options& options) {
    const std::vector<std::string> documents = read_corpus(options.corpus);
    std::size_t bytes = 0;
    for (const std::string& document : documents) bytes += document.size();
    const auto loading = Clock::now();
    const Vocabulary vocabulary = load(options);
    const double load_seconds = seconds_since(loading);
    for (int pass = 0; pass < options.passes; ++pass) {
        const auto start = Clock::now();
        const double cpu_start = cpu_seconds();
        const auto encoder = std::make_unique<BpeEncoder>(vocabulary.model, vocabulary.pattern);
        std::vector<std::int32_t> ids;
        std::size_t tokens = 0;
        for (const std::string& document : documents) {
            ids.clear();
            encoder->encode(document, ids);
            tokens += ids.size();
        }
        const double seconds = seconds_since(start), cpu = cpu_seconds() - cpu_start;
        std::printf(
            "{\"program\": \"teratron\", \"vocabulary\": \"%s\", \"documents\": %zu, \"bytes\": %zu, "
            "\"tokens\": %zu, \"seconds\": %.4f, \"cpu_seconds\": %.4f, \"load_seconds\": %.3f}\n",
            vocabulary.name.c_str(), documents.size(), bytes, tokens, seconds, cpu, load_seconds);
        std::fflush(stdout);
    }
    if (!options.ids.empty()) write_ids(options.ids, vocabulary, documents);
}

struct NamedPattern {
    const char* name;
    PretokenPattern pattern;
};
constexpr NamedPattern patterns[] = {
    {"gpt2", PretokenPattern::gpt2},           {"cl100k", PretokenPattern::cl100k},
    {"llama3", PretokenPattern::llama3},       {"qwen2", PretokenPattern::qwen2},
    {"qwen3_5", PretokenPattern::qwen3_5},     {"tekken_v1", PretokenPattern::tekken_v1},
    {"tekken_v2", PretokenPattern::tekken_v2}, {"o200k", PretokenPattern::o200k},
};

/// What is repeated: one endless word, patterns, blanks, digits, scripts, apostrophes, marks, invalid bytes.
constexpr std::string_view repeated[] = {"a",       "ab",     "abcabd",  "aB",     " ",   "\n",  " \n",
                                         "\t",      "7",      "!",       "'",      "'s",  "!\n", "\u4e2d",
                                         "\u4e2dA", "\u0301", "\u0301A", "\u00a0", "\xff"};

std::vector<std::size_t> sizes_of(const std::string& megabytes) {
    std::vector<std::size_t> sizes;
    for (std::size_t at = 0; at < megabytes.size();) {
        const std::size_t comma = std::min(megabytes.find(',', at), megabytes.size());
        sizes.push_back(std::stoul(megabytes.substr(at, comma - at)) * 1000000);
        at = comma + 1;
    }
    return sizes;
}

/// Time per byte must not depend on the size. Prints nanoseconds per byte, of the processor, for each repeated text.
template <class MakeEncoder>
void bench_repeated(const std::string& vocabulary, const std::string& pattern, const Options& options,
                    const MakeEncoder& make_encoder) {
    for (const std::string_view unit : repeated) {
        std::printf("{\"vocabulary\": \"%s\", \"pattern\": \"%s\", \"repeated\": \"", vocabulary.c_str(),
                    pattern.c_str());
        for (const char c : unit) std::printf("%02x", static_cast<unsigned char>(c));
        std::printf("\", \"ns_per_byte\": [");
        const char* comma = "";
        for (const std::size_t size : sizes_of(options.megabytes)) {
            std::string text;
            text.reserve(size + unit.size());
            while (text.size() < size) text += unit;
            std::vector<std::int32_t> ids;
            const double start = cpu_seconds();
            make_encoder()->encode(text, ids);
            std::printf("%s%.2f", comma, (cpu_seconds() - start) * 1e9 / static_cast<double>(text.size()));
            std::fflush(stdout);
            comma = ", ";
        }
        std::printf("], \"megabytes\": [%s]}\n", options.megabytes.c_str());
    }
}

void bench_worst_case(const Options& options) {
    if (!options.type.empty()) {
        TokenizerConfig config;
        config.tokenizer_type = options.type;
        config.vocab_file = config.tokenizer_model = options.file;
        const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(config);
        const std::size_t folder = options.file.find_last_of('/');
        const std::string name = options.file.substr(folder == std::string::npos ? 0 : folder + 1);
        bench_repeated(name, options.type, options, [&] { return tokenizer->make_encoder(); });
        return;
    }
    const Vocabulary vocabulary = load(options);
    for (const NamedPattern& pattern : patterns) {
        if (!options.pattern.empty() && options.pattern != pattern.name) continue;
        bench_repeated(vocabulary.name, pattern.name, options,
                       [&] { return std::make_unique<BpeEncoder>(vocabulary.model, pattern.pattern); });
    }
}

}  // namespace

}  // namespace tera

int main(int argc, char** argv) {
    try {
        const tera::Options options = tera::parse(argc, argv);
        if (options.worst_case)
            tera::bench_worst_case(options);
        else
            tera::bench_corpus(options);
    } catch (const tera::UsageError& error) {
        std::fprintf(stderr, "tokenize: %s\n", error.what());
        return 2;
    }
}
