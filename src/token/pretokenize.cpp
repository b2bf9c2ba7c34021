#include "token/pretokenize.h"

#include <array>

#include "token/pretokenize_rules.h"
#include "token/utf8.h"

namespace tera {

namespace {

struct KnownRegex {
    std::string_view regex;
    PretokenPattern pattern;
};

// Different spellings of one pattern: possessive quantifiers change nothing where no shorter match could succeed.
constexpr std::array<KnownRegex, 15> known_regexes = {{
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", PretokenPattern::gpt2},
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", PretokenPattern::gpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", PretokenPattern::gpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)", PretokenPattern::gpt2},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|)"
     R"(\s+(?!\S)|\s)",
     PretokenPattern::cl100k},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)"
     R"(\s+(?!\S)|\s+)",
     PretokenPattern::llama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]+|)"
     R"(\s+(?!\S)|\s+)",
     PretokenPattern::llama3},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|)"
     R"(\s+(?!\S)|\s+)",
     PretokenPattern::llama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)"
     R"(\s+(?!\S)|\s+)",
     PretokenPattern::qwen2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)"
     R"(\s*[\r\n]+|\s+(?!\S)|\s+)",
     PretokenPattern::qwen3_5},
    {R"([^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     PretokenPattern::tekken_v1},
    {R"([^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     PretokenPattern::tekken_v1},
    {R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     PretokenPattern::tekken_v1},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
     R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     PretokenPattern::tekken_v2},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     PretokenPattern::o200k},
}};

struct Char {
    CharClass char_class;
    std::uint32_t bytes;
};

inline Char char_at(const char* p, const char* end) {
    const CharClassTable& table = char_class_table();
    const std::uint8_t first = table.first_byte()[static_cast<unsigned char>(*p)];
    if (first != CharClassTable::multi) return {static_cast<CharClass>(first), 1};
    const CodePoint code = decode_utf8(p, end);
    if (code.value == CodePoint::invalid) return {CharClass::other, 1};
    return {table(code.value), code.bytes};
}

/// End of the run of characters that `wanted` accepts.
template <class Wanted>
inline const char* run_end(const char* p, const char* end, const Wanted& wanted) {
    while (p < end) {
        const Char c = char_at(p, end);
        if (!wanted(c.char_class)) break;
        p += c.bytes;
    }
    return p;
}

constexpr bool is_line_end(char c) { return c == '\r' || c == '\n'; }
constexpr bool is_number(CharClass c) { return c == CharClass::number; }
constexpr bool is_rest(CharClass c) { return c == CharClass::other || c == CharClass::mark; }

/// p is at a space character. Runs with line ends are cut behind the last one, if `cut_lines`. What is left of a run
/// gives its last character to what follows.
const char* blank_end(const char* p, const char* end, bool cut_lines, bool whole_at_end) {
    const char* last = p;
    const char* lines = nullptr;
    const char* q = p;
    while (q < end) {
        const Char c = char_at(q, end);
        if (c.char_class != CharClass::space) break;
        last = q;
        if (is_line_end(*q)) lines = q + 1;
        q += c.bytes;
    }
    if (q == end && whole_at_end) return q;
    if (cut_lines && lines) return lines;
    return q == end || last == p ? q : last;
}

const char* gpt2_piece_end(const char* p, const char* end) {
    const char* body = p;
    if (*p == ' ' && p + 1 < end) ++body;
    const Char c = char_at(body, end);
    if (c.char_class == CharClass::space) return blank_end(p, end, false, false);
    if (*p == '\'') {
        if (const int length = contraction(p, end, false)) return p + length;
    }
    const char* next = body + c.bytes;
    if (is_letter(c.char_class)) return run_end(next, end, is_letter);
    if (is_number(c.char_class)) return run_end(next, end, is_number);
    return run_end(next, end, is_rest);
}

struct CasedWord {
    const char* end;         // null: none
    bool has_small = false;  // it ends with W+: the first alternative
};

