#include "token/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "token/hf_unicode.h"
#include "token/unicode.h"
#include "token/utf8.h"

namespace tera {

namespace {

CodePoint char_at(std::string_view text, std::size_t at) {
    return decode_utf8(text.data() + at, text.data() + text.size());
}

/// Start of the character that ends at `end`, which is not 0.
std::size_t char_before(std::string_view text, std::size_t end) {
    std::size_t at = end - 1;
    while (at > 0 && (text[at] & 0xC0) == 0x80) --at;
    return at;
}

std::size_t after_spaces(std::string_view text, std::size_t at) {
    while (at < text.size()) {
        const CodePoint c = char_at(text, at);
        if (!is_white_space(c.value)) break;
        at += c.bytes;
    }
    return at;
}

bool is_word_at(std::string_view text, std::size_t at) { return hf_chars()(char_at(text, at).value).is_word(); }

}  // namespace

StringFinder::StringFinder(const std::vector<std::string_view>& strings) : nodes_(1) {
    first_.fill(none);
    for (std::size_t index = 0; index < strings.size(); ++index) {
        std::uint32_t node = 0;
        for (const char c : strings[index]) {
            const auto byte = static_cast<unsigned char>(c);
            std::uint32_t to = child(node, byte);
            if (to == none) {
                to = static_cast<std::uint32_t>(nodes_.size());
                nodes_.push_back({0, nodes_[node].depth + 1, none, none});
                if (node == 0)
                    first_[byte] = to;
                else
                    children_[std::uint64_t{node} << 8 | byte] = to;
            }
            node = to;
        }
        TERA_CHECK(node != 0 && nodes_[node].string == none, "a string is empty or there twice");
        nodes_[node].string = static_cast<std::uint32_t>(index);
    }
    // Parents before children, so that the way of a suffix is complete when a longer string asks for it.
    std::vector<std::pair<std::uint64_t, std::uint32_t>> edges(children_.begin(), children_.end());
    std::sort(edges.begin(), edges.end(),
              [this](const auto& a, const auto& b) { return nodes_[a.second].depth < nodes_[b.second].depth; });
    for (const auto& [key, node] : edges) {
        nodes_[node].fail = next(nodes_[key >> 8].fail, static_cast<unsigned char>(key & 255));
        const Node& suffix = nodes_[nodes_[node].fail];
        nodes_[node].shorter = suffix.string != none ? nodes_[node].fail : suffix.shorter;
    }
    const auto begins = [](std::uint32_t to) { return to != none; };
    if (std::count_if(first_.begin(), first_.end(), begins) == 1)
        only_first_ = static_cast<int>(std::find_if(first_.begin(), first_.end(), begins) - first_.begin());
}

std::uint32_t StringFinder::next(std::uint32_t node, unsigned char byte) const {
    for (;; node = nodes_[node].fail) {
        const std::uint32_t to = child(node, byte);
        if (to != none) return to;
        if (node == 0) return 0;
    }
}

/// The first place from `at` on where some string may begin.
std::size_t StringFinder::skip(std::string_view text, std::size_t at) const {
    if (only_first_ >= 0) {
        const void* found = std::memchr(text.data() + at, only_first_, text.size() - at);
        return found ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) : text.size();
    }
    while (at < text.size() && first_[static_cast<unsigned char>(text[at])] == none) ++at;
    return at;
}

bool StringFinder::find(std::string_view text, std::size_t from, Match& match) const {
    if (empty()) return false;
    bool is_found = false;
    std::uint32_t state = 0;
    for (std::size_t at = from; at < text.size(); ++at) {
        if (state == 0 && !is_found) {
            at = skip(text, at);
            if (at == text.size()) break;
        }
        state = next(state, static_cast<unsigned char>(text[at]));
        const Node& node = nodes_[state];
        const std::size_t end = at + 1;
        if (is_found && end - node.depth > match.begin) break;  // what may still come begins later
        const std::uint32_t ending = node.string != none ? state : node.shorter;
        if (ending == none) continue;
        const std::size_t begin = end - nodes_[ending].depth;
        if (!is_found || begin <= match.begin) match = {begin, end, nodes_[ending].string};
        is_found = true;
    }
    return is_found;
}

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens, const std::vector<std::string>& patterns,
                                   bool split_special)
    : tokens_(std::move(tokens)),
      finder_(std::vector<std::string_view>(patterns.begin(), patterns.end())),
      split_special_(split_special) {}

void AddedTokenFinder::split(std::string_view text, std::vector<AddedSplit>& splits) const {
    splits.clear();
    std::size_t done = 0;                         // all before is in `splits`
    std::size_t spaces_from = 1, spaces_end = 0;  // where rstrip has looked, so that it looks once
    StringFinder::Match match{};
    for (std::size_t from = 0; finder_.find(text, from, match);) {
        from = match.end;
        const AddedToken& token = tokens_[match.index];
        if (split_special_ && token.special) continue;
        std::size_t begin = match.begin, end = match.end;
        if (token.single_word) {
            const bool touches_left = begin > 0 && is_word_at(text, char_before(text, begin));
            if (touches_left || (end < text.size() && is_word_at(text, end))) continue;
        }
        while (token.lstrip && begin > done) {
            const std::size_t before = char_before(text, begin);
            if (!is_white_space(char_at(text, before).value)) break;
            begin = before;
        }
        if (token.rstrip) {
            if (end < spaces_from || end > spaces_end) {
                spaces_from = end;
                spaces_end = after_spaces(text, end);
            }
            end = spaces_end;
        }
        if (done < begin) splits.push_back({done, begin, -1});
        splits.push_back({begin, end, token.id});
        done = end;
    }
    if (done < text.size()) splits.push_back({done, text.size(), -1});
}

}  // namespace tera
