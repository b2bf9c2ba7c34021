#include "token/hf_added_vocab.h"

#include <algorithm>

#include "core/error.h"

namespace tera {

HfAddedVocab::HfAddedVocab(const TokenizerJson& json) : file_(json.file) {
    for (const auto& [token, id] : json.vocab) {
        id_of_model_[token] = id;
        model_ids_.insert(id);
    }
}

std::int32_t HfAddedVocab::add(AddedToken token) {
    if (token.content.empty()) return -1;
    const auto known = id_of(token.content);
    if (known) {
        token.id = *known;
    } else {
        const auto size = static_cast<std::int32_t>(id_of_model_.size());
        token.id = added_.empty() ? size : std::max(size, added_.rbegin()->first + 1);
        if (model_ids_.contains(token.id))
            usage_error(file_, ": added token \"", token.content, "\" gets id ", token.id,
                        ", which a token of the vocabulary has already");
    }
    id_of_added_[token.content] = token.id;
    const std::int32_t id = token.id;
    added_[id] = std::move(token);
    return id;
}

void HfAddedVocab::build_finders(const Normalizer& normalizer, bool split_special) {
    std::vector<AddedToken> tokens[2];
    std::vector<std::string> patterns[2];
    std::unordered_set<std::string> seen[2];
    Normalizer::Scratch scratch;
    for (const auto& [id, token] : added_) {
        std::string pattern = token.content;
        if (token.normalized) pattern = normalizer.apply({token.content, 0}, scratch).text;
        if (pattern.empty() || !seen[token.normalized].insert(pattern).second)
            usage_error(file_, ": added token \"", token.content,
                        pattern.empty() ? "\" is normalised away" : "\" is, once normalised, the same as another");
        patterns_.emplace_back(token, pattern);
        tokens[token.normalized].push_back(token);
        patterns[token.normalized].push_back(std::move(pattern));
    }
    raw_ = AddedTokenFinder(std::move(tokens[0]), patterns[0], split_special);
    normalized_ = AddedTokenFinder(std::move(tokens[1]), patterns[1], split_special);
}

std::optional<std::int32_t> HfAddedVocab::id_of(const std::string& token) const {
    const auto added = id_of_added_.find(token);
    if (added != id_of_added_.end()) return added->second;
    const auto model = id_of_model_.find(token);
    return model == id_of_model_.end() ? std::nullopt : std::optional(model->second);
}

bool HfAddedVocab::is_special(const std::string& token) const {
    const auto added = id_of_added_.find(token);
    return added != id_of_added_.end() && added_.at(added->second).special;
}

}  // namespace tera
