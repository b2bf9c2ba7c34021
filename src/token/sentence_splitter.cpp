#include "token/sentence_splitter.h"

#include <algorithm>
#include <array>

#include "token/hf_unicode.h"
#include "token/unicode.h"
#include "token/utf8.h"

namespace tera {

namespace {

constexpr std::size_t longest_word = 48;  // bytes before a full stop that are looked at

enum class Mark { none, soft, hard };  // hard: ends a sentence whatever follows

struct Char {
    std::uint32_t code = 0;
    std::size_t bytes = 0;  // 0: the text ends here
};

Char char_at(std::string_view text, std::size_t at) {
    if (at >= text.size()) return {};
    const CodePoint code = decode_utf8(text.data() + at, text.data() + text.size());
    return {code.value, code.bytes};
}

Mark mark_of(std::uint32_t c) {
    switch (c) {
        case '.':
        case '!':
        case '?':
        case 0x2026:  // ellipsis
        case 0x203C:  // double exclamation mark
        case 0x2047:  // double question mark
        case 0x2048:
        case 0x2049:
        case 0x061F:  // Arabic question mark
        case 0x06D4:  // Urdu full stop
        case 0x0589:  // Armenian full stop
        case 0x1362:  // Ethiopic full stop
        case 0x1367:  // Ethiopic question mark
            return Mark::soft;
        case 0x3002:  // ideographic full stop
        case 0xFF61:  // the same, half width
        case 0xFF01:  // full-width exclamation mark
        case 0xFF1F:  // full-width question mark
        case 0x0964:  // danda
        case 0x0965:  // double danda
        case 0x104B:  // Burmese
        case 0x17D4:  // Khmer
            return Mark::hard;
        default:
            return Mark::none;
    }
}

bool is_closing(std::uint32_t c) {
    constexpr std::array<std::uint32_t, 18> closing = {'"',    '\'',   ')',    ']',    '}',    0x201D,
                                                       0x2019, 0xBB,   0x203A, 0x300D, 0x300F, 0x3011,
                                                       0x300B, 0x3009, 0xFF09, 0xFF3D, 0xFF5D, 0x201C};
    return std::find(closing.begin(), closing.end(), c) != closing.end();
}

/// What may stand before the first letter of a sentence.
bool is_opening(std::uint32_t c) {
    constexpr std::array<std::uint32_t, 19> opening = {'"',    '\'',   '(',    '[',  '{',    '-',    '*',
                                                       0x201C, 0x2018, 0x201E, 0xAB, 0x2039, 0x300C, 0x300E,
                                                       0x2013, 0x2014, 0x2022, 0xBF, 0xA1};
    return std::find(opening.begin(), opening.end(), c) != opening.end();
}

bool is_space(std::uint32_t c) { return is_white_space(c); }
bool is_digit(std::uint32_t c) { return general_category(c) == Category::nd; }
bool is_upper(std::uint32_t c) {
    const Category category = general_category(c);
    return category == Category::lu || category == Category::lt;
}
bool is_letter(std::uint32_t c) {
    const Category category = general_category(c);
    return category >= Category::lu && category <= Category::lo;
}

struct Blank {
    std::size_t end = 0;
    int newlines = 0;
};
Blank skip_blanks(std::string_view text, std::size_t at) {
    Blank blank{at, 0};
    for (Char c = char_at(text, at); c.bytes > 0 && is_space(c.code); c = char_at(text, blank.end)) {
        if (c.code == '\n' || c.code == 0x2029) ++blank.newlines;
        blank.end += c.bytes;
    }
    return blank;
}

std::string lowered(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const Char c = char_at(text, at);
        const auto lower = lower_case(c.code);
        if (lower.empty())
            out += text.substr(at, c.bytes);
        else
            append_utf8(out, lower[0]);
        at += c.bytes;
    }
    return out;
}

/// What stands before the full stop at `stop`, back to a blank or an opening mark.
std::string_view word_before(std::string_view text, std::size_t stop) {
    std::size_t begin = stop;
    while (begin > 0 && stop - begin < longest_word) {
        const auto byte = static_cast<unsigned char>(text[begin - 1]);
        if (byte <= ' ' || byte == '(' || byte == '[' || byte == '{' || byte == '"') break;
        --begin;
    }
    while (begin < stop && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) ++begin;
    std::string_view word = text.substr(begin, stop - begin);
    for (Char c = char_at(word, 0); c.bytes > 0 && (is_opening(c.code) || is_space(c.code)); c = char_at(word, 0))
        word.remove_prefix(c.bytes);
    return word;
}

/// "U.S", "J.-P", "J": letters one by one.
bool is_initials(std::string_view word) {
    bool after_letter = false, has_upper = false;
    for (std::size_t at = 0; at < word.size();) {
        const Char c = char_at(word, at);
        if (is_letter(c.code)) {
            if (after_letter) return false;
            after_letter = true;
            has_upper = has_upper || is_upper(c.code);
        } else if (c.code == '.' || c.code == '-') {
            after_letter = false;
        } else {
            return false;
        }
        at += c.bytes;
    }
    return after_letter && (has_upper || word.find('.') != std::string_view::npos);
}

bool is_number(std::string_view word) {
    return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view first_word(std::string_view text) {
    std::size_t end = 0;
    for (Char c = char_at(text, 0); c.bytes > 0 && is_letter(c.code) && end < longest_word; c = char_at(text, end))
        end += c.bytes;
    return text.substr(0, end);
}

}  // namespace

SentenceSplitter::SentenceSplitter(const Options& options)
    : abbreviations_(abbreviations_of(options.language)), keep_newlines_(options.keep_newlines) {}

/// Whether the full stop at `stop` belongs to its word and does not end the sentence. `behind` is what follows, from
/// its first letter or digit on.
bool SentenceSplitter::is_abbreviation(std::string_view text, std::size_t stop, std::string_view behind) const {
    const std::string_view word = word_before(text, stop);
    if (word.empty()) return false;
    const std::uint32_t next = char_at(behind, 0).code;
    if (is_number(word)) {
        const bool begins_line = word.data() == text.data() || word.data()[-1] == '\n';
        return begins_line || (abbreviations_.has_ordinals && word.size() <= 2);  // "1. Introduction", "3. Oktober"
    }
    const std::string lower = lowered(word);
    if (abbreviations_.never_end.count(lower)) return true;
    if (abbreviations_.before_number.count(lower)) return is_digit(next);
    if (abbreviations_.may_end.count(lower)) return !is_upper(next);
    if (!is_initials(word)) return false;
    if (word.find('.') == std::string_view::npos) return true;  // one letter: a name goes on
    return !abbreviations_.starters.count(lowered(first_word(behind)));
}

SentenceSplitter::End SentenceSplitter::examine_mark(std::string_view text, std::size_t at) const {
    End end{at, at, false};
    bool is_hard = false;
    std::size_t marks = 0;
    Char c = char_at(text, at);
    for (; c.bytes > 0 && mark_of(c.code) != Mark::none; c = char_at(text, end.end), ++marks) {
        is_hard = is_hard || mark_of(c.code) == Mark::hard;
        end.end += c.bytes;
    }
    const bool is_single_stop = marks == 1 && text[at] == '.';
    bool has_closing = false;
    for (; c.bytes > 0 && is_closing(c.code); c = char_at(text, end.end)) {
        end.end += c.bytes;
        has_closing = true;
    }
    const Blank blank = skip_blanks(text, end.end);
    end.next = blank.end;
    if (is_hard || end.next == text.size() || blank.newlines >= 2) {
        end.is_end = true;
        return end;
    }
    if (end.next == end.end) return end;  // "3.14", "example.org"
    std::size_t behind = end.next;
    for (c = char_at(text, behind); c.bytes > 0 && is_opening(c.code); c = char_at(text, behind)) behind += c.bytes;
    if (general_category(c.code) == Category::ll) return end;
    end.is_end = !(is_single_stop && !has_closing && is_abbreviation(text, at, text.substr(behind)));
    return end;
}

/// A blank line ends a sentence, with or without a mark.
SentenceSplitter::End SentenceSplitter::examine_newline(std::string_view text, std::size_t at) const {
    const Blank blank = skip_blanks(text, at);
    return {at, blank.end, blank.newlines >= 2};
}

void SentenceSplitter::split(std::string_view text, std::vector<std::string_view>& sentences) const {
    std::size_t begin = keep_newlines_ ? 0 : skip_blanks(text, 0).end;
    const auto add = [&](std::size_t end) {
        std::string_view sentence = text.substr(begin, end - begin);
        while (!keep_newlines_ && !sentence.empty() && static_cast<unsigned char>(sentence.back()) <= ' ')
            sentence.remove_suffix(1);
        if (!sentence.empty()) sentences.push_back(sentence);
    };
    for (std::size_t at = skip_blanks(text, begin).end; at < text.size();) {
        const auto byte = static_cast<unsigned char>(text[at]);
        const bool may_be_mark = byte == '.' || byte == '!' || byte == '?' || byte >= 0xD6;
        if (byte != '\n' && !may_be_mark) {
            ++at;
            continue;
        }
        const Char c = char_at(text, at);
        if (byte != '\n' && mark_of(c.code) == Mark::none) {
            at += c.bytes;
            continue;
        }
        const End end = byte == '\n' ? examine_newline(text, at) : examine_mark(text, at);
        if (end.is_end) {
            add(keep_newlines_ ? end.next : end.end);
            begin = end.next;
        }
        at = end.next;
    }
    add(text.size());
}

}  // namespace tera
