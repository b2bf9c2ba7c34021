// Reads a tokenizer.json into its parts. Vocabulary and merges, which are nearly all of the file, are read as they
// come; the small rest is kept as JSON for those who build the parts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/json_file.h"
#include "token/added_tokens.h"

namespace tera {

struct TokenizerJson {
    std::string file;  // for errors

    enum class Model { bpe, word_piece, unigram };
    Model model = Model::bpe;
    nlohmann::json options;  // members of "model" other than vocab and merges
    /// Tokens are different, and so are ids.
    std::vector<std::pair<std::string, std::int32_t>> vocab;
    std::vector<double> scores;  // of Unigram, by id
    std::vector<std::pair<std::string, std::string>> merges;

    std::vector<AddedToken> added_tokens;                               // in the order of the file; ids as it says
    nlohmann::json normalizer, pre_tokenizer, post_processor, decoder;  // null: none

    JsonObject part(const nlohmann::json& json, const char* name) const { return JsonObject(json, file + ": " + name); }
};

/// UsageError if it is not valid, or has a model that is not known here.
TokenizerJson parse_tokenizer_json(std::string_view bytes, const std::string& file);

/// An added token as tokenizer.json and tokenizer_config.json write it; without "normalized" it is so unless special.
AddedToken parse_added_token(const JsonObject& json);

}  // namespace tera
