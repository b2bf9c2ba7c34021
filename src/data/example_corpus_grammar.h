// A small language for stories.
//
//   %class a, b, c          words of a class; or one entry per line, its fields separated by ';'
//   @rule                   the lines that follow are alternatives, one of which stands for <rule>
//   #plot name: x=class …   the lines that follow are told in order, with x, … drawn from their classes
//   [a|b|]                  one of the alternatives, which may be empty and may nest
//   {x} {x.part}            a drawn entry or a part of it (he, him, his, noun, …)
//   -                       a line that begins a new paragraph
//   ^ ~                     the next letter is a capital, or is not; sentences and quotations begin with a capital by
//                           themselves
// "a" becomes "an" before a vowel.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tera {

extern const char* const example_corpus_words;
extern const char* const example_corpus_rules;
extern const char* const example_corpus_plots_home;
extern const char* const example_corpus_plots_world;
extern const char* const example_corpus_plots_tales;

/// A stream of choices that depends on the seed and the number of the story only.
class StoryRandom {
  public:
    StoryRandom(std::uint64_t seed, std::uint64_t story)
        : state_(seed * 0x9E3779B97F4A7C15 + story * 0xD1B54A32D192ED03) {
        next();
    }
    /// Uniform in 0..n-1.
    std::size_t below(std::size_t n) { return static_cast<std::size_t>((next() >> 32) * n >> 32); }
    bool chance(int percent) { return below(100) < static_cast<std::size_t>(percent); }

  private:
    std::uint64_t next() {
        state_ += 0x9E3779B97F4A7C15;
        std::uint64_t z = state_;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
        z = (z ^ z >> 27) * 0x94D049BB133111EB;
        return z ^ z >> 31;
    }
    std::uint64_t state_;
};

struct StoryPlot {
    std::string name;
    std::vector<std::pair<std::string, std::string>> cast;  // variable, class
    std::vector<std::string> lines;
};

struct StoryGrammar {
    std::map<std::string, std::vector<std::string>, std::less<>> classes;
    std::map<std::string, std::vector<std::string>, std::less<>> rules;
    std::vector<StoryPlot> plots;
};

/// Reads grammar texts; a broken contract (TERA_CHECK) for a line that fits nowhere.
StoryGrammar parse_story_grammar(const std::vector<std::string_view>& texts);

/// The built-in grammar.
const StoryGrammar& example_grammar();

/// What the variables of a plot stand for: variable -> part -> text; the part "" is the variable itself.
using StoryCast = std::map<std::string, std::map<std::string, std::string, std::less<>>, std::less<>>;

StoryCast draw_cast(const StoryGrammar& grammar, const StoryPlot& plot, StoryRandom& random);

/// Writes a template out; a broken contract for an unknown rule, variable or part.
std::string expand_template(const StoryGrammar& grammar, const StoryCast& cast, std::string_view text,
                            StoryRandom& random);

/// Capitals at the beginning of sentences and quotations, "an" before vowels, single blanks.
std::string polish_prose(std::string_view text);

/// One story.
std::string tell_story(const StoryGrammar& grammar, const StoryPlot& plot, StoryRandom& random);

}  // namespace tera
