#include "token/bpe.h"

#include <algorithm>
#include <bit>

#include "core/error.h"
#include "token/byte_level.h"

namespace tera {

BpeModel::BpeModel(const BpeVocab& vocab, const BpeMerges& merges, const BpeOptions& options) {
    std::unordered_map<std::string, std::uint32_t> symbol_of;
    symbol_of.reserve(merges.pairs.size() * 2 + 256);
    const auto number_of = [&symbol_of](const std::string& text) {
        return symbol_of.try_emplace(text, static_cast<std::uint32_t>(symbol_of.size())).first->second;
    };
    for (int byte = 0; byte < 256; ++byte) {
        const char c = static_cast<char>(byte);
        number_of(to_printable({&c, 1}));
    }
    std::vector<Pair> pairs;
    std::vector<std::uint32_t> made;
    pairs.reserve(merges.pairs.size());
    for (const auto& [left, right] : merges.pairs) {
        pairs.push_back({number_of(left), number_of(right), static_cast<std::uint32_t>(pairs.size())});
        made.push_back(number_of(left + right));
    }
    id_of_symbol_.resize(symbol_of.size());
    dropped_.fill(options.drop_unknown);
    Tokens tokens;
    for (std::size_t id = 0; id < vocab.token_of_id.size(); ++id) {
        const std::string& token = vocab.token_of_id[id];
        const auto found = symbol_of.find(token);
        if (found != symbol_of.end()) {
            id_of_symbol_[found->second] = static_cast<std::int32_t>(id);
            if (found->second < 256) dropped_[found->second] = false;
        }
        if (options.whole_piece_first && !token.empty() && is_printable(token))
            tokens.whole_pieces.emplace_back(from_printable(token), static_cast<std::int32_t>(id));
    }
    tokens.bytes_of_symbol.resize(symbol_of.size());
    for (const auto& [text, symbol] : symbol_of)
        if (is_printable(text)) tokens.bytes_of_symbol[symbol] = from_printable(text);
    order_ = options.order;
    finish(std::move(made), std::move(pairs), tokens);
}

BpeModel BpeModel::from_ranks(const std::vector<std::string>& tokens, std::int32_t first_id) {
    BpeModel model;
    std::unordered_map<std::string_view, std::uint32_t> rank_of;
    rank_of.reserve(tokens.size());
    // Symbols: the bytes, then the tokens of two bytes and more in the order of their ranks.
    model.id_of_symbol_.assign(256, -1);
    std::vector<std::uint32_t> made;  // by rank; those of single bytes are in no pair
    Tokens known;
    for (int byte = 0; byte < 256; ++byte) known.bytes_of_symbol.emplace_back(1, static_cast<char>(byte));
    for (const std::string& token : tokens) {
        const auto rank = static_cast<std::uint32_t>(made.size());
        const std::int32_t id = first_id + static_cast<std::int32_t>(rank);
        rank_of.try_emplace(token, rank);
        if (token.size() == 1) {
            made.push_back(static_cast<unsigned char>(token[0]));
            model.id_of_symbol_[made.back()] = id;
        } else {
            made.push_back(static_cast<std::uint32_t>(model.id_of_symbol_.size()));
            model.id_of_symbol_.push_back(id);
            known.bytes_of_symbol.push_back(token);
        }
        known.whole_pieces.emplace_back(token, id);
    }
    for (std::size_t byte = 0; byte < 256; ++byte)
        TERA_CHECK(model.id_of_symbol_[byte] >= 0, "no token for byte ", byte);
    std::vector<Pair> pairs;
    for (std::uint32_t rank = 0; rank < tokens.size(); ++rank) {
        const std::string_view token = tokens[rank];
        for (std::size_t cut = 1; cut < token.size(); ++cut) {
            const auto left = rank_of.find(token.substr(0, cut)), right = rank_of.find(token.substr(cut));
            if (left != rank_of.end() && right != rank_of.end())
                pairs.push_back({made[left->second], made[right->second], rank});
        }
    }
    model.finish(std::move(made), std::move(pairs), known);
    return model;
}

void BpeModel::finish(std::vector<std::uint32_t> made, std::vector<Pair> pairs, const Tokens& tokens) {
    rules_ = MergeRules(std::move(made), {}, id_of_symbol_.size(), "the vocabulary");
    set_pairs(pairs);
    if (order_ == MergeOrder::leftmost) {
        pairs = used_pairs(pairs, tokens);
        set_pairs(pairs);
    }
    if (!is_unordered(pairs)) order_ = MergeOrder::leftmost;
    find_whole_pieces(tokens);
}

void BpeModel::set_pairs(const std::vector<Pair>& pairs) {
    rules_.set_pairs(pairs);
    byte_merges_.assign(1 << 16, MergeRules::none);
    for (const auto& [left, right, merge] : pairs)
        if ((left | right) < 256) byte_merges_[left << 8 | right] = merge;
}

/// True if some pair outranks a merge that makes one of its halves, so that the order of merging matters.
bool BpeModel::is_unordered(const std::vector<Pair>& pairs) const {
    std::vector<std::uint32_t> made_at(id_of_symbol_.size());  // the last rank that makes each symbol, plus 1
    for (const Pair& pair : pairs) {
        std::uint32_t& last = made_at[rules_.made_by(pair.merge)];
        last = std::max(last, pair.merge + 1);
    }
    return std::any_of(pairs.begin(), pairs.end(), [&](const Pair& pair) {
        return pair.merge < made_at[pair.left] || pair.merge < made_at[pair.right];
    });
}

/// The pairs that can come up. As long as nothing crosses its borders, a part of a text merges as it does alone. So a
/// symbol can come up only if merging its own bytes makes it, and only of the two that are left before the last merge.
/// (tiktoken's vocabularies allow more than twice as many pairs.)
std::vector<BpeModel::Pair> BpeModel::used_pairs(const std::vector<Pair>& pairs, const Tokens& tokens) const {
    std::vector<Pair> used;
    const auto is_long = [](const std::string& bytes) { return bytes.size() > ShortWord::most; };
    if (std::any_of(tokens.bytes_of_symbol.begin(), tokens.bytes_of_symbol.end(), is_long)) return pairs;
    BpeMerger merger(*this);
    for (const std::string& bytes : tokens.bytes_of_symbol) {
        if (bytes.size() < 2) continue;
        merger.merge_short(bytes, 2);
        if (merger.short_.count() != 2) continue;
        Pair pair{0, 0, MergeRules::none};
        merger.short_.for_each(
            [&pair](std::uint32_t symbol, std::uint32_t place) { (place == 0 ? pair.left : pair.right) = symbol; });
        pair.merge = rules_.find(pair.left, pair.right);
        if (pair.merge != MergeRules::none) used.push_back(pair);
    }
    return used;
}

/// Of the tokens, those that merging does not make.
void BpeModel::find_whole_pieces(const Tokens& tokens) {
    BpeMerger merger(*this);
    std::vector<std::int32_t> ids;
    std::vector<const std::pair<std::string, std::int32_t>*> found;
    for (const auto& token : tokens.whole_pieces) {
        ids.clear();
        merger.encode(token.first, ids);
        if (ids.size() != 1 || ids[0] != token.second) found.push_back(&token);
    }
    for (const auto* token : found) whole_pieces_.insert(*token);
}

}  // namespace tera
