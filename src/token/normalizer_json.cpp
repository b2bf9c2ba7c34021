#include "token/normalizer_json.h"

#include <array>

#include "core/error.h"

namespace tera {

namespace {

std::string decode_base64(const std::string& text, const JsonObject& json) {
    constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char c : std::string_view(text).substr(0, text.find('='))) {
        const std::size_t value = alphabet.find(c);
        if (value == std::string_view::npos) json.fail("precompiled_charsmap", "is not base64");
        bits = bits << 6 | static_cast<std::uint32_t>(value);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        out += static_cast<char>(bits >> count & 255);
    }
    return out;
}

std::unique_ptr<NormalizerStep> make_bert(const JsonObject& json) {
    BertNormalizerOptions options;
    options.clean_text = json.boolean("clean_text", true);
    options.handle_chinese_chars = json.boolean("handle_chinese_chars", true);
    options.lowercase = json.boolean("lowercase", true);
    options.strip_accents = json.boolean("strip_accents", options.lowercase);
    return bert_step(options);
}

void add_steps(const JsonObject& json, Normalizer& normalizer, int depth) {
    const std::string type = json.text("type");
    if (type == "Sequence") {
        if (depth > 8) usage_error(json.where(), ": normalizers nested more than 8 deep");
        const auto& parts = json.value("normalizers");
        if (!parts.is_array()) json.fail("normalizers", "must be a list");
        for (const auto& part : parts) add_steps(JsonObject(part, json.where()), normalizer, depth + 1);
    } else if (type == "NFC") {
        normalizer.add(unicode_form_step(NormalForm::nfc));
    } else if (type == "NFD") {
        normalizer.add(unicode_form_step(NormalForm::nfd));
    } else if (type == "NFKC") {
        normalizer.add(unicode_form_step(NormalForm::nfkc));
    } else if (type == "NFKD") {
        normalizer.add(unicode_form_step(NormalForm::nfkd));
    } else if (type == "Lowercase") {
        normalizer.add(lowercase_step());
    } else if (type == "StripAccents") {
        normalizer.add(strip_accents_step());
    } else if (type == "Strip") {
        normalizer.add(strip_step(json.boolean("strip_left"), json.boolean("strip_right")));
    } else if (type == "Prepend") {
        normalizer.add(prepend_step(json.text("prepend")));
    } else if (type == "Replace") {
        normalizer.add(replace_step(replace_pattern(json), json.text("content")));
    } else if (type == "BertNormalizer") {
        normalizer.add(make_bert(json));
    } else if (type == "Precompiled") {
        const std::string blob = decode_base64(json.text("precompiled_charsmap", ""), json);
        if (!blob.empty()) normalizer.add(precompiled_step(CharsMap(blob, json.where())));
    } else {
        usage_error(json.where(), ": normalizer \"", type,
                    "\" is not supported; known are Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, "
                    "Replace, Prepend, BertNormalizer and Precompiled");
    }
}

}  // namespace

Normalizer make_normalizer(const JsonObject& json) {
    Normalizer normalizer;
    add_steps(json, normalizer, 0);
    return normalizer;
}

ReplacePattern replace_pattern(const JsonObject& json) {
    const JsonObject pattern = json.object("pattern");
    if (pattern.has("String")) {
        if (pattern.text("String").empty()) usage_error(json.where(), ": Replace of the empty string");
        return ReplacePattern::literal(pattern.text("String"));
    }
    const std::string regex = pattern.text("Regex");
    const auto known = ReplacePattern::regex(regex);
    if (!known)
        usage_error(json.where(), ": Replace of the regular expression \"", regex,
                    "\" is not supported; known are one character, or \\s, followed by + or {n,}");
    return *known;
}

}  // namespace tera
