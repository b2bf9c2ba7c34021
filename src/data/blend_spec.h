// What --data-path and its relatives say: prefixes, with weights or without.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "data/splits.h"

namespace tera {

struct BlendSpec {
    std::vector<std::string> prefixes;
    std::vector<double> weights;  // as given; empty: in proportion to the samples of one epoch
    bool weighted() const { return !weights.empty(); }
};

/// Megatron's rule: an odd number of words are all prefixes; an even number are weight, prefix, weight, prefix, ... if
/// every other word is a number, and all prefixes otherwise. A number where a prefix should be, or a prefix where the
/// other weights are, is refused, for it is nearly always a mistyped weight (unless a corpus of that name exists).
/// `flag` names the list in messages.
BlendSpec parse_blend(const std::vector<std::string>& words, const std::string& flag);

/// --data-args-path: words separated by white space.
std::vector<std::string> read_data_args(const std::string& path);

/// --per-split-data-args-path: JSON {"train": [...], "valid": [...], "test": [...]}; a missing or null one is absent.
std::array<std::optional<std::vector<std::string>>, 3> read_per_split_data_args(const std::string& path);

/// A number as Python's float() reads it ("1e-1", "1_000", "inf").
std::optional<double> python_float(const std::string& word);

/// The sum of float64 values in numpy's order of addition.
double numpy_sum(const double* values, std::size_t count);

/// values / numpy_sum(values).
std::vector<double> normalized(const std::vector<double>& values);

}  // namespace tera
