// Abbreviations that end with a full stop, by language.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace tera {

struct Abbreviations {
    std::unordered_set<std::string_view> never_end;      // titles, "e.g": what follows belongs to the sentence
    std::unordered_set<std::string_view> before_number;  // "no", "jan": only where a number follows
    std::unordered_set<std::string_view> may_end;        // "etc", "inc": the sentence ends if a capital follows
    std::unordered_set<std::string_view> starters;       // words that begin a sentence even behind "U.S."
    bool has_ordinals = false;                           // "3. Oktober"
};

/// All in lower case, without their last full stop. UsageError, naming the languages there are, for any other.
const Abbreviations& abbreviations_of(const std::string& language);

std::vector<std::string> sentence_languages();

}  // namespace tera
