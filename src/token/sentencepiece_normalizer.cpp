#include "token/sentencepiece_normalizer.h"

#include <cstring>

#include "core/error.h"
#include "token/utf8.h"

namespace tera {

namespace {

// The fields of a unit of the double array.
std::size_t offset_of(std::uint32_t unit) { return std::size_t{unit >> 10} << ((unit & 0x200) >> 6); }
bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000FF; }
std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7FFFFFFF; }

constexpr std::string_view replacement_character = "\xEF\xBF\xBD";
constexpr std::size_t no_node = static_cast<std::size_t>(-1);

}  // namespace

CharsMap::CharsMap(std::string_view blob, const std::string& file) {
    std::uint32_t trie_bytes = 0;
    if (blob.size() <= 4) usage_error(file, ": the normalisation rules are cut off");
    std::memcpy(&trie_bytes, blob.data(), 4);
    blob.remove_prefix(4);
    if (trie_bytes >= blob.size() || trie_bytes % 4 != 0 || trie_bytes == 0)
        usage_error(file, ": the normalisation rules are damaged: ", trie_bytes, " bytes of ", blob.size(),
                    " for the trie");
    units_.resize(trie_bytes / 4);
    std::memcpy(units_.data(), blob.data(), trie_bytes);
    replacements_ = blob.substr(trie_bytes);
    replacements_.push_back('\0');  // so that the last one ends
    for (unsigned first = 0; first < 256; ++first) {
        const std::size_t node = find_child(offset_of(unit(0)), static_cast<unsigned char>(first));
        if (node == no_node) continue;
        for (unsigned second = 0; second < 256; ++second) {
            if (has_leaf(unit(node)) ||
                find_child(node ^ offset_of(unit(node)), static_cast<unsigned char>(second)) != no_node)
                may_match_[first][second >> 5] |= 1u << (second & 31);
        }
    }
}

/// `base` is the place of a node's children; returns that of the child.
std::size_t CharsMap::find_child(std::size_t base, unsigned char byte) const {
    const std::size_t at = base ^ byte;
    return at < units_.size() && label_of(units_[at]) == byte ? at : no_node;
}

CharsMap::Match CharsMap::longest(std::string_view text) const {
    Match best;
    std::size_t base = offset_of(unit(0));
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::size_t node = find_child(base, static_cast<unsigned char>(text[i]));
        if (node == no_node) break;
        base = node ^ offset_of(units_[node]);
        if (!has_leaf(units_[node])) continue;
        const std::uint32_t at = value_of(unit(base));
        if (at < replacements_.size()) best = {i + 1, std::string_view(replacements_.data() + at)};
    }
    return best;
}

SentencePieceNormalizer::SentencePieceNormalizer(const SentencePieceModel& model, const std::string& file)
    : add_prefix_(model.add_dummy_prefix && !model.whitespace_is_suffix),
      add_suffix_(model.add_dummy_prefix && model.whitespace_is_suffix),
      remove_extra_(model.remove_extra_whitespaces),
      escape_(model.escape_whitespaces) {
    if (!model.charsmap.empty()) map_ = CharsMap(model.charsmap, file);
    std::vector<std::pair<std::string_view, std::int32_t>> symbols;
    for (std::int32_t id = 0; id < model.size(); ++id) {
        const SentencePieceModel::Piece& piece = model.piece(id);
        if (piece.type != PieceType::user_defined) continue;
        symbols.emplace_back(piece.text, id);
        begins_user_defined_[static_cast<unsigned char>(piece.text[0])] = true;
    }
    user_defined_ = PieceTrie(std::move(symbols));
    for (unsigned c = 0; c < 128; ++c) {
        for (unsigned next = 0; next < 256; ++next)
            stays_[c][next] =
                !begins_user_defined_[c] &&
                (map_.empty() || !map_.may_match(static_cast<unsigned char>(c), static_cast<unsigned char>(next)));
    }
}

SentencePieceNormalizer::Prefix SentencePieceNormalizer::prefix(std::string_view text) const {
    if (begins_user_defined(text[0])) {
        const PieceTrie::Match match = user_defined_.longest(text);
        if (match.value >= 0) return {text.substr(0, match.length), match.length};
    }
    if (!map_.empty()) {
        const CharsMap::Match match = map_.longest(text);
        if (match.length > 0) return {match.replacement, match.length};
    }
    const CodePoint code = decode_utf8(text.data(), text.data() + text.size());
    if (code.value == CodePoint::invalid) return {replacement_character, 1};
    return {text.substr(0, code.bytes), code.bytes};
}

void SentencePieceNormalizer::normalize(std::string_view text, std::string& out) const {
    out.clear();
    while (remove_extra_ && !text.empty()) {
        const Prefix next = prefix(text);
        if (next.text != " ") break;
        text.remove_prefix(next.consumed);
    }
    if (text.empty()) return;
    out.reserve(text.size() + text.size() / 2 + 8);
    const std::string_view space = escape_ ? sentencepiece_space : std::string_view(" ");
    if (add_prefix_) out += space;
    bool after_space = remove_extra_;
    const auto stays = [this](const char* c) {
        const auto first = static_cast<unsigned char>(c[0]), second = static_cast<unsigned char>(c[1]);
        return first < 128 && stays_[first][second];
    };
    const char* p = text.data();
    const char* const end = p + text.size();
    while (p < end) {
        const char* run = p;
        while (p + 1 < end && stays(p) && *p != ' ') ++p;
        if (p > run) {
            out.append(run, p);
            after_space = false;
        }
        if (p + 1 < end && *p == ' ' && stays(p)) {
            ++p;
            if (!after_space) out += space;
            after_space = remove_extra_;
            continue;
        }
        const Prefix next = prefix({p, static_cast<std::size_t>(end - p)});
        p += next.consumed;
        std::string_view kept = next.text;
        while (after_space && kept.starts_with(' ')) kept.remove_prefix(1);
        if (kept.empty()) continue;
        for (const char c : kept) {
            if (c == ' ')
                out += space;
            else
                out += c;
        }
        after_space = remove_extra_ && kept.ends_with(' ');
    }
    if (remove_extra_)
        while (out.ends_with(space)) out.resize(out.size() - space.size());
    if (add_suffix_) out += space;
}

}  // namespace tera
