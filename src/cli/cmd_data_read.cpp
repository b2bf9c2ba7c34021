// teratron data inspect | export.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/cmd_data.h"
#include "cli/tokenizer_flags.h"
#include "config/arg_parser.h"
#include "core/error.h"
#include "data/export.h"
#include "data/inspect.h"
#include "io/durable_file.h"
#include "io/json_file.h"
#include "token/json_scan.h"
#include "token/utf8.h"

namespace tera {
namespace {

/// The tokenizer of the flags; null if none was named.
std::unique_ptr<Tokenizer> optional_tokenizer(const ParsedArgs& args) {
    for (const char* name : {"tokenizer_type", "vocab_file", "merge_file", "tokenizer_model"})
        if (args.given(name)) return make_tokenizer(tokenizer_config(args));
    return nullptr;
}

/// PREFIX, also written as PREFIX.bin or PREFIX.idx.
std::string prefix_of(std::string path) {
    if (path.ends_with(".bin") || path.ends_with(".idx")) path.resize(path.size() - 4);
    return path;
}

struct Sample {
    std::int64_t document;
    std::vector<std::int32_t> ids;  // the first ones
    std::int64_t length;            // all of it
};

std::vector<Sample> first_samples(const std::string& prefix, std::int64_t documents, std::int64_t tokens) {
    const IndexedDataset data(prefix);
    const SequenceIndex& index = data.index();
    std::vector<Sample> samples;
    for (std::int64_t d = 0; d < std::min(documents, index.documents()); ++d) {
        Sample sample{d, {}, 0};
        for (std::int64_t i = index.document_index(d); i < index.document_index(d + 1); ++i) {
            const auto before = static_cast<std::int64_t>(sample.ids.size());
            const std::int64_t count = std::min<std::int64_t>(index.length(i), tokens - before);
            sample.length += index.length(i);
            sample.ids.resize(static_cast<std::size_t>(before + count));
            data.get(i, 0, count, sample.ids.data() + before);
        }
        samples.push_back(std::move(sample));
    }
    return samples;
}

/// The text of a sample; nothing if the tokenizer does not know all its ids.
std::optional<std::string> decoded(const Sample& sample, const Tokenizer& tokenizer) {
    for (const std::int32_t id : sample.ids)
        if (id < 0 || id >= tokenizer.vocab_size()) return std::nullopt;
    return replace_invalid_utf8(tokenizer.decode(sample.ids));
}

std::string ids_text(const std::vector<std::int32_t>& ids) {
    std::string out;
    for (const std::int32_t id : ids) out += (out.empty() ? "" : " ") + std::to_string(id);
    return out;
}

void print_samples(const std::vector<Sample>& samples, const Tokenizer* tokenizer) {
    for (const Sample& sample : samples) {
        const bool is_cut = static_cast<std::int64_t>(sample.ids.size()) < sample.length;
        std::printf("document %lld, %lld tokens%s\n", static_cast<long long>(sample.document),
                    static_cast<long long>(sample.length),
                    is_cut ? cat(", the first ", sample.ids.size()).c_str() : "");
        std::printf("  ids  %s\n", ids_text(sample.ids).c_str());
        if (tokenizer == nullptr) continue;
        const auto text = decoded(sample, *tokenizer);
        std::printf("  text %s\n", text ? json_string(*text).c_str() : "(holds ids that the tokenizer does not have)");
    }
}

nlohmann::json samples_json(const std::vector<Sample>& samples, const Tokenizer* tokenizer) {
    nlohmann::json out = nlohmann::json::array();
    for (const Sample& sample : samples) {
        nlohmann::json entry = {{"document", sample.document}, {"tokens", sample.length}, {"ids", sample.ids}};
        if (tokenizer != nullptr) {
            const auto text = decoded(sample, *tokenizer);
            entry["text"] = text ? nlohmann::json(*text) : nlohmann::json();
        }
        out.push_back(std::move(entry));
    }
    return out;
}

std::int64_t not_negative(const ParsedArgs& args, const std::string& name) {
    const std::int64_t value = args.integer(name);
    if (value < 0) usage_error("--", name, " ", value, " is out of range; give 0 or more");
    return value;
}

/// The output may be none of the files that are read, by whatever name or link it is called.
void refuse_input_as_output(const std::string& output, const std::string& prefix, const ParsedArgs& args) {
    for (const std::string& input : {prefix + ".bin", prefix + ".idx", args.text("vocab_file"), args.text("merge_file"),
                                     args.text("tokenizer_model")}) {
        std::error_code not_there;
        if (std::filesystem::equivalent(output, input, not_there))
            usage_error("--output ", output, " is ", input, ", which is read; give another file");
    }
}

}  // namespace

int cmd_data_inspect(const CommandArgs& args) {
    ArgParser parser("teratron data inspect",
                     "Says what a .bin/.idx pair holds. The index is always checked whole; --check reads every token.");
    parser.positional("prefix").values(ArgCount::one_or_more()).help("path without suffix; several are allowed");
    parser.flag("check").help("read the whole .bin: sizes, every id, checksums");
    parser.flag("json").help("print one JSON object per line");
    parser.option("samples", ArgType::integer).defaults("3").help("documents to show");
    parser.option("sample-tokens", ArgType::integer).defaults("64").help("tokens of each to show");
    add_tokenizer_flags(parser);
    const ParsedArgs parsed = parser.parse(args);
    if (parsed.help_wanted) return 0;
    const std::unique_ptr<Tokenizer> tokenizer = optional_tokenizer(parsed);
    InspectOptions options;
    options.check = parsed.boolean("check");
    if (tokenizer) {
        options.vocab_size = tokenizer->vocab_size();
        options.eod = tokenizer->eod();
    } else if (parsed.has("vocab_size")) {
        options.vocab_size = not_negative(parsed, "vocab_size");
    }
    const std::int64_t samples = not_negative(parsed, "samples");
    const std::int64_t sample_tokens = not_negative(parsed, "sample_tokens");
    for (const std::string& path : parsed.list("prefix")) {
        const Inspection found = inspect_dataset(prefix_of(path), options);
        const std::vector<Sample> first = first_samples(found.prefix, samples, sample_tokens);
        if (parsed.boolean("json")) {
            nlohmann::json json = inspection_json(found);
            json["samples"] = samples_json(first, tokenizer.get());
            std::printf("%s\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
            continue;
        }
        std::fputs(inspection_text(found).c_str(), stdout);
        if (found.check && options.eod)
            std::printf("  %lld of %lld documents with tokens end in the end-of-document token\n",
                        static_cast<long long>(found.check->documents_ending_in_eod),
                        static_cast<long long>(found.documents - found.document_lengths.zeros));
        print_samples(first, tokenizer.get());
    }
    return 0;
}

int cmd_data_export(const CommandArgs& args) {
    ArgParser parser("teratron data export", "Turns the tokens of a .bin/.idx pair back into text.");
    parser.positional("prefix").help("path without suffix");
    parser.option("output", ArgType::text).help("file to write (default: standard output)");
    parser.option("format", ArgType::text)
        .choices({"jsonl", "text", "ids"})
        .defaults("jsonl")
        .help(
            "JSON lines as preprocess reads them; plain text with a blank line between documents; or lists of ids, "
            "which need no tokenizer");
    parser.option("json-key", ArgType::text).defaults("text").help("key of the text");
    parser.flag("keep-eod").help("keep the end-of-document token at the end of a document");
    parser.option("first", ArgType::integer).defaults("0").help("document to begin with");
    parser.option("count", ArgType::integer).help("documents to write (default: all)");
    add_tokenizer_flags(parser);
    const ParsedArgs parsed = parser.parse(args);
    if (parsed.help_wanted) return 0;
    ExportOptions options;
    const std::string format = parsed.text("format");
    options.format = format == "ids" ? ExportFormat::ids : format == "text" ? ExportFormat::text : ExportFormat::jsonl;
    options.key = parsed.text("json_key");
    options.keep_eod = parsed.boolean("keep_eod");
    options.first = not_negative(parsed, "first");
    if (parsed.has("count")) options.count = not_negative(parsed, "count");
    const std::unique_ptr<Tokenizer> tokenizer = optional_tokenizer(parsed);
    if (!tokenizer && options.format != ExportFormat::ids)
        usage_error("data export --format ", format, " needs the tokenizer the file was made with: give ",
                    "--tokenizer-type and its files, or --format ids");
    const std::string prefix = prefix_of(parsed.text("prefix")), output = parsed.text("output");
    refuse_input_as_output(output, prefix, parsed);
    const IndexedDataset data(prefix);
    ExportResult result;
    if (output.empty()) {
        result = export_dataset(data, tokenizer.get(), options,
                                [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); });
    } else {
        DurableFile file(output);
        std::string buffer;
        const auto flush = [&] {
            file.out().append(buffer);
            buffer.clear();
        };
        result = export_dataset(data, tokenizer.get(), options, [&](std::string_view text) {
            buffer += text;
            if (buffer.size() >= std::size_t{1} << 20) flush();
        });
        flush();
        file.commit();
        std::printf("Wrote %s: %lld documents, %lld tokens\n", output.c_str(), static_cast<long long>(result.documents),
                    static_cast<long long>(result.tokens));
    }
    if (result.invalid > 0)
        std::fprintf(stderr, "WARNING: %lld documents are not valid UTF-8; U+FFFD stands for what is not\n",
                     static_cast<long long>(result.invalid));
    return 0;
}

}  // namespace tera
