#include "token/sentencepiece_bpe.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace tera {

namespace {

constexpr std::size_t longest_bpe_piece = 1024;  // bytes; all cuts of a piece in two are looked up
constexpr std::uint32_t none = 0xFFFFFFFF;

std::uint32_t packed(std::string_view bytes) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
}

std::size_t hash_char(std::uint32_t bytes) { return bytes * 0x9E3779B9u >> 7; }

}  // namespace

PieceMerges::PieceMerges(const SentencePieceModel& model, const std::string& file) {
    for (const auto& [text, id] : model.text_ids) {
        if (model.piece(id).type == PieceType::unused)
            usage_error(file, ": piece ", id, " is marked unused, which is not supported in BPE models");
        if (text.size() > longest_bpe_piece)
            usage_error(file, ": piece ", id, " has ", text.size(), " bytes; at most ", longest_bpe_piece,
                        " are supported");
    }
    index_characters(model);
    find_rules(model, file);
    find_cut(model);
}

/// A merge for each piece, the highest score first; pieces of equal score have the rank of the first of them.
void PieceMerges::find_rules(const SentencePieceModel& model, const std::string& file) {
    std::vector<std::uint32_t> made, ranks;
    for (const auto& [text, id] : model.text_ids) made.push_back(static_cast<std::uint32_t>(id));
    const auto score = [&](std::uint32_t id) { return model.piece(static_cast<std::int32_t>(id)).score; };
    std::sort(made.begin(), made.end(), [&](std::uint32_t a, std::uint32_t b) { return score(a) > score(b); });
    bool has_ties = false;
    std::vector<MergeRules::Pair> pairs;
    for (std::uint32_t merge = 0; merge < made.size(); ++merge) {
        const bool is_tied = merge > 0 && score(made[merge]) == score(made[merge - 1]);
        ranks.push_back(is_tied ? ranks.back() : merge);
        has_ties = has_ties || is_tied;
        add_pairs(model, static_cast<std::int32_t>(made[merge]), merge, pairs);
    }
    if (!has_ties) ranks.clear();
    rules_ = MergeRules(std::move(made), std::move(ranks), id_of_symbol_.size(), file);
    rules_.set_pairs(pairs);
}

/// Gives a number to every character that is a piece or part of one.
void PieceMerges::index_characters(const SentencePieceModel& model) {
    std::vector<std::string_view> characters;
    for (const auto& [text, id] : model.text_ids) {
        for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(char_length(rest)))
            characters.push_back(rest.substr(0, char_length(rest)));
    }
    std::sort(characters.begin(), characters.end());
    characters.erase(std::unique(characters.begin(), characters.end()), characters.end());
    chars_.resize(std::bit_ceil(characters.size() * 2 + 2));
    char_mask_ = chars_.size() - 1;
    for (std::int32_t id = 0; id < model.size(); ++id) id_of_symbol_.push_back(model.id_of(model.piece(id).text));
    for (const std::string_view character : characters) {
        const auto found = model.text_ids.find(character);
        auto symbol = static_cast<std::uint32_t>(id_of_symbol_.size());
        if (found != model.text_ids.end())
            symbol = static_cast<std::uint32_t>(found->second);
        else
            id_of_symbol_.push_back(model.id_of(character));
        std::size_t at = hash_char(packed(character)) & char_mask_;
        while (chars_[at].bytes != 0) at = (at + 1) & char_mask_;
        chars_[at] = {packed(character), symbol};
    }
    unknown_symbol_ = static_cast<std::uint32_t>(id_of_symbol_.size());
    id_of_symbol_.push_back(model.unk_id);
}

std::uint32_t PieceMerges::symbol_of(std::string_view bytes) const {
    const std::uint32_t wanted = packed(bytes);
    for (std::size_t at = hash_char(wanted) & char_mask_; chars_[at].bytes != 0; at = (at + 1) & char_mask_)
        if (chars_[at].bytes == wanted) return chars_[at].symbol;
    return unknown_symbol_;
}

/// Every way to cut the piece into two symbols is a pair that merges to it.
void PieceMerges::add_pairs(const SentencePieceModel& model, std::int32_t id, std::uint32_t merge,
                            std::vector<MergeRules::Pair>& pairs) const {
    const std::string_view text = model.piece(id).text;
    const auto symbol = [&](std::string_view part) {
        if (char_length(part) == part.size()) return symbol_of(part);
        const auto found = model.text_ids.find(part);
        return found == model.text_ids.end() ? none : static_cast<std::uint32_t>(found->second);
    };
    for (std::size_t at = char_length(text); at < text.size(); at += char_length(text.substr(at))) {
        const std::uint32_t left = symbol(text.substr(0, at)), right = symbol(text.substr(at));
        if (left != none && right != none) pairs.push_back({left, right, merge});
    }
}

