#include "data/example_corpus_grammar.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "core/error.h"

namespace tera {

namespace {

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    for (;;) {
        const std::size_t stop = text.find(separator);
        std::string_view part = text.substr(0, stop);
        while (part.starts_with(' ')) part.remove_prefix(1);
        while (part.ends_with(' ')) part.remove_suffix(1);
        parts.emplace_back(part);
        if (stop == std::string_view::npos) return parts;
        text.remove_prefix(stop + 1);
    }
}

StoryPlot parse_plot_header(std::string_view header) {
    const auto halves = split(header, ':');
    TERA_CHECK(halves.size() == 2, "plot header: ", header);
    StoryPlot plot;
    plot.name = halves[0];
    for (const std::string& word : split(halves[1], ' ')) {
        const auto sides = split(word, '=');
        TERA_CHECK(sides.size() == 2, "cast of plot ", plot.name, ": ", word);
        plot.cast.emplace_back(sides[0], sides[1]);
    }
    return plot;
}

const std::vector<std::string>& words_of(const StoryGrammar& grammar, const std::string& name) {
    const auto found = grammar.classes.find(name);
    TERA_CHECK(found != grammar.classes.end(), "no class %", name);
    return found->second;
}

const std::string& pick(const std::vector<std::string>& from, StoryRandom& random) {
    return from[random.below(from.size())];
}

using Parts = std::map<std::string, std::string, std::less<>>;

void add_pronouns(Parts& parts, bool is_she) {
    parts["he"] = is_she ? "she" : "he";
    parts["him"] = is_she ? "her" : "him";
    parts["his"] = is_she ? "her" : "his";
    parts["himself"] = is_she ? "herself" : "himself";
}

/// Draws the members of a plot's cast, no name or animal twice.
class CastDrawer {
  public:
    CastDrawer(const StoryGrammar& grammar, StoryRandom& random) : grammar_(grammar), random_(random) {}

    Parts draw(const std::string& name) {
        if (name == "someone") return random_.chance(65) ? child() : animal();
        if (name == "other") return last_was_animal_ ? animal() : child();  // one of the same world
        if (name == "child") return child();
        if (name == "animal") return animal();
        const std::vector<std::string>& words = words_of(grammar_, name);
        const auto fields = split(fresh(words), ';');
        if (name == "relation" || name == "parent" || name == "grandparent" || name == "grown") return adult(fields);
        if (name == "food" || name == "baked") return {{"", fields[0]}, {"the", fields[1]}, {"it", fields[2]}};
        if (name == "trouble") return {{"", fields[0]}, {"cure", fields[1]}};
        if (name == "riddle") return {{"", fields[0]}, {"answer", fields[1]}};
        if (name == "ruler") return ruler(fields);
        if (name == "outside") return {{"", fields[0]}, {"to", fields[1]}, {"the", fields[2]}};
        if (name == "skill") return {{"", fields[0]}, {"ing", fields[1]}, {"did", fields[2]}};
        if (name == "toy" || name == "treasure" || name == "fragile" || name == "clothing") return thing(fields[0]);
        return {{"", fields[0]}};
    }

  private:
    /// A word that this story does not use yet.
    const std::string& fresh(const std::vector<std::string>& words) {
        for (int tries = 0; tries < 50; ++tries) {
            const std::string& word = pick(words, random_);
            if (used_.insert(word).second) return word;
        }
        return pick(words, random_);
    }

    Parts child() {
        const bool is_she = next_is_she();
        last_was_animal_ = false;
        const std::string& name = fresh(words_of(grammar_, is_she ? "girl" : "boy"));
        const std::string kind = is_she ? "girl" : "boy";
        Parts parts{{"", name}, {"kind", kind}};
        introduce(parts, "child_nature");
        add_pronouns(parts, is_she);
        return parts;
    }

    Parts animal() {
        const bool is_she = next_is_she();
        last_was_animal_ = true;
        const std::string& name = fresh(words_of(grammar_, is_she ? "she_animal" : "he_animal"));
        const std::string& kind = fresh(words_of(grammar_, "animal_kind"));
        Parts parts{{"", name}, {"kind", kind}};
        introduce(parts, "animal_nature");
        add_pronouns(parts, is_she);
        return parts;
    }

