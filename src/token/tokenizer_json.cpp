#include "token/tokenizer_json.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "core/error.h"
#include "token/json_scan.h"
#include "token/utf8.h"

namespace tera {

namespace {

constexpr std::int64_t largest_id = (std::int64_t{1} << 24) - 1;

constexpr const char* wanted_file =
    "; HuggingFaceTokenizer wants a tokenizer.json (a vocab.json goes with GPT2BPETokenizer, a SentencePiece model "
    "with "
    "Llama2Tokenizer or SentencePieceTokenizer)";

/// A token in an error message: at most 40 bytes.
std::string shown(std::string_view token) {
    return replace_invalid_utf8(token.substr(0, 40)) + (token.size() > 40 ? "..." : "");
}

/// The double nearest to 10^n, n in 0..308.
double power_of_ten(int n) {
    const std::string text = "1e" + std::to_string(n);
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

/// A number as serde_json reads it: the digits that fit 64 bits, rounded, times or over a power of ten, rounded again.
/// That may differ from the nearest double by its last bit, and so decide between two ways to cut a piece that are
/// equally good.
std::optional<double> parse_score(std::string_view text) {
    const bool is_negative = text.starts_with('-');
    if (is_negative) text.remove_prefix(1);
    const std::size_t exponent_at = std::min(text.find_first_of("eE"), text.size());
    std::uint64_t digits = 0;
    std::int64_t exponent = 0;
    bool is_full = false, is_fraction = false;
    if (text.empty()) return std::nullopt;
    for (const char c : text.substr(0, exponent_at)) {
        if (c == '.') {
            is_fraction = true;
            continue;
        }
        if (c < '0' || c > '9') return std::nullopt;
        const auto digit = static_cast<std::uint64_t>(c - '0');
        is_full = is_full || digits > (~std::uint64_t{0} - digit) / 10;
        if (!is_full) digits = digits * 10 + digit;
        if (is_fraction != is_full) exponent += is_full ? 1 : -1;
    }
    if (exponent_at < text.size()) {
        std::string_view written = text.substr(exponent_at + 1);
        if (written.starts_with('+')) written.remove_prefix(1);
        int value = 0;
        const auto [stop, problem] = std::from_chars(written.data(), written.data() + written.size(), value);
        if (problem != std::errc() || stop != written.data() + written.size()) return std::nullopt;
        exponent += value;
    }
    auto result = static_cast<double>(digits);
    for (; exponent < -308 && result != 0; exponent += 308) result /= 1e308;
    if (result != 0) {
        if (exponent > 308) return std::nullopt;
        const double power = power_of_ten(static_cast<int>(std::abs(exponent)));
        result = exponent >= 0 ? result * power : result / power;
    }
    if (std::isinf(result)) return std::nullopt;
    return is_negative ? -result : result;
}

class Reader {
  public:
    Reader(std::string_view bytes, const std::string& file) : bytes_(bytes), scan_(bytes) { result_.file = file; }

    TokenizerJson read() {
        bool has_model = false;
        each_member([&](const std::string& key) {
            if (key == "model") {
                if (has_model) scan_.fail("a second \"model\"");
                has_model = true;
                read_model();
            } else if (key == "added_tokens") {
                read_added_tokens(read_value("added_tokens"));
            } else if (key == "normalizer") {
                result_.normalizer = read_value("normalizer");
            } else if (key == "pre_tokenizer") {
                result_.pre_tokenizer = read_value("pre_tokenizer");
            } else if (key == "post_processor") {
                result_.post_processor = read_value("post_processor");
            } else if (key == "decoder") {
                result_.decoder = read_value("decoder");
            } else if (key == "version") {
                const nlohmann::json version = read_value("version");
                if (version != "1.0")
                    usage_error(result_.file, ": version ", version.dump(), " is not known; there is \"1.0\"");
            } else {
                scan_.skip_value();  // truncation, padding
            }
        });
        scan_.expect_end();
        if (!has_model) usage_error(result_.file, ": has no \"model\"", wanted_file);
        check_model();
        return std::move(result_);
    }

    bool has_vocab() const { return has_vocab_; }

  private:
    /// read_member(key) reads the value.
    template <class ReadMember>
    void each_member(ReadMember&& read_member) {
        scan_.expect('{', "an object");
        if (scan_.accept('}')) return;
        do {
            const std::string key = read_text();
            scan_.expect(':', "':'");
            read_member(key);
        } while (scan_.accept(','));
        scan_.expect('}', "',' or '}'");
    }
    template <class ReadElement>
    void each_element(ReadElement&& read_element) {
        scan_.expect('[', "a list");
        if (scan_.accept(']')) return;
        do read_element();
        while (scan_.accept(','));
        scan_.expect(']', "',' or ']'");
    }
    std::string read_text() {
        std::string text;
        if (!scan_.read_string(text)) scan_.fail("a string holds a lone surrogate");
        return text;
    }
    nlohmann::json read_value(const char* name) {
        const std::size_t begin = scan_.offset();
        scan_.skip_value();
        return parse_json(bytes_.substr(begin, scan_.offset() - begin), result_.file + ": " + name);
    }
    double read_score() {
        scan_.peek();
        const std::size_t begin = scan_.offset();
        scan_.skip_value();
        const auto value = parse_score(bytes_.substr(begin, scan_.offset() - begin));
        if (!value) scan_.fail("expected a number");
        return *value;
    }

    void read_model() {
        result_.options = nlohmann::json::object();
        each_member([&](const std::string& key) {
            if (key == "vocab") {
                if (has_vocab_) scan_.fail("a second \"vocab\"");
                has_vocab_ = true;
                if (scan_.peek() == '{')
                    read_vocab();
                else
                    read_scored_vocab();
            } else if (key == "merges") {
                if (has_merges_) scan_.fail("second \"merges\"");
                has_merges_ = true;
                if (scan_.peek() == '[')
                    each_element([this] { read_merge(); });
                else
                    scan_.skip_value();
            } else {
                result_.options[key] = read_value("model");
            }
        });
    }

    void read_vocab() {
        std::unordered_map<std::string, std::size_t> place_of;
        each_member([&](const std::string& token) {
            const std::int64_t id = scan_.read_integer();
            if (id < 0 || id > largest_id)
                usage_error(result_.file, ": token \"", shown(token), "\" has id ", id, ", which is not in 0..",
                            largest_id);
            const auto [place, is_new] = place_of.try_emplace(token, result_.vocab.size());
            if (is_new)
                result_.vocab.emplace_back(token, static_cast<std::int32_t>(id));
            else
                result_.vocab[place->second].second = static_cast<std::int32_t>(id);  // the last counts
        });
    }

    void read_scored_vocab() {
        has_scores_ = true;
        each_element([this] {
            scan_.expect('[', "a token and its score");
            std::string token = read_text();
            scan_.expect(',', "','");
            result_.scores.push_back(read_score());
            scan_.expect(']', "']'");
            if (static_cast<std::int64_t>(result_.vocab.size()) > largest_id) scan_.fail("too many tokens");
            result_.vocab.emplace_back(std::move(token), static_cast<std::int32_t>(result_.vocab.size()));
        });
    }

    void read_merge() {
        if (scan_.peek() == '[') {
            scan_.accept('[');
            std::string left = read_text();
            scan_.expect(',', "','");
            std::string right = read_text();
            scan_.expect(']', "']'");
            result_.merges.emplace_back(std::move(left), std::move(right));
            return;
        }
        const std::string both = read_text();
        if (both.starts_with("#version")) return;
        const std::size_t space = both.find(' ');
        if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos)
            scan_.fail("a merge is not two tokens with a space between");
        result_.merges.emplace_back(both.substr(0, space), both.substr(space + 1));
    }

    void read_added_tokens(const nlohmann::json& list) {
        if (list.is_null()) return;
        if (!list.is_array()) usage_error(result_.file, ": added_tokens must be a list");
        for (const auto& token : list) {
            const JsonObject json(token, result_.file + ": added_tokens");
            if (json.integer("id", 0) < 0) json.fail("id", "must not be negative");
            result_.added_tokens.push_back(parse_added_token(json));
        }
    }

    void check_model() {
        const JsonObject options(result_.options, result_.file + ": model");
        // Old files name no type.
        const std::string guess = has_merges_                                            ? "BPE"
                                  : has_scores_                                          ? "Unigram"
                                  : result_.options.contains("max_input_chars_per_word") ? "WordPiece"
                                                                                         : "WordLevel";
        const std::string type = options.text("type", guess);
        if (type == "BPE")
            result_.model = TokenizerJson::Model::bpe;
        else if (type == "WordPiece")
            result_.model = TokenizerJson::Model::word_piece;
        else if (type == "Unigram")
            result_.model = TokenizerJson::Model::unigram;
        else
            usage_error(options.where(), ": \"", type, "\" is not supported; known are BPE, WordPiece and Unigram");
        if (result_.vocab.empty()) usage_error(options.where(), ": the vocabulary is empty");
        if (has_scores_ != (result_.model == TokenizerJson::Model::unigram))
            usage_error(options.where(), ": the vocabulary of ", type, " must be ",
                        has_scores_ ? "an object of tokens and ids" : "a list of tokens and scores");
        std::vector<bool> taken;
        for (const auto& [token, id] : result_.vocab) {
            const auto at = static_cast<std::size_t>(id);
            if (taken.size() <= at) taken.resize(at + 1);
            if (taken[at])
                usage_error(options.where(), ": id ", id, " is given to \"", shown(token), "\" and to another token");
            taken[at] = true;
        }
    }

    std::string_view bytes_;
    JsonScanner scan_;
    TokenizerJson result_;
    bool has_vocab_ = false, has_scores_ = false, has_merges_ = false;
};

}  // namespace

AddedToken parse_added_token(const JsonObject& json) {
    AddedToken token;
    token.content = json.text("content");
    const std::int64_t id = json.integer("id", -1);
    token.id = static_cast<std::int32_t>(id >= 0 && id <= largest_id ? id : -1);
    token.single_word = json.boolean("single_word", false);
    token.lstrip = json.boolean("lstrip", false);
    token.rstrip = json.boolean("rstrip", false);
    token.special = json.boolean("special", false);
    token.normalized = json.boolean("normalized", !token.special);
    return token;
}

TokenizerJson parse_tokenizer_json(std::string_view bytes, const std::string& file) {
    const std::size_t bad = find_invalid_utf8(bytes);
    if (bad != std::string_view::npos) usage_error(file, ": byte ", bad, " is not valid UTF-8", wanted_file);
    Reader reader(bytes, file);
    try {
        return reader.read();
    } catch (const JsonSyntaxError& error) {
        usage_error(file, ": byte ", error.offset(), ": ", error.what(), reader.has_vocab() ? "" : wanted_file);
    }
}

}  // namespace tera
