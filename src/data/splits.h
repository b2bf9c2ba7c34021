// --split "969, 30, 1": which part of the sequences is for training, validation and testing.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace tera {

enum class Split : std::uint8_t { train, valid, test };
constexpr std::array<Split, 3> all_splits = {Split::train, Split::valid, Split::test};

/// "train", "valid", "test".
const char* split_name(Split split);

/// Fractions [begin, end) of a corpus. Absent when the upper bound is not above the lower.
struct SplitBounds {
    double begin = 0.0, end = 0.0;
    bool present() const { return end > begin; }
};

struct SplitPlan {
    std::string text;  // as given
    std::array<SplitBounds, 3> bounds;
    const SplitBounds& operator[](Split s) const { return bounds[static_cast<std::size_t>(s)]; }
};

/// Takes every run of digits and dots as a weight, 1 to 3 of them, missing ones 0, and divides by their sum. UsageError
/// if that is not possible.
SplitPlan parse_split(const std::string& text);

/// All of the corpus for one split (--train-data-path and so on).
constexpr SplitBounds whole_corpus{0.0, 1.0};

struct SequenceRange {
    std::int64_t begin = 0, end = 0;
    std::int64_t size() const { return end - begin; }
};

/// The sequences of a split: both bounds times the number of sequences, rounded half to even. A present split can
/// still be empty in a small corpus.
SequenceRange split_range(const SplitBounds& bounds, std::int64_t sequences);

}  // namespace tera
