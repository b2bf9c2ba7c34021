// What token/pretokenize.cpp (one piece at a time) and token/piece_scanner.cpp (many) both need to know of the
// patterns.
#pragma once

#include "token/pretokenize.h"

namespace tera {

/// In what the patterns differ.
struct PretokenRules {
    bool contraction_first = false;  // 's and the like are pieces of their own, in any case of letters
    bool contraction_last = false;   // or belong to the word before
    bool cased_words = false;        // U*W+|U+W*
    bool marks_in_words = false;
    bool slash_tail = false;    // / behind punctuation and line ends
    bool blank_ending = false;  // \s++$
    int digits = 3;             // of a number piece, at most
};

constexpr PretokenRules rules_of(PretokenPattern pattern) {
    PretokenRules rules;
    rules.contraction_first = pattern == PretokenPattern::cl100k || pattern == PretokenPattern::llama3 ||
                              pattern == PretokenPattern::qwen2 || pattern == PretokenPattern::qwen3_5;
    rules.cased_words = pattern == PretokenPattern::tekken_v2 || pattern == PretokenPattern::o200k;
    rules.contraction_last = pattern == PretokenPattern::o200k;
    rules.marks_in_words = pattern == PretokenPattern::qwen3_5;
    rules.slash_tail = rules.cased_words;
    rules.blank_ending = pattern == PretokenPattern::cl100k;
    if (pattern == PretokenPattern::qwen2 || pattern == PretokenPattern::qwen3_5 ||
        pattern == PretokenPattern::tekken_v1 || pattern == PretokenPattern::tekken_v2)
        rules.digits = 1;
    return rules;
}

/// Length of the contraction ('s 't 're 've 'm 'll 'd) whose apostrophe is at p, or 0. With `fold`, in any case.
inline int contraction(const char* p, const char* end, bool fold) {
    const auto at = [&](int i) -> char {
        if (end - p <= i) return '\0';
        return fold && p[i] >= 'A' && p[i] <= 'Z' ? static_cast<char>(p[i] + 32) : p[i];
    };
    switch (at(1)) {
        case 's':
        case 't':
        case 'm':
        case 'd':
            return 2;
        case 'r':
        case 'v':
            return at(2) == 'e' ? 3 : 0;
        case 'l':
            return at(2) == 'l' ? 3 : 0;
        case '\xC5':  // U+017F, the long s
            return fold && at(2) == '\xBF' ? 3 : 0;
        default:
            return 0;
    }
}

}  // namespace tera
