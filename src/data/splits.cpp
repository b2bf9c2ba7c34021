#include "data/splits.h"

#include <cmath>
#include <cstdlib>
#include <vector>

#include "core/error.h"

namespace tera {

const char* split_name(Split split) {
    switch (split) {
        case Split::train:
            return "train";
        case Split::valid:
            return "valid";
        case Split::test:
            return "test";
    }
    return "";
}

SplitPlan parse_split(const std::string& text) {
    constexpr const char* digits = ".0123456789";
    std::vector<double> weights;
    for (std::size_t begin = text.find_first_of(digits); begin != std::string::npos;) {
        const std::size_t end = std::min(text.find_first_not_of(digits, begin), text.size());
        const std::string word = text.substr(begin, end - begin);
        char* stop = nullptr;
        const double weight = std::strtod(word.c_str(), &stop);
        if (stop != word.c_str() + word.size() || !std::isfinite(weight))
            usage_error("--split '", text, "': '", word, "' is not a number");
        weights.push_back(weight);
        begin = text.find_first_of(digits, end);
    }
    if (weights.empty() || weights.size() > 3)
        usage_error("--split '", text, "': needs 1 to 3 weights (train,valid,test), found ", weights.size());
    weights.resize(3, 0.0);
    const double sum = weights[0] + weights[1] + weights[2];
    if (!(sum > 0.0) || !std::isfinite(sum)) usage_error("--split '", text, "': the weights must sum to more than 0");

    SplitPlan plan{text, {}};
    double bound = 0.0;
    for (std::size_t i = 0; i < 3; ++i) {
        plan.bounds[i].begin = bound;
        bound += weights[i] / sum;
        plan.bounds[i].end = bound;
    }
    return plan;
}

SequenceRange split_range(const SplitBounds& bounds, std::int64_t sequences) {
    if (!bounds.present()) return {};
    const auto position = [&](double bound) {
        const auto at = static_cast<std::int64_t>(std::nearbyint(bound * static_cast<double>(sequences)));
        return std::min(at, sequences);
    };
    return {position(bounds.begin), position(bounds.end)};
}

}  // namespace tera