    /// "a shy girl", "a shy girl named Lily"
    void introduce(Parts& parts, const std::string& natures) {
        parts["nature"] = "a " + pick(words_of(grammar_, natures), random_) + " " + parts["kind"];
        parts["intro"] = parts["nature"] + " named " + parts[""];
    }

    Parts adult(const std::vector<std::string>& fields) {
        TERA_CHECK(fields.size() == 6, "an adult needs 6 fields, not ", fields.size());
        Parts parts{{"", fields[0]}, {"kind", fields[1]}, {"call", fields[2]}};
        add_pronouns(parts, fields[3] == "she");
        return parts;
    }

    Parts ruler(const std::vector<std::string>& fields) {
        TERA_CHECK(fields.size() == 5, "a ruler needs 5 fields, not ", fields.size());
        Parts parts{{"", fields[0]}, {"a", fields[1]}, {"kind", fields[2]}, {"call", fields[3]}};
        add_pronouns(parts, fields[4] == "she");
        return parts;
    }

    /// "small red kite", "kite"
    Parts thing(const std::string& noun) {
        std::string full = noun;
        if (noun.find(' ') == std::string::npos) {
            if (random_.chance(55)) full = pick(words_of(grammar_, "colour"), random_) + " " + full;
            if (random_.chance(45)) full = pick(words_of(grammar_, "look"), random_) + " " + full;
        }
        return {{"", full}, {"noun", noun}};
    }

    /// Two people in one story mostly differ in their pronoun, so that "he" and "she" are clear.
    bool next_is_she() {
        is_she_ = people_++ == 0 ? random_.chance(50) : (random_.chance(80) ? !is_she_ : is_she_);
        return is_she_;
    }

    const StoryGrammar& grammar_;
    StoryRandom& random_;
    std::set<std::string> used_;
    int people_ = 0;
    bool is_she_ = false, last_was_animal_ = false;
};

class Expander {
  public:
    Expander(const StoryGrammar& grammar, const StoryCast& cast, StoryRandom& random)
        : grammar_(grammar), cast_(cast), random_(random) {}

    void expand(std::string_view text) {
        TERA_CHECK(++depth_ < 50, "rules call each other without end at: ", text);
        for (std::size_t i = 0; i < text.size(); ++i) {
            const char c = text[i];
            if (c != '[' && c != '{' && c != '<') {
                out_ += c;
                continue;
            }
            const std::size_t stop = closing(text, i);
            const std::string_view inside = text.substr(i + 1, stop - i - 1);
            if (c == '[')
                expand(alternative(inside));
            else if (c == '{')
                expand(value(inside));
            else
                expand(rule(inside));
            i = stop;
        }
        --depth_;
    }

    std::string take() { return std::move(out_); }

  private:
    static std::size_t closing(std::string_view text, std::size_t open) {
        const char opener = text[open], closer = opener == '[' ? ']' : opener == '{' ? '}' : '>';
        int depth = 0;
        for (std::size_t i = open; i < text.size(); ++i) {
            depth += text[i] == opener ? 1 : text[i] == closer ? -1 : 0;
            if (depth == 0) return i;
        }
        TERA_CHECK(false, "no ", closer, " in: ", text);
        return text.size();
    }

    std::string_view alternative(std::string_view inside) {
        std::vector<std::string_view> parts;
        int depth = 0;
        std::size_t first = 0;
        for (std::size_t i = 0; i <= inside.size(); ++i) {
            const char c = i < inside.size() ? inside[i] : '|';
            depth += c == '[' ? 1 : c == ']' ? -1 : 0;
            if (c != '|' || depth > 0) continue;
            parts.push_back(inside.substr(first, i - first));
            first = i + 1;
        }
        return parts[random_.below(parts.size())];
    }

    std::string_view value(std::string_view name) {
        const std::size_t dot = name.find('.');
        const auto found = cast_.find(name.substr(0, dot));
        TERA_CHECK(found != cast_.end(), "no variable {", name, "}");
        const auto part = found->second.find(dot == std::string_view::npos ? "" : name.substr(dot + 1));
        TERA_CHECK(part != found->second.end(), "no part {", name, "}");
        return part->second;
    }

    std::string_view rule(std::string_view name) {
        const auto found = grammar_.rules.find(name);
        TERA_CHECK(found != grammar_.rules.end(), "no rule <", name, ">");
        return pick(found->second, random_);
    }

