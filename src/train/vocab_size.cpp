#include "train/vocab_size.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <sstream>

#include "core/error.h"
#include "io/json_file.h"
#include "token/sentencepiece_tokenizer.h"
#include "token/tiktoken_tokenizer.h"

namespace tera {
namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& path) {
    std::error_code ignored;
    return !path.empty() && fs::is_regular_file(path, ignored);
}

/// Sizes people mean when they name a tokenizer that is not on this machine. The first name that is a substring wins.
struct KnownSize {
    const char* part;
    std::int64_t size;
};
constexpr std::array known_tokenizers = {
    KnownSize{"apertus", 131072},
    KnownSize{"swissai-tokenizer", 131072},
    KnownSize{"llama3", 128256},
    KnownSize{"llama-3", 128256},
    KnownSize{"llama2", 32000},
    KnownSize{"llama-2", 32000},
    KnownSize{"mixtral", 32000},
    KnownSize{"mistral-7b-v0.1", 32000},
    KnownSize{"gpt2", 50257},
    KnownSize{"bert-base-uncased", 30522},
    KnownSize{"bert-large-uncased", 30522},
};

std::int64_t known_size(const std::string& name) {
    std::string lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    for (const KnownSize& known : known_tokenizers) {
        if (lower.find(known.part) != std::string::npos) return known.size;
    }
    return 0;
}

/// Entries of a GPT-2 vocab.json.
std::int64_t count_json_vocab(const std::string& path) {
    const nlohmann::json vocab = read_json_file(path);
    if (!vocab.is_object() || vocab.empty()) usage_error(path, ": expected a JSON object from tokens to ids");
    return static_cast<std::int64_t>(vocab.size());
}

/// Lines of a BERT vocabulary, plus the tokens that are added where they are missing.
std::int64_t count_wordpiece_vocab(const std::string& path, std::int64_t extra_ids) {
    std::istringstream lines(read_text_file(path));
    std::set<std::string> special;
    std::int64_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
        while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
        if (line == "[BOS]" || line == "[EOS]" || line.rfind("<extra_id_", 0) == 0) special.insert(line);
    }
    const auto add = [&](const std::string& token) { count += special.count(token) == 0 ? 1 : 0; };
    add("[BOS]");
    add("[EOS]");
    for (std::int64_t i = 0; i < extra_ids; ++i) add(cat("<extra_id_", i, ">"));
    return count;
}

/// Model entries and added tokens of a tokenizer.json.
std::int64_t count_tokenizer_json(const std::string& path) {
    const nlohmann::json root = read_json_file(path);
    std::set<std::string> tokens;
    const nlohmann::json vocab = root.value("/model/vocab"_json_pointer, nlohmann::json());
    if (vocab.is_object()) {
        for (const auto& entry : vocab.items()) tokens.insert(entry.key());
    } else if (vocab.is_array()) {  // Unigram: [token, score] pairs
        for (const nlohmann::json& pair : vocab) {
            if (pair.is_array() && !pair.empty() && pair[0].is_string()) tokens.insert(pair[0].get<std::string>());
        }
    } else {
        usage_error(path, ": there is no model vocabulary in it");
    }
    if (root.contains("added_tokens") && root["added_tokens"].is_array()) {
        for (const nlohmann::json& token : root["added_tokens"]) {
            if (token.is_object() && token.contains("content") && token["content"].is_string())
                tokens.insert(token["content"].get<std::string>());
        }
    }
    return static_cast<std::int64_t>(tokens.size());
}

/// --vocab-size, else the usual size, for a tokenizer whose file is not there.
VocabSize assumed(const RunConfig& config, std::int64_t usual, const std::string& file_flag, const std::string& file) {
    std::error_code unreadable;  // counts as not there
    const bool folder = fs::is_directory(file, unreadable);
    const std::string missing = file.empty() ? "no " + file_flag + " given"
                                : folder     ? file + " is a folder without a vocabulary"
                                             : file + " is not there";
    if (config.vocab_size) return {*config.vocab_size, "--vocab-size; " + missing};
    if (folder) usage_error(file_flag, " ", missing, "; name the file, or give --vocab-size");
    if (usual > 0) return {usual, cat("usual size of ", config.tokenizer_type, "; ", missing)};
    usage_error(config.tokenizer_type, ": ", missing, ", and it has no usual size; give --vocab-size");
}

