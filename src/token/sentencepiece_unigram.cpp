#include "token/sentencepiece_unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace tera {

namespace {

constexpr float unknown_penalty = 10.0f;
constexpr float largest_sum = 100000.0f;
constexpr std::size_t large_text = 1 << 22;  // bytes; above, the scratch memory is given back

std::vector<std::pair<std::string_view, std::int32_t>> used_pieces(const SentencePieceModel& model) {
    std::vector<std::pair<std::string_view, std::int32_t>> pieces;
    for (const auto& entry : model.text_ids)
        if (model.piece(entry.second).type != PieceType::unused) pieces.push_back(entry);
    return pieces;
}

}  // namespace

UnigramTable::UnigramTable(const SentencePieceModel& model) : trie_(used_pieces(model)) {
    float min_score = std::numeric_limits<float>::max();
    for (const SentencePieceModel::Piece& piece : model.pieces) {
        scores_.push_back(piece.score);
        is_user_defined_.push_back(piece.type == PieceType::user_defined);
        if (piece.type == PieceType::normal) min_score = std::min(min_score, piece.score);
    }
    unknown_score_ = min_score - unknown_penalty;
}

void UnigramEncoder::encode(std::string_view text, std::vector<std::int32_t>& ids) {
    TERA_CHECK(text.size() < unreached, "a text of ", text.size(), " bytes");
    if (text.empty()) return;
    find_best(text);
    ends_.clear();
    for (auto end = static_cast<std::uint32_t>(text.size()); end > 0; end = steps_[end].from) ends_.push_back(end);
    writer_.begin();
    for (std::size_t i = ends_.size(); i-- > 0;) {
        const Step& step = steps_[ends_[i]];
        writer_.add(step.id, text.substr(step.from, ends_[i] - step.from), ids);
    }
    if (text.size() > large_text) {
        steps_ = {};
        ends_ = {};
    }
}

/// Takes the sum at `from` off all sums from there on.
void UnigramEncoder::bring_back(std::size_t from, std::size_t last) {
    const float sum = steps_[from].score;
    for (std::size_t i = from; i <= last; ++i)
        if (i == from || steps_[i].from != unreached) steps_[i].score -= sum;
}

void UnigramEncoder::find_best(std::string_view text) {
    const PieceTrie& trie = table_.trie();
    steps_.assign(text.size() + 1, {0, -1, unreached});
    std::size_t last = 0;  // the farthest end of a piece
    const auto offer = [&](std::size_t from, std::size_t end, float score, std::int32_t id) {
        last = std::max(last, end);
        Step& step = steps_[end];
        if (step.from != unreached && !(score > step.score)) return;
        step = {score, id, static_cast<std::uint32_t>(from)};
    };
    for (std::size_t from = 0; from < text.size();) {
        if (std::abs(steps_[from].score) > largest_sum) bring_back(from, last);
        const float before = steps_[from].score;
        const std::size_t length = char_length(text.substr(from));
        bool is_known = false;  // whether the character itself is a piece
        std::uint32_t node = PieceTrie::root;
        for (std::size_t end = from; end < text.size();) {
            node = trie.child(node, static_cast<unsigned char>(text[end++]));
            if (node == PieceTrie::none) break;
            const std::int32_t id = trie.value(node);
            if (id < 0) continue;
            offer(from, end, table_.score(id, end - from) + before, id);
            if (end - from == length) is_known = true;
        }
        if (!is_known) offer(from, from + length, table_.unknown_score() + before, model_.unk_id);
        from += length;
    }
}

}  // namespace tera
