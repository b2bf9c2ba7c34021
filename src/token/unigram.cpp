#include "token/unigram.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "core/error.h"
#include "token/utf8.h"

namespace tera {

std::string byte_fallback_token(unsigned char byte) {
    constexpr char digits[] = "0123456789ABCDEF";
    return {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
}

UnigramModel::UnigramModel(std::span<const std::pair<std::string, double>> vocab, UnigramOptions options)
    : options_(options), byte_ids_(256, -1) {
    constexpr double unknown_penalty = 10;
    double lowest = std::numeric_limits<double>::infinity();
    std::unordered_map<std::string_view, std::int32_t> id_of;
    for (std::size_t id = 0; id < vocab.size(); ++id) {
        scores_.push_back(vocab[id].second);
        lowest = std::min(lowest, vocab[id].second);
        if (!vocab[id].first.empty()) id_of[vocab[id].first] = static_cast<std::int32_t>(id);
    }
    unknown_score_ = lowest - unknown_penalty;
    trie_ = PieceTrie({id_of.begin(), id_of.end()});
    for (unsigned byte = 0; byte < 256; ++byte) {
        const auto found = id_of.find(byte_fallback_token(static_cast<unsigned char>(byte)));
        if (found != id_of.end()) byte_ids_[byte] = found->second;
    }
}

void UnigramModel::find_best(std::string_view piece, std::vector<Scratch::Node>& best) const {
    best.assign(piece.size() + 1, {});
    const auto offer = [&best](std::size_t end, double score, std::size_t start, std::int32_t id) {
        Scratch::Node& node = best[end];
        if (node.start == Scratch::none || score > node.score) node = {score, static_cast<std::uint32_t>(start), id};
    };
    for (std::size_t at = 0; at < piece.size();) {
        const double so_far = best[at].score;
        const std::size_t char_bytes = decode_utf8(piece.data() + at, piece.data() + piece.size()).bytes;
        bool is_token = false;  // the character by itself
        std::uint32_t node = PieceTrie::root;
        for (std::size_t end = at; end < piece.size();) {
            node = trie_.child(node, static_cast<unsigned char>(piece[end]));
            if (node == PieceTrie::none) break;
            ++end;
            const std::int32_t id = trie_.value(node);
            if (id < 0) continue;
            offer(end, scores_[static_cast<std::size_t>(id)] + so_far, at, id);
            is_token |= end - at == char_bytes;
        }
        if (!is_token) offer(at + char_bytes, unknown_score_ + so_far, at, options_.unknown);
        at += char_bytes;
    }
}

/// A run of unknown characters is one token, unless the run as a whole is in the vocabulary or falls back to bytes.
void UnigramModel::add_unknown(std::string_view text, std::vector<std::int32_t>& ids) const {
    const PieceTrie::Match match = trie_.longest(text);
    if (match.value >= 0 && match.length == text.size()) {
        ids.push_back(match.value);
        return;
    }
    const auto has_token = [this](char c) { return byte_ids_[static_cast<unsigned char>(c)] >= 0; };
    if (options_.byte_fallback && std::all_of(text.begin(), text.end(), has_token)) {
        for (const char c : text) ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
        return;
    }
    ids.push_back(options_.unknown);
}

void UnigramModel::encode(std::string_view piece, Scratch& scratch, std::vector<std::int32_t>& ids) const {
    constexpr std::size_t large_piece = 1 << 20;  // bytes; above, the scratch memory is given back
    TERA_CHECK(piece.size() < Scratch::none, "a piece of ", piece.size(), " bytes");
    find_best(piece, scratch.best);
    scratch.path.clear();
    for (std::size_t end = piece.size(); end > 0; end = scratch.best[end].start)
        scratch.path.push_back(scratch.best[end]);
    std::size_t unknown_from = 0, end = 0;
    bool in_unknown = false;
    for (std::size_t i = scratch.path.size(); i-- > 0;) {
        const Scratch::Node& node = scratch.path[i];
        end = i > 0 ? scratch.path[i - 1].start : piece.size();
        const bool is_unknown = node.id == options_.unknown;
        if (in_unknown && !is_unknown) add_unknown(piece.substr(unknown_from, node.start - unknown_from), ids);
        if (is_unknown && !in_unknown) unknown_from = node.start;
        if (!is_unknown) ids.push_back(node.id);
        in_unknown = is_unknown;
    }
    if (in_unknown) add_unknown(piece.substr(unknown_from, end - unknown_from), ids);
    if (piece.size() > large_piece) scratch = {};
}

}  // namespace tera
