#include "token/decoder.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "token/byte_level.h"
#include "token/normalizer_json.h"
#include "token/utf8.h"

namespace tera {

namespace {

using Tokens = std::vector<std::string>;

void replace_text(std::string& text, std::string_view from, std::string_view to) {
    text = replace_all(text, ReplacePattern::literal(std::string(from)), to);
}

void fuse(Tokens& tokens) {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens.assign(1, std::move(all));
}

void decode_byte_level(Tokens& tokens) {
    // A token with a character outside the alphabet is no bytes in disguise (an added token).
    for (std::string& token : tokens)
        if (is_printable(token)) token = from_printable(token);
    fuse(tokens);
}

/// The byte that "<0x0A>" stands for, or -1.
int fallback_byte(const std::string& token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
    int byte = -1;
    const auto [stop, problem] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
    return problem == std::errc() && stop == token.data() + 5 && byte >= 0 ? byte : -1;
}

/// Runs of byte tokens become the text they make, or one U+FFFD each.
void decode_byte_fallback(Tokens& tokens) {
    Tokens out;
    std::string bytes;
    const auto flush = [&] {
        if (bytes.empty()) return;
        if (find_invalid_utf8(bytes) == std::string_view::npos)
            out.push_back(bytes);
        else
            out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
        bytes.clear();
    };
    for (std::string& token : tokens) {
        const int byte = fallback_byte(token);
        if (byte >= 0) {
            bytes += static_cast<char>(byte);
            continue;
        }
        flush();
        out.push_back(std::move(token));
    }
    flush();
    tokens = std::move(out);
}

void decode_metaspace(Tokens& tokens, const std::string& mark, bool drops_first) {
    for (std::size_t i = 0; i < tokens.size(); ++i) replace_text(tokens[i], mark, i == 0 && drops_first ? "" : " ");
}

void clean_up(std::string& text) {
    constexpr std::pair<std::string_view, std::string_view> rules[] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},    {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    for (const auto& [from, to] : rules) replace_text(text, from, to);
}

void decode_wordpiece(Tokens& tokens, const std::string& prefix, bool cleans) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        std::string& token = tokens[i];
        if (i > 0) {
            if (token.starts_with(prefix))
                token.erase(0, prefix.size());
            else
                token.insert(0, 1, ' ');
        }
        if (cleans) clean_up(token);
    }
}

struct StripRule {
    std::string content;
    std::int64_t start = 0, stop = 0;
};

/// Takes the character off the ends, at most `start` and `stop` times.
void strip(std::string& token, const StripRule& rule) {
    std::size_t begin = 0, end = token.size();
    for (std::int64_t i = 0; i < rule.start; ++i) {
        if (token.compare(begin, rule.content.size(), rule.content) != 0) break;
        begin += rule.content.size();
    }
    for (std::int64_t i = 0; i < rule.stop; ++i) {
        if (end < begin + rule.content.size()) break;
        if (token.compare(end - rule.content.size(), rule.content.size(), rule.content) != 0) break;
        end -= rule.content.size();
    }
    token = token.substr(begin, end - begin);
}

std::string one_character(const JsonObject& json, const std::string& key) {
    std::string text = json.text(key);
    if (count_utf8(text) != 1) json.fail(key, "must be one character");
    return text;
}

}  // namespace

TokenDecoder::TokenDecoder(const JsonObject& json) : has_any_(true) {
    is_by_token_ = json.text("type") == "ByteLevel" || json.text("type") == "Fuse";
    add(json, 0);
}

void TokenDecoder::add(const JsonObject& json, int depth) {
    const std::string type = json.text("type");
    if (type != "Sequence") {
        steps_.push_back(make_step(json, type));
        return;
    }
    if (depth > 8) usage_error(json.where(), ": decoders nested more than 8 deep");
    const auto& parts = json.value("decoders");
    if (!parts.is_array()) json.fail("decoders", "must be a list");
    for (const auto& part : parts) add(JsonObject(part, json.where()), depth + 1);
}

TokenDecoder::Step TokenDecoder::make_step(const JsonObject& json, const std::string& type) const {
    if (type == "ByteLevel") return decode_byte_level;
    if (type == "ByteFallback") return decode_byte_fallback;
    if (type == "Fuse") return fuse;
    if (type == "Metaspace") {
        const std::string scheme =
            json.text("prepend_scheme", json.boolean("add_prefix_space", true) ? "always" : "never");
        return [mark = one_character(json, "replacement"), drops = scheme != "never"](Tokens& tokens) {
            decode_metaspace(tokens, mark, drops);
        };
    }
    if (type == "WordPiece")
        return [prefix = json.text("prefix", "##"), cleans = json.boolean("cleanup", true)](Tokens& tokens) {
            decode_wordpiece(tokens, prefix, cleans);
        };
    if (type == "Replace")
        return [pattern = replace_pattern(json), content = json.text("content")](Tokens& tokens) {
            for (std::string& token : tokens) token = replace_all(token, pattern, content);
        };
    if (type == "Strip") {
        StripRule rule{one_character(json, "content"), json.integer("start", 0), json.integer("stop", 0)};
        return [rule](Tokens& tokens) {
            for (std::string& token : tokens) strip(token, rule);
        };
    }
    usage_error(json.where(), ": decoder \"", type,
                "\" is not supported; known are Sequence, ByteLevel, ByteFallback, Fuse, Metaspace, WordPiece, Replace "
                "and Strip");
}

std::string TokenDecoder::decode(std::vector<std::string> tokens) const {
    for (const Step& step : steps_) step(tokens);
    std::string text;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (i > 0 && !has_any_) text += ' ';
        text += tokens[i];
    }
    return text;
}

}  // namespace tera