VocabSize wordpiece_size(const RunConfig& config) {
    if (is_file(config.vocab_file))
        return {count_wordpiece_vocab(config.vocab_file, config.vocab_extra_ids), "counted in " + config.vocab_file};
    const std::int64_t words = config.tokenizer_type == "BertWordPieceCase" ? 28996 : 30522;
    return assumed(config, words + 2 + config.vocab_extra_ids, "--vocab-file", config.vocab_file);
}

VocabSize hugging_face_size(const RunConfig& config) {
    const std::string& model = config.tokenizer_model;
    if (model.empty()) usage_error("HuggingFaceTokenizer needs --tokenizer-model (a folder or a name)");
    const std::string in_folder = (fs::path(model) / "tokenizer.json").string();
    for (const std::string& path : {in_folder, model}) {
        if (is_file(path)) return {count_tokenizer_json(path), "counted in " + path};
    }
    const std::int64_t usual = known_size(model);
    if (!config.vocab_size && usual > 0) return {usual, cat("usual size of ", model, "; it is not a folder here")};
    return assumed(config, 0, "--tokenizer-model", model);
}

VocabSize sentencepiece_size(const RunConfig& config, std::int64_t usual) {
    if (!is_file(config.tokenizer_model)) return assumed(config, usual, "--tokenizer-model", config.tokenizer_model);
    // The pieces are not always the whole vocabulary: which special tokens are added depends on the model.
    const auto flavour =
        config.tokenizer_type == "SentencePieceTokenizer" ? SentencePieceFlavour::megatron : SentencePieceFlavour::gpt;
    const bool has_extra_ids = flavour == SentencePieceFlavour::megatron;
    const auto tokenizer =
        load_sentencepiece(config.tokenizer_model, flavour, has_extra_ids ? config.vocab_extra_ids : 0);
    return {tokenizer->vocab_size(), "counted in " + config.tokenizer_model};
}

}  // namespace

VocabSize find_vocab_size(const RunConfig& config) {
    const std::string& type = config.tokenizer_type;
    if (type == "GPT2BPETokenizer") {
        if (is_file(config.vocab_file)) return {count_json_vocab(config.vocab_file), "counted in " + config.vocab_file};
        return assumed(config, 50257, "--vocab-file", config.vocab_file);
    }
    if (type == "BertWordPieceLowerCase" || type == "BertWordPieceCase") return wordpiece_size(config);
    if (type == "HuggingFaceTokenizer") return hugging_face_size(config);
    if (type == "Llama2Tokenizer") return sentencepiece_size(config, 32000);
    if (type == "SentencePieceTokenizer" || type == "GPTSentencePieceTokenizer") return sentencepiece_size(config, 0);
    if (type == "TikTokenizer") {
        if (config.vocab_size || !is_file(config.tokenizer_model) || config.tokenizer_model.ends_with(".json"))
            return {config.vocab_size.value_or(131072),
                    config.vocab_size ? "--vocab-size" : "usual size of TikTokenizer"};
        TokenizerConfig flags;
        flags.tokenizer_model = config.tokenizer_model;
        flags.tiktoken_pattern = config.tiktoken_pattern;
        return {load_tiktoken(flags)->vocab_size(), "counted in " + config.tokenizer_model};
    }
    if (type == "NullTokenizer") {
        if (!config.vocab_size) usage_error("NullTokenizer needs --vocab-size");
        return {*config.vocab_size + 1, "--vocab-size and the end-of-document token of NullTokenizer"};
    }
    return assumed(config, 0, "--tokenizer-model", config.tokenizer_model);
}

}  // namespace tera
