// Text to values: numbers as Python reads them, argument files, and the nearest name to a mistyped one.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "config/arg_parser.h"
#include "core/error.h"

namespace tera {
namespace {

constexpr int max_file_depth = 8;  // an argument file that names itself must end in an error, not in a full stack

std::string trimmed(const std::string& text) {
    const auto first = text.find_first_not_of(" \t\r\n");
    if (first == std::string::npos) return "";
    return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

/// Python allows single underscores between digits. Returns false where they stand anywhere else.
bool drop_underscores(std::string& text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '_') {
            out += text[i];
            continue;
        }
        const bool between_digits = i > 0 && i + 1 < text.size() &&
                                    std::isdigit(static_cast<unsigned char>(text[i - 1])) &&
                                    std::isdigit(static_cast<unsigned char>(text[i + 1]));
        if (!between_digits) return false;
    }
    text = out;
    return true;
}

/// Splits one line of an argument file into words; quotes group, a backslash takes the next character as it is.
std::vector<std::string> split_words(const std::string& line, const std::string& where) {
    std::vector<std::string> words;
    std::string word;
    bool in_word = false;
    char quote = 0;
    for (size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (quote != 0) {
            if (c == quote)
                quote = 0;
            else
                word += c;
        } else if (c == '\'' || c == '"') {
            quote = c;
            in_word = true;
        } else if (c == '\\') {
            // At the end of a line: the continuation that shell scripts use, which is nothing here.
            if (i + 1 < line.size()) word += line[++i], in_word = true;
        } else if (c == '#' && !in_word) {
            break;
        } else if (std::isspace(static_cast<unsigned char>(c))) {
            if (in_word) words.push_back(word);
            word.clear();
            in_word = false;
        } else {
            word += c;
            in_word = true;
        }
    }
    if (quote != 0) usage_error(where, ": the quote ", quote, " is not closed");
    if (in_word) words.push_back(word);
    return words;
}

void expand_into(const std::vector<std::string>& arguments, int depth, std::vector<std::string>& out) {
    for (const std::string& argument : arguments) {
        if (argument.size() < 2 || argument[0] != '@') {
            out.push_back(argument);
            continue;
        }
        const std::string path = argument.substr(1);
        if (depth >= max_file_depth) {
            usage_error("argument file ", path, ": files nested more than ", max_file_depth,
                        " deep; does it name itself?");
        }
        std::error_code unreadable;  // said below
        if (std::filesystem::is_directory(path, unreadable))
            usage_error("the argument file ", path, " is a folder; give the file in it that is meant as @FILE");
        std::ifstream file(path);
        if (!file) usage_error("cannot read the argument file ", path, " (given as ", argument, ")");
        std::string line;
        for (int number = 1; std::getline(file, line); ++number) {
            expand_into(split_words(line, cat(path, " line ", number)), depth + 1, out);
        }
        if (file.bad())
            usage_error("reading the argument file ", path, " failed; give a plain text file (it was ", argument, ")");
    }
}

/// Edit distance with insertions, deletions, substitutions and swaps of neighbours.
size_t edit_distance(const std::string& a, const std::string& b) {
    std::vector<size_t> before, previous(b.size() + 1), current(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        current[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t substitution = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            current[j] = std::min({previous[j] + 1, current[j - 1] + 1, substitution});
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
        }
        before = previous;
        std::swap(previous, current);
    }
    return previous[b.size()];
}

}  // namespace

int64_t parse_integer(const std::string& text, const std::string& what) {
    std::string digits = trimmed(text);
    const std::string::size_type sign = !digits.empty() && digits[0] == '+' ? 1 : 0;
    int64_t value = 0;
    if (drop_underscores(digits)) {
        const char* end = digits.data() + digits.size();
        const auto [stop, error] = std::from_chars(digits.data() + sign, end, value);
        if (error == std::errc::result_out_of_range)
            usage_error(what, ": ", text, " is too large for a 64-bit integer");
        const bool double_sign = sign == 1 && digits.size() > 1 && digits[1] == '-';
        if (error == std::errc() && stop == end && !double_sign) return value;
    }
    usage_error(what, ": '", text, "' is not an integer");
}

double parse_real(const std::string& text, const std::string& what) {
    std::string digits = trimmed(text);
    const std::string::size_type sign = !digits.empty() && digits[0] == '+' ? 1 : 0;
    double value = 0;
    if (drop_underscores(digits)) {
        const char* end = digits.data() + digits.size();
        const auto [stop, error] = std::from_chars(digits.data() + sign, end, value);
        if (error == std::errc::result_out_of_range) usage_error(what, ": ", text, " is outside the range of a double");
        const bool double_sign = sign == 1 && digits.size() > 1 && digits[1] == '-';
        if (error == std::errc() && stop == end && !double_sign) return value;
    }
    usage_error(what, ": '", text, "' is not a number");
}

std::vector<std::string> expand_argument_files(const std::vector<std::string>& arguments) {
    std::vector<std::string> out;
    expand_into(arguments, 0, out);
    return out;
}

std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates) {
    std::string best;
    size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
    for (const std::string& candidate : candidates) {
        const size_t distance = edit_distance(name, candidate);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidate;
        }
    }
    return best;
}

}  // namespace tera
