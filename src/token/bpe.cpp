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
    pairs.reserve(merges.pairs.size());
    for (const auto& [left, right] : merges.pairs) {
        pairs.push_back({number_of(left), number_of(right), static_cast<std::uint32_t>(pairs.size())});
        symbol_of_rank_.push_back(number_of(left + right));
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
    finish(pairs, tokens);
}

BpeModel BpeModel::from_ranks(const std::vector<std::string>& tokens, std::int32_t first_id) {
    BpeModel model;
    std::unordered_map<std::string_view, std::uint32_t> rank_of;
    rank_of.reserve(tokens.size());
    // Symbols: the bytes, then the tokens of two bytes and more in the order of their ranks.
    model.id_of_symbol_.assign(256, -1);
    Tokens known;
    for (int byte = 0; byte < 256; ++byte) known.bytes_of_symbol.emplace_back(1, static_cast<char>(byte));
    for (const std::string& token : tokens) {
        const auto rank = static_cast<std::uint32_t>(model.symbol_of_rank_.size());
        const std::int32_t id = first_id + static_cast<std::int32_t>(rank);
        rank_of.try_emplace(token, rank);
        if (token.size() == 1) {
            model.symbol_of_rank_.push_back(static_cast<unsigned char>(token[0]));
            model.id_of_symbol_[model.symbol_of_rank_.back()] = id;
        } else {
            model.symbol_of_rank_.push_back(static_cast<std::uint32_t>(model.id_of_symbol_.size()));
            model.id_of_symbol_.push_back(id);
            known.bytes_of_symbol.push_back(token);
        }
        known.whole_pieces.emplace_back(token, id);
    }
    for (std::size_t byte = 0; byte < 256; ++byte)
        TERA_CHECK(model.id_of_symbol_[byte] >= 0, "no token for byte ", byte);
    std::vector<Pair> pairs;
    for (std::uint32_t rank = 0; rank < model.rank_count(); ++rank) {
        const std::string_view token = tokens[rank];
        for (std::size_t cut = 1; cut < token.size(); ++cut) {
            const auto left = rank_of.find(token.substr(0, cut)), right = rank_of.find(token.substr(cut));
            if (left != rank_of.end() && right != rank_of.end())
                pairs.push_back({model.symbol_of(left->second), model.symbol_of(right->second), rank});
        }
    }
    model.finish(pairs, known);
    return model;
}

void BpeModel::finish(std::vector<Pair> pairs, const Tokens& tokens) {
    index(pairs);
    is_unordered_ = is_unordered(pairs);
    // Ranks of single bytes, as tiktoken has them, belong to no merge.
    first_symbol_ = rank_count() == 0 ? 0 : symbol_of_rank_.back() - (rank_count() - 1);
    is_counted_ = true;
    for (std::uint32_t rank = 0; rank < rank_count(); ++rank)
        is_counted_ = is_counted_ && (symbol_of_rank_[rank] < 256 || symbol_of_rank_[rank] == rank + first_symbol_);
    if (order_ == BpeOptions::Order::leftmost) {
        pairs = used_pairs(pairs, tokens);
        index(pairs);
        is_unordered_ = is_unordered(pairs);
    }
    find_whole_pieces(tokens);
}

/// Puts the pairs where rank_of() finds them; of a repeated pair the last rank counts.
void BpeModel::index(const std::vector<Pair>& pairs) {
    if (id_of_symbol_.size() > most_symbols || rank_count() > most_ranks)
        usage_error("the vocabulary has ", id_of_symbol_.size(), " symbols and ", rank_count(),
                    " merges; byte-level BPE is built for ", most_symbols, " and ", most_ranks);
    byte_ranks_.assign(1 << 16, no_rank);
    ranks_ = PairTable(pairs.size());
    for (const auto& [left, right, rank] : pairs) {
        if ((left | right) < 256) byte_ranks_[left << 8 | right] = rank;
        ranks_.insert(left, right, rank);
    }
}

bool BpeModel::is_unordered(const std::vector<Pair>& pairs) const {
    std::vector<std::uint32_t> made_at(id_of_symbol_.size());  // the last rank that makes each symbol, plus 1
    for (const Pair& pair : pairs) {
        std::uint32_t& last = made_at[symbol_of(pair.rank)];
        last = std::max(last, pair.rank + 1);
    }
    return std::any_of(pairs.begin(), pairs.end(), [&](const Pair& pair) {
        return pair.rank < made_at[pair.left] || pair.rank < made_at[pair.right];
    });
}

/// The pairs that can come up. As long as nothing crosses its borders, a part of a text merges as it does alone. So a
/// symbol can come up only if merging its own bytes makes it, and only of the two that are left before the last merge.
/// (tiktoken's vocabularies allow more than twice as many pairs.)
std::vector<BpeModel::Pair> BpeModel::used_pairs(const std::vector<Pair>& pairs, const Tokens& tokens) const {
    std::vector<Pair> used;
    BpeMerger merger(*this);
    const auto is_long = [](const std::string& bytes) { return bytes.size() > BpeMerger::most_short; };
    if (std::any_of(tokens.bytes_of_symbol.begin(), tokens.bytes_of_symbol.end(), is_long)) return pairs;
    for (const std::string& bytes : tokens.bytes_of_symbol) {
        if (bytes.size() < 2) continue;
        const BpeMerger::LastMerge last = merger.merge_short(bytes);
        if (last.symbols == 1) used.push_back({last.left, last.right, last.rank});
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
