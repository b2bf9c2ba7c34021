// The added tokens of a Hugging Face tokenizer beside the model's vocabulary: which ids they get, and how text is
// searched for them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "token/added_tokens.h"
#include "token/normalizer.h"
#include "token/tokenizer_json.h"

namespace tera {

class HfAddedVocab {
  public:
    HfAddedVocab() = default;
    explicit HfAddedVocab(const TokenizerJson& json);

    /// Adds a token, or gives one that is there these properties. Its id is that of the vocabulary, else the next free
    /// one. Returns the id, or -1 for the empty token, which is left out.
    std::int32_t add(AddedToken token);
    /// To be called once, when all tokens are there; special ones are not found in text with `split_special`.
    /// UsageError if two cannot be told apart.
    void build_finders(const Normalizer& normalizer, bool split_special);

    std::optional<std::int32_t> id_of(const std::string& token) const;
    bool is_added(const std::string& token) const { return id_of_added_.contains(token); }
    bool is_special(const std::string& token) const;

    const AddedTokenFinder& raw() const { return raw_; }                // in text as given
    const AddedTokenFinder& normalized() const { return normalized_; }  // in normalised text
    /// By id; the pattern is the token as it is searched for.
    const std::vector<std::pair<AddedToken, std::string>>& tokens_and_patterns() const { return patterns_; }

  private:
    std::string file_;
    std::unordered_map<std::string, std::int32_t> id_of_model_;
    std::unordered_set<std::int32_t> model_ids_;
    std::unordered_map<std::string, std::int32_t> id_of_added_;
    std::map<std::int32_t, AddedToken> added_;
    std::vector<std::pair<AddedToken, std::string>> patterns_;
    AddedTokenFinder raw_, normalized_;
};

}  // namespace tera
