// Command lines as Python's argparse reads them, for every sub-command.
//   --flag value, --flag=value, unambiguous prefixes of long flags, the last occurrence wins, several values after one
//   flag, choices, integers with underscores (300_000_000), floats like .01 or 16e-3, "--" ends the flags, and
//   @FILE reads arguments from a file (several on a line, '#' starts a comment, quotes as in a shell).
// An unknown flag is an error that names the nearest known one.
//
//     ArgParser parser("teratron generate", "Writes text with a trained model.");
//     parser.option("load", ArgType::text).help("checkpoint folder").required();
//     parser.option("temperature", ArgType::real).defaults("1.0").help("...");
//     parser.flag("greedy").help("...");
//     parser.positional("prompt").optional();
//     ParsedArgs args = parser.parse(arguments);       // prints help and sets args.help_wanted on -h/--help
//     double t = args.real("temperature");
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tera {

enum class ArgType { boolean, integer, real, text };

/// How many values follow a flag.
struct ArgCount {
    int min = 1, max = 1;  // max < 0: any number
    static ArgCount none() { return {0, 0}; }
    static ArgCount one() { return {1, 1}; }
    static ArgCount exactly(int n) { return {n, n}; }
    static ArgCount one_or_more() { return {1, -1}; }  // nargs='+'
    static ArgCount any() { return {0, -1}; }          // nargs='*'
    bool many() const { return max != 1 && max != 0; }
};

/// One flag or positional argument. Setters return *this so that declarations read as one line.
struct ArgSpec {
    std::vector<std::string> names;  // without dashes; the first is the one shown; empty for a positional
    std::string dest;                // key in ParsedArgs; default: first name with '-' as '_'
    ArgType type = ArgType::text;
    ArgCount count = ArgCount::one();
    bool switch_value = true;  // what a boolean without a value sets
    std::vector<std::string> choices_;
    std::optional<std::string> default_;
    std::string help_, group_, metavar_;
    bool required_ = false;
    bool secondary_ = false;  // its prefixes yield to those of the other flags

    ArgSpec& alias(const std::string& name) {
        names.push_back(name);
        return *this;
    }
    ArgSpec& choices(std::vector<std::string> values) {
        choices_ = std::move(values);
        return *this;
    }
    ArgSpec& defaults(const std::string& text) {
        default_ = text;
        return *this;
    }
    ArgSpec& help(const std::string& text) {
        help_ = text;
        return *this;
    }
    ArgSpec& group(const std::string& text) {
        group_ = text;
        return *this;
    }
    ArgSpec& values(ArgCount how_many) {
        count = how_many;
        return *this;
    }
    ArgSpec& required() {
        required_ = true;
        return *this;
    }
    ArgSpec& optional() {
        required_ = false;
        return *this;
    }
};

/// Values by dest, as text already checked against type and choices ("true"/"false" for booleans).
class ParsedArgs {
  public:
    bool help_wanted = false;

    bool given(const std::string& dest) const { return given_.count(dest) != 0; }
    bool has(const std::string& dest) const;          // given, or has a default
    bool boolean(const std::string& dest) const;      // false when absent
    int64_t integer(const std::string& dest) const;   // UsageError when absent
    double real(const std::string& dest) const;       // UsageError when absent
    std::string text(const std::string& dest) const;  // "" when absent
    std::vector<std::string> list(const std::string& dest) const;
    std::vector<int64_t> integers(const std::string& dest) const;
    const std::map<std::string, std::vector<std::string>>& all_given() const { return given_; }

  private:
    friend class ArgParser;
    std::map<std::string, std::vector<std::string>> given_, defaults_;
};

class ArgParser {
  public:
    ArgParser(std::string program, std::string description);

    ArgSpec& flag(const std::string& name);  // boolean switch, default false
    ArgSpec& option(const std::string& name, ArgType type);
    ArgSpec& positional(const std::string& name);
    void add(ArgSpec spec);

    /// Reads the arguments. With -h or --help: prints help() to stdout, sets help_wanted and checks nothing else.
    ParsedArgs parse(const std::vector<std::string>& arguments) const;
    std::string help() const;

  private:
    std::string program_, description_;
    std::deque<ArgSpec> specs_;  // a deque: references handed out stay valid
};

/// Whole-string conversions with Python's liberties; UsageError names `what` (a flag or a place in a file) and the
/// text.
int64_t parse_integer(const std::string& text, const std::string& what);  // "300_000_000", "-1"
double parse_real(const std::string& text, const std::string& what);      // ".01", "16e-3", "1_0.5", "inf"

/// `@FILE` arguments replaced by the words of the file, recursively.
std::vector<std::string> expand_argument_files(const std::vector<std::string>& arguments);

/// The candidate with the smallest edit distance to `name`, or "" if none is near enough to be meant.
std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace tera
