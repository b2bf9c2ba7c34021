#include "config/arg_parser.h"

#include <algorithm>
#include <cctype>
#include <iostream>

#include "core/error.h"

namespace tera {
namespace {

std::string dest_of(const std::string& name) {
    std::string dest = name;
    std::replace(dest.begin(), dest.end(), '-', '_');
    return dest;
}

bool looks_like_number(const std::string& text) {
    // argparse: "-1" and "-.5e3" after a flag are values as long as no flag looks like a number.
    return text.size() > 1 && (std::isdigit(static_cast<unsigned char>(text[1])) || text[1] == '.');
}

bool is_flag(const std::string& text) {
    if (text.size() < 2 || text[0] != '-' || looks_like_number(text)) return false;
    // A blank makes it a text that happens to begin with a dash, unless it stands in the value of --name=value.
    const size_t equals = text.rfind("--", 0) == 0 ? text.find('=') : std::string::npos;
    return text.substr(0, equals).find(' ') == std::string::npos;
}

std::string joined(const std::vector<std::string>& words, const std::string& between) {
    std::string out;
    for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
    return out;
}

std::string shown(const ArgSpec& spec) { return spec.names.empty() ? spec.dest : "--" + spec.names[0]; }

/// One value checked against the type and the choices. Numbers come back as the user wrote them.
void check_value(const ArgSpec& spec, const std::string& flag, const std::string& value) {
    if (spec.type == ArgType::integer) parse_integer(value, flag);
    if (spec.type == ArgType::real) parse_real(value, flag);
    if (spec.choices_.empty()) return;
    if (std::find(spec.choices_.begin(), spec.choices_.end(), value) == spec.choices_.end()) {
        usage_error(flag, ": '", value, "' is not one of ", joined(spec.choices_, ", "));
    }
}

std::string plural(int n) { return cat(n, n == 1 ? " value" : " values"); }

/// The walk over the words of one command line.
class Walk {
  public:
    Walk(const std::deque<ArgSpec>& specs, const std::string& program, std::vector<std::string> words)
        : specs_(specs), program_(program), words_(std::move(words)) {
        for (const ArgSpec& spec : specs_) {
            if (spec.names.empty()) positionals_.push_back(&spec);
        }
    }

    /// Values by dest. Stops early and sets help_wanted at -h or --help.
    std::map<std::string, std::vector<std::string>> run(bool& help_wanted) {
        bool flags_over = false;
        while (at_ < words_.size()) {
            const std::string word = words_[at_];
            if (!flags_over && word == "--") {
                flags_over = true;
                ++at_;
            } else if (!flags_over && (word == "-h" || word == "--help")) {
                help_wanted = true;
                return {};
            } else if (!flags_over && is_flag(word)) {
                ++at_;
                take_flag(word);
            } else {
                ++at_;
                take_positional(word);
            }
        }
        return std::move(values_);
    }

  private:
    void take_flag(const std::string& word) {
        const size_t equals = word.find('=');
        const std::string name = word.substr(0, equals);
        const ArgSpec& spec = find(name);
        const std::string flag = shown(spec);
        std::vector<std::string> values;
        if (equals != std::string::npos) {
            if (spec.count.max == 0)
                usage_error("flag ", flag, " takes no value, but was given '", word.substr(equals + 1), "'");
            values.push_back(word.substr(equals + 1));
        } else {
            const auto room = [&] { return spec.count.max < 0 || static_cast<int>(values.size()) < spec.count.max; };
            while (at_ < words_.size() && room() && !is_flag(words_[at_])) values.push_back(words_[at_++]);
        }
        const int n = static_cast<int>(values.size());
        if (n < spec.count.min) {
            const std::string wanted =
                spec.count.max == spec.count.min ? plural(spec.count.min) : "at least " + plural(spec.count.min);
            usage_error("flag ", flag, " needs ", wanted, ", but has ", n == 0 ? "none" : cat(n));
        }
        for (const std::string& value : values) check_value(spec, flag, value);
        if (spec.type == ArgType::boolean) values = {spec.switch_value ? "true" : "false"};
        values_[spec.dest] = values;
    }

    void take_positional(const std::string& word) {
        if (next_positional_ >= positionals_.size()) {
            usage_error(program_, ": unexpected argument '", word, "' (flags begin with --; see --help)");
        }
        const ArgSpec& spec = *positionals_[next_positional_];
        check_value(spec, spec.dest, word);
        std::vector<std::string>& values = values_[spec.dest];
        values.push_back(word);
        if (spec.count.max > 0 && static_cast<int>(values.size()) >= spec.count.max) ++next_positional_;
    }

    /// Exact name first, then unambiguous prefix; names of the main generation win over added ones.
    const ArgSpec& find(const std::string& written) const {
        if (written.rfind("--", 0) != 0) {
            usage_error("unknown flag ", written, ": flags begin with two dashes (see ", program_, " --help)");
        }
        const std::string name = written.substr(2);
        std::vector<std::string> all;
        for (const ArgSpec& spec : specs_) {
            for (const std::string& candidate : spec.names) {
                if (candidate == name) return spec;
                all.push_back(candidate);
            }
        }
        for (const bool secondary : {false, true}) {
            std::vector<const ArgSpec*> found;
            std::vector<std::string> found_names;
            for (const ArgSpec& spec : specs_) {
                if (spec.secondary_ != secondary) continue;
                const auto starts = [&](const std::string& candidate) { return candidate.rfind(name, 0) == 0; };
                const auto hit = std::find_if(spec.names.begin(), spec.names.end(), starts);
                if (hit == spec.names.end()) continue;
                found.push_back(&spec);
                found_names.push_back("--" + *hit);
            }
            if (found.size() == 1) return *found[0];
            if (found.size() > 1)
                usage_error("flag ", written, " is ambiguous: it could be ", joined(found_names, ", "));
        }
        const std::string near = nearest_name(name, all);
        usage_error("unknown flag ", written,
                    near.empty() ? cat(" (see ", program_, " --help)") : "; did you mean --" + near + "?");
    }

