#include "token/wordpiece.h"

#include "token/utf8.h"

namespace tera {

WordPieceModel::WordPieceModel(std::span<const std::pair<std::string_view, std::int32_t>> vocab,
                               WordPieceOptions options)
    : options_(std::move(options)) {
    std::vector<std::pair<std::string_view, std::int32_t>> first, next;
    for (const auto& [token, id] : vocab) {
        if (token.empty()) continue;
        first.emplace_back(token, id);
        if (token.starts_with(options_.prefix) && token.size() > options_.prefix.size())
            next.emplace_back(token.substr(options_.prefix.size()), id);
    }
    first_ = PieceTrie(std::move(first));
    next_ = PieceTrie(std::move(next));
}

void WordPieceModel::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
    const std::size_t before = ids.size();
    // A word of no more bytes than that has no more characters either.
    const bool is_long = word.size() > options_.max_chars && count_utf8(word) > options_.max_chars;
    bool is_known = !is_long;
    for (std::size_t at = 0; is_known && at < word.size();) {
        const PieceTrie::Match match = (at == 0 ? first_ : next_).longest(word.substr(at));
        is_known = match.value >= 0;
        if (is_known) ids.push_back(match.value);
        at += match.length;
    }
    if (is_known) return;
    ids.resize(before);
    ids.push_back(options_.unknown);
}

}  // namespace tera