void PieceMerges::find_cut(const SentencePieceModel& model) {
    bool space_behind_other = false, other_behind_space = false;
    for (const auto& [text, id] : model.text_ids) {
        bool after_space = false;
        for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(char_length(rest))) {
            const bool is_space = rest.substr(0, char_length(rest)) == sentencepiece_space;
            if (rest.size() < text.size() && is_space && !after_space) space_behind_other = true;
            if (rest.size() < text.size() && !is_space && after_space) other_behind_space = true;
            after_space = is_space;
        }
    }
    if (!space_behind_other)
        cut_ = Cut::before_spaces;
    else if (!other_behind_space)
        cut_ = Cut::behind_spaces;
}

PieceMerger::PieceMerger(const SentencePieceModel& model, const SentencePieceNormalizer& normalizer,
                         const PieceMerges& merges)
    : model_(model),
      normalizer_(normalizer),
      merges_(merges),
      writer_(model),
      word_writer_(model),
      merger_(merges.rules()) {}

void PieceMerger::encode(std::string_view text, std::vector<std::int32_t>& ids) {
    writer_.begin();
    word_count_ = 0;
    // User-defined pieces never merge with their neighbours.
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size() && !normalizer_.user_defined().empty();) {
        // Bytes inside a character begin nothing. Each is looked at without waiting for how long the last character is.
        if (!normalizer_.begins_user_defined(text[at]) || (text[at] & 0xC0) == 0x80) {
            ++at;
            continue;
        }
        const PieceTrie::Match match = normalizer_.user_defined().longest(text.substr(at));
        if (match.value < 0) {
            ++at;
            continue;
        }
        encode_cut(text.substr(begin, at - begin), ids);
        encode_words(ids);
        const std::string_view piece = text.substr(at, match.length);
        writer_.add(model_.id_of(piece), piece, ids);
        begin = at += match.length;
    }
    encode_cut(text.substr(begin), ids);
    encode_words(ids);
}

/// Encodes words one by one if the model allows it.
void PieceMerger::encode_cut(std::string_view text, std::vector<std::int32_t>& ids) {
    const PieceMerges::Cut cut = merges_.cut();
    std::size_t begin = 0;
    bool after_space = true;  // nothing to cut at the very beginning
    for (std::size_t at = 0; cut != PieceMerges::Cut::nowhere && at < text.size();) {
        const auto* found =
            static_cast<const char*>(std::memchr(text.data() + at, sentencepiece_space[0], text.size() - at));
        if (!found) break;
        const auto space = static_cast<std::size_t>(found - text.data());
        if (!text.substr(space).starts_with(sentencepiece_space)) {
            after_space = false;
            at = space + 1;
            continue;
        }
        if (space > at) after_space = false;
        at = space + sentencepiece_space.size();
        if (cut == PieceMerges::Cut::before_spaces && !after_space) {
            add_word(text.substr(begin, space - begin), ids);
            begin = space;
        } else if (cut == PieceMerges::Cut::behind_spaces && !text.substr(at).starts_with(sentencepiece_space)) {
            add_word(text.substr(begin, at - begin), ids);
            begin = at;
        }
        after_space = true;
    }
    add_word(text.substr(begin), ids);
}

void PieceMerger::add_word(std::string_view word, std::vector<std::int32_t>& ids) {
    if (word.empty()) return;
    if (word_count_ == words_.size()) encode_words(ids);
    words_[word_count_++] = word;
}

void PieceMerger::encode_words(std::vector<std::int32_t>& ids) {
    cache_.with_ids_of_all(
        std::span(words_).first(word_count_),
        [&](std::string_view word, std::vector<std::int32_t>& out) { merge(word, out); },
        [&](std::span<const std::int32_t> known) { writer_.add_written(known, ids); });
    word_count_ = 0;
}

void PieceMerger::merge(std::string_view word, std::vector<std::int32_t>& ids) {
    TERA_CHECK(word.size() < none, "a text of ", word.size(), " bytes");
    symbols_.clear();
    starts_.clear();
    for (std::size_t at = 0; at < word.size();) {
        const std::size_t length = char_length(word.substr(at));
        symbols_.push_back(merges_.symbol_of(word.substr(at, length)));
        starts_.push_back(static_cast<std::uint32_t>(at));
        at += length;
    }
    merger_.merge(symbols_, &places_);
    word_writer_.begin();
    for (std::size_t i = 0; i < symbols_.size(); ++i) {
        const std::size_t begin = starts_[places_[i]];
        const std::size_t end = i + 1 < symbols_.size() ? starts_[places_[i + 1]] : word.size();
        word_writer_.add(merges_.id_of(symbols_[i]), word.substr(begin, end - begin), ids);
    }
}

}  // namespace tera