    const std::deque<ArgSpec>& specs_;
    const std::string& program_;
    std::vector<std::string> words_;
    std::vector<const ArgSpec*> positionals_;
    std::map<std::string, std::vector<std::string>> values_;
    size_t at_ = 0, next_positional_ = 0;
};

std::string usage_of(const ArgSpec& spec) {
    std::string metavar = spec.metavar_;
    if (metavar.empty() && !spec.choices_.empty()) metavar = "{" + joined(spec.choices_, "|") + "}";
    if (metavar.empty()) metavar = spec.type == ArgType::integer ? "N" : spec.type == ArgType::real ? "X" : "TEXT";
    if (spec.names.empty()) return spec.dest + (spec.count.many() ? " ..." : "");
    std::string out = "--" + joined(spec.names, ", --");
    if (spec.count.max != 0) out += " " + metavar + (spec.count.many() ? " ..." : "");
    return out;
}

/// Help text folded at 100 columns, indented under its flag.
std::string folded(const std::string& text, size_t indent) {
    std::string out, line(indent, ' ');
    std::istringstream words(text);
    std::string word;
    while (words >> word) {
        if (line.size() + word.size() > 100 && line.size() > indent) {
            out += line + "\n";
            line = std::string(indent, ' ');
        }
        line += (line.size() > indent ? " " : "") + word;
    }
    return out + line + "\n";
}

}  // namespace

bool ParsedArgs::has(const std::string& dest) const { return given_.count(dest) != 0 || defaults_.count(dest) != 0; }

std::vector<std::string> ParsedArgs::list(const std::string& dest) const {
    if (const auto it = given_.find(dest); it != given_.end()) return it->second;
    if (const auto it = defaults_.find(dest); it != defaults_.end()) return it->second;
    return {};
}

std::string ParsedArgs::text(const std::string& dest) const {
    const std::vector<std::string> values = list(dest);
    return values.empty() ? "" : values[0];
}

bool ParsedArgs::boolean(const std::string& dest) const { return text(dest) == "true"; }

int64_t ParsedArgs::integer(const std::string& dest) const {
    if (!has(dest)) usage_error("--", dest, " is not given");
    return parse_integer(text(dest), "--" + dest);
}

double ParsedArgs::real(const std::string& dest) const {
    if (!has(dest)) usage_error("--", dest, " is not given");
    return parse_real(text(dest), "--" + dest);
}

std::vector<int64_t> ParsedArgs::integers(const std::string& dest) const {
    std::vector<int64_t> out;
    for (const std::string& value : list(dest)) out.push_back(parse_integer(value, "--" + dest));
    return out;
}

ArgParser::ArgParser(std::string program, std::string description)
    : program_(std::move(program)), description_(std::move(description)) {}

ArgSpec& ArgParser::flag(const std::string& name) {
    ArgSpec& spec = option(name, ArgType::boolean);
    spec.count = ArgCount::none();
    return spec;
}

ArgSpec& ArgParser::option(const std::string& name, ArgType type) {
    ArgSpec& spec = specs_.emplace_back();
    spec.names = {name};
    spec.dest = dest_of(name);
    spec.type = type;
    return spec;
}

ArgSpec& ArgParser::positional(const std::string& name) {
    ArgSpec& spec = specs_.emplace_back();
    spec.dest = dest_of(name);
    spec.required_ = true;
    return spec;
}

void ArgParser::add(ArgSpec spec) { specs_.push_back(std::move(spec)); }

ParsedArgs ArgParser::parse(const std::vector<std::string>& arguments) const {
    ParsedArgs parsed;
    Walk walk(specs_, program_, expand_argument_files(arguments));
    parsed.given_ = walk.run(parsed.help_wanted);
    if (parsed.help_wanted) {
        std::cout << help() << std::flush;
        return parsed;
    }
    for (const ArgSpec& spec : specs_) {
        if (spec.default_) parsed.defaults_[spec.dest] = {*spec.default_};
        if (spec.required_ && !parsed.given(spec.dest))
            usage_error(program_, ": ", shown(spec), " is required (see --help)");
    }
    return parsed;
}

std::string ArgParser::help() const {
    std::string usage = "usage: " + program_;
    std::vector<std::string> groups;
    for (const ArgSpec& spec : specs_) {
        if (spec.names.empty()) usage += spec.required_ ? " " + usage_of(spec) : " [" + usage_of(spec) + "]";
        if (std::find(groups.begin(), groups.end(), spec.group_) == groups.end()) groups.push_back(spec.group_);
    }
    std::string out = usage + " [flags]\n\n" + folded(description_, 0);
    for (const std::string& group : groups) {
        out += "\n" + (group.empty() ? std::string("arguments") : group) + ":\n";
        for (const ArgSpec& spec : specs_) {
            if (spec.group_ != group) continue;
            out += "  " + usage_of(spec) + "\n";
            const std::string preset =
                spec.default_ && !spec.default_->empty() ? " (default " + *spec.default_ + ")" : "";
            out += folded(spec.help_ + preset, 8);
        }
    }
    return out;
}

}  // namespace tera