/// U*W+|U+W* at p. U* takes all it can and gives back as little as W+ needs: up to the last character that is in both;
/// if none is, it is the second alternative that matches.
CasedWord cased_word(const char* p, const char* end) {
    constexpr auto is_small = [](CharClass c) {
        return c == CharClass::lower || c == CharClass::caseless || c == CharClass::mark;
    };
    const char* after_both = nullptr;
    const char* q = p;
    while (q < end) {
        const Char c = char_at(q, end);
        if (c.char_class == CharClass::lower) return {run_end(q, end, is_small), true};
        if (!is_small(c.char_class) && c.char_class != CharClass::upper) break;
        q += c.bytes;
        if (is_small(c.char_class)) after_both = q;
    }
    if (after_both) return {after_both, true};
    return {q > p ? q : nullptr, false};
}

/// The word that begins with the character c at p, which may be any but a number and a line end; null if none does.
template <PretokenPattern pattern>
const char* word_end(const char* p, const char* end, Char c) {
    constexpr PretokenRules rules = rules_of(pattern);
    const char* next = p + c.bytes;
    if constexpr (rules.cased_words) {
        const CasedWord word = cased_word(is_letter(c.char_class) ? p : next, end);
        // A mark is small: alone it matches the first alternative, before the second is tried with it in front.
        const char* stop = c.char_class == CharClass::mark && !word.has_small ? next : word.end;
        if (rules.contraction_last && stop && stop < end && *stop == '\'') stop += contraction(stop, end, true);
        return stop;
    } else {
        const auto in_word = [](CharClass w) { return is_letter(w) || (rules.marks_in_words && w == CharClass::mark); };
        const char* stop = run_end(next, end, in_word);
        return stop > next || in_word(c.char_class) ? stop : nullptr;
    }
}

template <PretokenPattern pattern>
const char* number_end(const char* p, const char* end) {
    for (int i = 0; i < rules_of(pattern).digits && p < end; ++i) {
        const Char c = char_at(p, end);
        if (!is_number(c.char_class)) break;
        p += c.bytes;
    }
    return p;
}

template <PretokenPattern pattern>
const char* modern_piece_end(const char* p, const char* end) {
    constexpr PretokenRules rules = rules_of(pattern);
    constexpr auto is_punctuation = [](CharClass c) {
        return c == CharClass::other || (!rules.marks_in_words && c == CharClass::mark);
    };
    if (rules.contraction_first && *p == '\'') {
        if (const int length = contraction(p, end, true)) return p + length;
    }
    const Char c = char_at(p, end);
    if (is_number(c.char_class)) return number_end<pattern>(p, end);
    if (!is_line_end(*p)) {
        if (const char* word = word_end<pattern>(p, end, c)) return word;
    }
    const char* body = p;
    if (*p == ' ' && p + 1 < end && is_punctuation(char_at(p + 1, end).char_class)) ++body;
    if (body == p && c.char_class == CharClass::space) return blank_end(p, end, true, rules.blank_ending);
    const char* stop = run_end(body, end, is_punctuation);
    while (stop < end && (is_line_end(*stop) || (rules.slash_tail && *stop == '/'))) ++stop;
    return stop;
}

}  // namespace

std::optional<PretokenPattern> pretoken_pattern_of(std::string_view regex) {
    for (const KnownRegex& known : known_regexes)
        if (known.regex == regex) return known.pattern;
    return std::nullopt;
}

const char* piece_end(PretokenPattern pattern, const char* p, const char* end) {
    switch (pattern) {
        case PretokenPattern::gpt2:
            return gpt2_piece_end(p, end);
        case PretokenPattern::cl100k:
            return modern_piece_end<PretokenPattern::cl100k>(p, end);
        case PretokenPattern::llama3:
            return modern_piece_end<PretokenPattern::llama3>(p, end);
        case PretokenPattern::qwen2:
            return modern_piece_end<PretokenPattern::qwen2>(p, end);
        case PretokenPattern::qwen3_5:
            return modern_piece_end<PretokenPattern::qwen3_5>(p, end);
        case PretokenPattern::tekken_v1:
            return modern_piece_end<PretokenPattern::tekken_v1>(p, end);
        case PretokenPattern::tekken_v2:
            return modern_piece_end<PretokenPattern::tekken_v2>(p, end);
        case PretokenPattern::o200k:
            return modern_piece_end<PretokenPattern::o200k>(p, end);
    }
    return end;
}

}  // namespace tera
