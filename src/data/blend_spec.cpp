#include "data/blend_spec.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "core/error.h"
#include "io/json_file.h"

namespace tera {
namespace {

std::string stripped(const std::string& word) {
    constexpr const char* space = " \t\r\n\f\v";
    const std::size_t begin = word.find_first_not_of(space);
    if (begin == std::string::npos) return {};
    return word.substr(begin, word.find_last_not_of(space) - begin + 1);
}

bool corpus_exists(const std::string& prefix) {
    std::error_code ignored;
    return std::filesystem::exists(prefix + ".idx", ignored);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Digits with single underscores between them, as Python allows; returns how many characters.
std::size_t digit_run(const std::string& text, std::size_t at) {
    std::size_t end = at;
    while (end < text.size() && (is_digit(text[end]) || (text[end] == '_' && end > at && is_digit(text[end - 1]) &&
                                                         end + 1 < text.size() && is_digit(text[end + 1]))))
        ++end;
    return end - at;
}

}  // namespace

std::optional<double> python_float(const std::string& word) {
    const std::string text = stripped(word);
    std::size_t at = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
    std::string name = text.substr(at);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    if (name == "inf" || name == "infinity" || name == "nan") return std::strtod(text.c_str(), nullptr);
    std::size_t digits = digit_run(text, at);
    at += digits;
    if (at < text.size() && text[at] == '.') {
        const std::size_t fraction = digit_run(text, ++at);
        digits += fraction;
        at += fraction;
    }
    if (digits == 0) return std::nullopt;
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
        ++at;
        if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
        const std::size_t exponent = digit_run(text, at);
        if (exponent == 0) return std::nullopt;
        at += exponent;
    }
    if (at != text.size()) return std::nullopt;
    std::string plain;
    std::copy_if(text.begin(), text.end(), std::back_inserter(plain), [](char c) { return c != '_'; });
    return std::strtod(plain.c_str(), nullptr);
}

BlendSpec parse_blend(const std::vector<std::string>& words, const std::string& flag) {
    if (words.empty()) usage_error(flag, ": no prefix given");
    std::size_t numbers_in_weight_places = 0;
    const std::string* odd_one = nullptr;
    for (std::size_t i = 0; i < words.size(); i += 2) {
        if (python_float(words[i])) {
            ++numbers_in_weight_places;
        } else if (odd_one == nullptr) {
            odd_one = &words[i];
        }
    }
    BlendSpec blend;
    const bool even = words.size() % 2 == 0;
    if (even && odd_one == nullptr) {
        for (std::size_t i = 0; i < words.size(); i += 2) {
            const double weight = *python_float(words[i]);
            const std::string prefix = stripped(words[i + 1]);
            if (!std::isfinite(weight) || !(weight > 0.0))
                usage_error(flag, ": weight '", words[i], "' of ", prefix, " must be a number above 0");
            if (prefix.empty()) usage_error(flag, ": empty prefix after weight '", words[i], "'");
            if (python_float(prefix) && !corpus_exists(prefix))
                usage_error(flag, ": '", prefix, "' stands where a prefix should be (weights and prefixes alternate)");
            blend.weights.push_back(weight);
            blend.prefixes.push_back(prefix);
        }
        return blend;
    }
    for (const std::string& word : words) {
        const std::string prefix = stripped(word);
        if (prefix.empty()) usage_error(flag, ": empty prefix");
        if (python_float(prefix) && !corpus_exists(prefix)) {
            if (!even)
                usage_error(flag, ": '", prefix, "' looks like a weight, but ", words.size(),
                            " words cannot be pairs of weight and prefix; give every prefix a weight, or none");
            if (numbers_in_weight_places > 0)
                usage_error(flag, ": '", *odd_one, "' stands where a weight should be but is not a number; correct it,",
                            " or give no weights at all");
            usage_error(flag, ": '", prefix, "' looks like a weight, but weights come before their prefixes");
        }
        blend.prefixes.push_back(prefix);
    }
    return blend;
}

std::vector<std::string> read_data_args(const std::string& path) {
    std::istringstream text(read_text_file(path));
    std::vector<std::string> words;
    for (std::string word; text >> word;) words.push_back(word);
    if (words.empty()) usage_error(path, ": --data-args-path names an empty file");
    return words;
}

std::array<std::optional<std::vector<std::string>>, 3> read_per_split_data_args(const std::string& path) {
    const nlohmann::json json = read_json_file(path);
    if (!json.is_object()) usage_error(path, ": must be a JSON object with lists under train, valid and test");
    std::array<std::optional<std::vector<std::string>>, 3> lists;
    for (const auto& [key, value] : json.items()) {
        const auto split =
            std::find_if(all_splits.begin(), all_splits.end(), [&k = key](Split s) { return k == split_name(s); });
        if (split == all_splits.end()) usage_error(path, ": unknown key '", key, "'; train, valid and test are known");
        if (value.is_null()) continue;
        if (!value.is_array()) usage_error(path, ": ", key, " must be a list of weights and prefixes");
        auto& words = lists[static_cast<std::size_t>(*split)].emplace();
        for (const auto& element : value) {
            if (!element.is_string() && !element.is_number())
                usage_error(path, ": ", key, " holds something that is neither a weight nor a prefix");
            words.push_back(element.is_string() ? element.get<std::string>() : element.dump());
        }
    }
    return lists;
}

double numpy_sum(const double* values, std::size_t count) {
    if (count < 8) {
        double sum = 0.0;
        for (std::size_t i = 0; i < count; ++i) sum += values[i];
        return sum;
    }
    if (count > 128) {
        const std::size_t half = count / 2 - count / 2 % 8;
        return numpy_sum(values, half) + numpy_sum(values + half, count - half);
    }
    double r[8];
    std::copy_n(values, 8, r);
    std::size_t i = 8;
    for (; i < count - count % 8; i += 8)
        for (std::size_t j = 0; j < 8; ++j) r[j] += values[i + j];
    double sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < count; ++i) sum += values[i];
    return sum;
}

std::vector<double> normalized(const std::vector<double>& values) {
    const double sum = numpy_sum(values.data(), values.size());
    std::vector<double> result(values);
    for (double& v : result) v /= sum;
    return result;
}

}  // namespace tera
