// Cuts text into sentences, by rules. docs/data-preparation.md states them for users.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "token/sentence_abbreviations.h"

namespace tera {

class SentenceSplitter {
  public:
    struct Options {
        std::string language = "english";
        bool keep_newlines = false;  // the white space behind a sentence stays part of it; else it is dropped
    };
    /// UsageError for a language that is not known.
    explicit SentenceSplitter(const Options& options);

    /// Appends the sentences of the text (views into it). With keep_newlines they make up the whole text.
    void split(std::string_view text, std::vector<std::string_view>& sentences) const;

  private:
    struct End {
        std::size_t end = 0;   // of the sentence, its closing quotes included
        std::size_t next = 0;  // where the next one begins
        bool is_end = false;
    };
    End examine_mark(std::string_view text, std::size_t at) const;
    End examine_newline(std::string_view text, std::size_t at) const;
    bool is_abbreviation(std::string_view text, std::size_t stop, std::string_view behind) const;

    const Abbreviations& abbreviations_;
    bool keep_newlines_;
};

}  // namespace tera