    const StoryGrammar& grammar_;
    const StoryCast& cast_;
    StoryRandom& random_;
    std::string out_;
    int depth_ = 0;
};

bool begins_with_vowel_sound(std::string_view word) {
    for (const std::string_view exception : {"uni", "use", "one", "once"})
        if (word.starts_with(exception)) return false;
    if (word.starts_with("hour") || word.starts_with("honest")) return true;
    return !word.empty() && std::string_view("aeiouAEIOU").find(word[0]) != std::string_view::npos;
}

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

}  // namespace

StoryGrammar parse_story_grammar(const std::vector<std::string_view>& texts) {
    StoryGrammar grammar;
    std::vector<std::string>* lines = nullptr;
    for (const std::string_view text : texts) {
        for (const std::string& line : split(text, '\n')) {
            if (line.empty()) continue;
            if (line[0] == '%') {
                const std::size_t blank = std::min(line.find(' '), line.size());
                lines = &grammar.classes[line.substr(1, blank - 1)];
                if (blank < line.size()) *lines = split(std::string_view(line).substr(blank), ',');
            } else if (line[0] == '@') {
                lines = &grammar.rules[line.substr(1)];
            } else if (line.starts_with("#plot ")) {
                grammar.plots.push_back(parse_plot_header(std::string_view(line).substr(6)));
                lines = &grammar.plots.back().lines;
            } else {
                TERA_CHECK(lines, "a line before any rule: ", line);
                lines->push_back(line);
            }
        }
    }
    return grammar;
}

const StoryGrammar& example_grammar() {
    static const StoryGrammar grammar =
        parse_story_grammar({example_corpus_words, example_corpus_rules, example_corpus_plots_home,
                             example_corpus_plots_world, example_corpus_plots_tales});
    return grammar;
}

StoryCast draw_cast(const StoryGrammar& grammar, const StoryPlot& plot, StoryRandom& random) {
    StoryCast cast;
    CastDrawer drawer(grammar, random);
    for (const auto& [variable, name] : plot.cast) cast[variable] = drawer.draw(name);
    return cast;
}

std::string expand_template(const StoryGrammar& grammar, const StoryCast& cast, std::string_view text,
                            StoryRandom& random) {
    Expander expander(grammar, cast, random);
    expander.expand(text);
    return expander.take();
}

std::string polish_prose(std::string_view text) {
    std::string out;
    bool capital = true, in_quotes = false;
    bool goes_on = false;  // "Yes," he said, "and ...": the second quotation continues the sentence of the first
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '^' || c == '~') {
            capital = c == '^';
        } else if (c == ' ' && (out.empty() || out.back() == ' ' || out.back() == '\n')) {
            continue;
        } else if (c == '"') {
            in_quotes = !in_quotes;
            if (in_quotes)
                capital = !(goes_on && out.ends_with(", "));
            else
                capital = out.ends_with('.');
            goes_on = !in_quotes && out.ends_with(',');
            out += c;
        } else if (c == '\n') {
            while (out.ends_with(' ')) out.pop_back();
            capital = true;
            out += c;
        } else if (is_letter(c)) {
            const bool is_article = (c == 'a' || c == 'A') && i + 2 < text.size() && text[i + 1] == ' ' &&
                                    (out.empty() || !is_letter(out.back())) && (out.empty() || out.back() != '\'');
            out += capital ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
            capital = false;
            const std::size_t word = text.find_first_not_of(' ', i + 1);
            if (is_article && word != std::string_view::npos && begins_with_vowel_sound(text.substr(word))) out += 'n';
        } else {
            if ((c == '.' || c == '!' || c == '?') && i + 1 < text.size() && text[i + 1] == ' ') {
                capital = true;
                goes_on = false;
            }
            out += c;
        }
    }
    while (out.ends_with(' ') || out.ends_with('\n')) out.pop_back();
    return out;
}

std::string tell_story(const StoryGrammar& grammar, const StoryPlot& plot, StoryRandom& random) {
    const StoryCast cast = draw_cast(grammar, plot, random);
    std::string text;
    for (const std::string& line : plot.lines) {
        if (line == "-")
            text += "\n\n";
        else
            text += "^" + expand_template(grammar, cast, line, random) + " ";
    }
    return polish_prose(text);
}

}  // namespace tera
