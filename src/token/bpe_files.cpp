#include "token/bpe_files.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <unordered_set>

#include "core/error.h"
#include "token/json_scan.h"
#include "token/utf8.h"

namespace tera {

namespace {

void check_utf8(std::string_view bytes, const std::string& file) {
    const std::size_t bad = find_invalid_utf8(bytes);
    if (bad != std::string_view::npos) usage_error(file, ": byte ", bad, " is not valid UTF-8");
}

/// A token in an error message: at most 40 bytes, on one line.
std::string shown(std::string_view token) {
    std::string text;
    for (const char c : token.substr(0, 40)) text += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    return replace_invalid_utf8(text) + (token.size() > 40 ? "..." : "");
}

struct VocabEntry {
    std::string token;
    std::int64_t id;
};

std::vector<VocabEntry> read_vocab_entries(JsonScanner& json, const std::string& file) {
    std::vector<VocabEntry> entries;
    json.expect('{', "an object of tokens and ids");
    if (json.accept('}')) return entries;
    std::string token;
    do {
        if (!json.read_string(token)) json.fail("a token holds a lone surrogate");
        json.expect(':', "':'");
        entries.push_back({token, json.read_integer()});
        if (entries.size() >= std::numeric_limits<std::int32_t>::max()) usage_error(file, ": too many tokens");
    } while (json.accept(','));
    json.expect('}', "',' or '}'");
    json.expect_end();
    return entries;
}

/// The next line of `rest`, which ends at \n, \r\n, \r or the end; `terminated` tells whether there was a line end.
std::string_view take_line(std::string_view& rest, bool& terminated) {
    const std::size_t stop = rest.find_first_of("\r\n");
    terminated = stop != std::string_view::npos;
    const std::string_view line = rest.substr(0, stop);
    const std::size_t end_length = terminated && rest.substr(stop, 2) == "\r\n" ? 2 : 1;
    rest.remove_prefix(terminated ? stop + end_length : rest.size());
    return line;
}

std::vector<std::string_view> split_blanks(std::string_view line) {
    constexpr std::string_view blanks = " \t\v\f\x1c\x1d\x1e\x1f";
    std::vector<std::string_view> words;
    for (std::size_t at = line.find_first_not_of(blanks); at != std::string_view::npos;) {
        const std::size_t stop = line.find_first_of(blanks, at);
        words.push_back(line.substr(at, stop - at));
        at = line.find_first_not_of(blanks, std::min(stop, line.size()));
    }
    return words;
}

}  // namespace

BpeVocab parse_vocab_json(std::string_view bytes, const std::string& file) {
    check_utf8(bytes, file);
    std::vector<VocabEntry> entries;
    try {
        JsonScanner json(bytes);
        entries = read_vocab_entries(json, file);
    } catch (const JsonSyntaxError& error) {
        usage_error(file, ": byte ", error.offset(), ": ", error.what(),
                    "; a vocab.json is one object {\"token\": id}");
    }
    if (entries.empty()) usage_error(file, ": the vocabulary is empty");
    const auto size = static_cast<std::int64_t>(entries.size());
    std::unordered_set<std::string_view> seen;
    BpeVocab vocab;
    vocab.token_of_id.resize(entries.size());
    std::vector<bool> taken(entries.size());
    for (const auto& [token, id] : entries) {
        if (!seen.insert(token).second) usage_error(file, ": token \"", shown(token), "\" is there twice");
        if (id < 0 || id >= size)
            usage_error(file, ": token \"", shown(token), "\" has id ", id, ", but ", size,
                        " tokens must have the ids 0 to ", size - 1);
        if (taken[static_cast<std::size_t>(id)])
            usage_error(file, ": id ", id, " is given to \"", shown(token), "\" and to another token");
        taken[static_cast<std::size_t>(id)] = true;
        vocab.token_of_id[static_cast<std::size_t>(id)] = token;
    }
    return vocab;
}

BpeMerges parse_merges(std::string_view bytes, const std::string& file) {
    check_utf8(bytes, file);
    BpeMerges merges;
    bool terminated = false;
    const std::string_view header = take_line(bytes, terminated);
    const bool has_header = header.starts_with("#version");
    const auto refuse = [&] {
        usage_error(file, ": holds no merges; expected a header \"#version: 0.2\" and one pair of tokens a line; ",
                    "is it the vocabulary?");
    };
    if (split_blanks(header) == std::vector<std::string_view>{"{"}) refuse();  // the lines of JSON may look like pairs
    if (!has_header && split_blanks(header).size() == 2)
        merges.warnings.push_back(cat(file, ": line 1 (\"", shown(header),
                                      "\") is taken as the header and not as a merge; begin the file with "
                                      "\"#version: 0.2\""));
    for (std::size_t number = 2; !bytes.empty(); ++number) {
        const std::string_view line = take_line(bytes, terminated);
        const auto words = split_blanks(line);
        if (!terminated) {
            if (!words.empty())
                merges.warnings.push_back(cat(file, ": line ", number, " (\"", shown(line),
                                              "\") has no newline and is dropped, as Megatron does; add a newline"));
            break;
        }
        if (words.size() != 2)
            usage_error(file, ": line ", number, ": expected two symbols, found ", words.size(), " in \"", shown(line),
                        "\"");
        merges.pairs.emplace_back(words[0], words[1]);
    }
    if (merges.pairs.empty() && !has_header) refuse();
    if (merges.pairs.size() >= std::numeric_limits<std::int32_t>::max() / 4) usage_error(file, ": too many merges");
    return merges;
}

std::string vocab_json_text(const BpeVocab& vocab) {
    std::string out = "{";
    for (std::size_t id = 0; id < vocab.token_of_id.size(); ++id) {
        if (id > 0) out += ',';
        out += json_string(vocab.token_of_id[id]);
        out += ':';
        out += std::to_string(id);
    }
    return out + "}";
}

std::string merges_text(const BpeMerges& merges) {
    std::string out = "#version: 0.2\n";
    for (const auto& [left, right] : merges.pairs) out.append(left).append(" ").append(right).append("\n");
    return out;
}

std::string tokenizer_json_text(const BpeVocab& vocab, const BpeMerges& merges) {
    std::string added;
    for (std::size_t id = 0; id < vocab.token_of_id.size(); ++id) {
        if (vocab.token_of_id[id] != end_of_text) continue;
        added = cat("\n    {\"id\": ", id, ", \"content\": \"", end_of_text,
                    "\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, "
                    "\"special\": true}\n  ");
    }
    std::string out = cat("{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n",
                          "  \"added_tokens\": [", added, "],\n  \"normalizer\": null,\n",
                          "  \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
                          "\"trim_offsets\": true, \"use_regex\": true},\n",
                          "  \"post_processor\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
                          "\"trim_offsets\": false, \"use_regex\": true},\n",
                          "  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
                          "\"trim_offsets\": true, \"use_regex\": true},\n",
                          "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": null,\n",
                          "    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n",
                          "    \"fuse_unk\": false,\n    \"byte_fallback\": false,\n    \"ignore_merges\": false,\n",
                          "    \"vocab\": ");
    out += vocab_json_text(vocab);
    out += ",\n    \"merges\": [";
    bool first = true;
    for (const auto& [left, right] : merges.pairs) {
        out += first ? "\n      [" : ",\n      [";
        first = false;
        out += json_string(left);
        out += ", ";
        out += json_string(right);
        out += ']';
    }
    return out + "\n    ]\n  }\n}\n";
}

std::string tokenizer_config_text() {
    return cat("{\n  \"tokenizer_class\": \"GPT2Tokenizer\",\n  \"add_prefix_space\": false,\n", "  \"bos_token\": \"",
               end_of_text, "\",\n  \"eos_token\": \"", end_of_text, "\",\n  \"unk_token\": \"", end_of_text,
               "\",\n  \"clean_up_tokenization_spaces\": false\n}\n");
}

std::vector<TokenizerFile> bpe_tokenizer_files(const BpeVocab& vocab, const BpeMerges& merges) {
    return {{"vocab.json", vocab_json_text(vocab)},
            {"merges.txt", merges_text(merges)},
            {"tokenizer.json", tokenizer_json_text(vocab, merges)},
            {"tokenizer_config.json", tokenizer_config_text()}};
}

std::string read_token_file(const std::string& path, std::size_t max_bytes) {
    std::ifstream in(path, std::ios::binary);
    if (!in) usage_error(path, ": cannot be opened: ", std::strerror(errno));
    std::string bytes;
    std::vector<char> block(1 << 16);
    while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
        bytes.append(block.data(), static_cast<std::size_t>(in.gcount()));
        if (bytes.size() > max_bytes) usage_error(path, ": larger than ", max_bytes, " bytes; is this the right file?");
    }
    if (in.bad()) usage_error(path, ": cannot be read (is it a folder?)");
    return bytes;
}

}  // namespace tera
