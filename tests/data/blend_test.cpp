#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "data/blend_spec.h"
#include "data/blended_dataset.h"
#include "data/splits.h"
#include "data_fixture.h"
#include "support/expect_usage_error.h"
#include "support/temp_folder.h"

namespace tera {
namespace {

using V = std::vector<std::int64_t>;
using Words = std::vector<std::string>;

TEST(Splits, Bounds) {
    const SplitPlan plan = parse_split("949,50,1");
    EXPECT_EQ(plan[Split::train].begin, 0.0);
    EXPECT_EQ(plan[Split::train].end, 0.949);
    EXPECT_EQ(plan[Split::valid].end, 0.949 + 0.05);
    EXPECT_TRUE(plan[Split::test].present());
    const SequenceRange train = split_range(plan[Split::train], 200), valid = split_range(plan[Split::valid], 200);
    EXPECT_EQ(train.end, 190);
    EXPECT_EQ(valid.begin, 190);
    EXPECT_EQ(valid.end, 200);
    EXPECT_EQ(split_range(plan[Split::test], 200).size(), 0);  // present but empty
}

TEST(Splits, Forms) {
    for (const char* text : {"969, 30, 1", "969/30/1", "969 30 1", "969.0;30.;1"})
        EXPECT_EQ(parse_split(text)[Split::train].end, 0.969) << text;
    const SplitPlan all = parse_split("100");
    EXPECT_TRUE(all[Split::train].present());
    EXPECT_FALSE(all[Split::valid].present());
    EXPECT_FALSE(all[Split::test].present());
    EXPECT_FALSE(parse_split("100,0,0")[Split::valid].present());
    EXPECT_EQ(parse_split(".5,.5")[Split::train].end, 0.5);
    EXPECT_EQ(split_range(parse_split("0.98,0.01,0.01")[Split::test], 100).end, 100);
    EXPECT_EQ(split_range(whole_corpus, 7).size(), 7);
}

TEST(Splits, RoundsHalfToEven) {
    const SplitBounds half{0.0, 0.5};
    EXPECT_EQ(split_range(half, 5).end, 2);
    EXPECT_EQ(split_range(half, 7).end, 4);
}

TEST(Splits, Refused) {
    expect_usage_error([] { parse_split("abc"); }, {"--split 'abc'"});
    expect_usage_error([] { parse_split("1,2,3,4"); }, {"found 4"});
    expect_usage_error([] { parse_split("0,0,0"); }, {"more than 0"});
    expect_usage_error([] { parse_split("1.2.3,1"); }, {"'1.2.3'"});
    expect_usage_error([] { parse_split("."); }, {"'.'"});
}

TEST(BlendSpec, OddAndEven) {
    EXPECT_EQ(parse_blend({"a"}, "--data-path").prefixes, Words{"a"});
    EXPECT_EQ(parse_blend({"a", "b", "c"}, "--data-path").prefixes, (Words{"a", "b", "c"}));
    EXPECT_FALSE(parse_blend({"a", "b"}, "--data-path").weighted());
    const BlendSpec blend = parse_blend({"0.3", " a ", "1e-1", "b"}, "--data-path");
    EXPECT_EQ(blend.prefixes, (Words{"a", "b"}));
    EXPECT_EQ(blend.weights, (std::vector<double>{0.3, 0.1}));
    EXPECT_EQ(parse_blend({"2", "a"}, "--data-path").weights, std::vector<double>{2.0});
}

TEST(BlendSpec, MistypedWeights) {
    const auto refuse = [](const Words& words, std::initializer_list<const char*> parts) {
        expect_usage_error([&] { parse_blend(words, "--data-path"); }, parts);
    };
    refuse({"0.3", "a", "O.7", "b"}, {"--data-path", "'O.7'", "not a number"});
    refuse({"0,3", "a", "0.7", "b"}, {"'0,3'"});
    refuse({"0.3", "a", "0.7"}, {"'0.3'", "3 words"});
    refuse({"a", "0.3", "b", "0.7"}, {"'0.3'", "before"});
    refuse({"0.3", "0.7", "a", "b"}, {"'a'", "not a number"});
    refuse({"0.3", "0.7"}, {"'0.7'", "prefix"});
    refuse({"0", "a", "1", "b"}, {"'0'", "above 0"});
    refuse({"-1", "a", "1", "b"}, {"'-1'"});
    refuse({"nan", "a", "1", "b"}, {"'nan'"});
    refuse({"inf", "a", "1", "b"}, {"'inf'"});
    refuse({"1", "", "1", "b"}, {"empty prefix"});
    refuse({}, {"no prefix"});
}

TEST(BlendSpec, ACorpusMayHaveANumberForItsName) {
    const TempFolder dir;
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(dir.path());
    write_corpus("2024", {{1}});
    EXPECT_EQ(parse_blend({"2024", "a", "b"}, "--data-path").prefixes, (Words{"2024", "a", "b"}));
    std::filesystem::current_path(before);
}

TEST(BlendSpec, PythonFloats) {
    for (const char* good : {"1", "1.", ".5", "+1", "-1e5", "1E-1", "1_000.5", " 3 ", "Infinity"})
        EXPECT_TRUE(python_float(good)) << good;
    for (const char* bad : {"", ".", "e5", "1e", "0x10", "1__0", "_1", "1_", "1.2.3", "a", "1a", "1 2", "--1"})
        EXPECT_FALSE(python_float(bad)) << bad;
    EXPECT_EQ(*python_float("1_000.5"), 1000.5);
}

TEST(BlendSpec, Files) {
    const TempFolder dir;
    spill(dir / "args", "0.3 a\n\t0.7   b\n");
    EXPECT_EQ(read_data_args(dir / "args"), (Words{"0.3", "a", "0.7", "b"}));
    spill(dir / "empty", " \n");
    expect_usage_error([&] { read_data_args(dir / "empty"); }, {"empty"});
    expect_usage_error([&] { read_data_args(dir / "none"); }, {"none"});
    spill(dir / "split.json", R"({"train": ["0.3", "a", 0.7, "b"], "valid": ["c"], "test": null})");
    const auto lists = read_per_split_data_args(dir / "split.json");
    EXPECT_EQ(*lists[0], (Words{"0.3", "a", "0.7", "b"}));
    EXPECT_EQ(*lists[1], Words{"c"});
    EXPECT_FALSE(lists[2]);
    spill(dir / "bad.json", R"({"training": []})");
    expect_usage_error([&] { read_per_split_data_args(dir / "bad.json"); }, {"'training'"});
    spill(dir / "bad.json", R"({"train": "a"})");
    expect_usage_error([&] { read_per_split_data_args(dir / "bad.json"); }, {"list"});
    spill(dir / "bad.json", R"({"train": [{}]})");
    expect_usage_error([&] { read_per_split_data_args(dir / "bad.json"); }, {"neither"});
    spill(dir / "bad.json", "[1]");
    expect_usage_error([&] { read_per_split_data_args(dir / "bad.json"); }, {"object"});
}

// Values 1/(i + 3), summed by numpy.
TEST(BlendSpec, NumpySum) {
    const auto sum = [](std::size_t n) {
        std::vector<double> x(n);
        for (std::size_t i = 0; i < n; ++i) x[i] = 1.0 / static_cast<double>(i + 3);
        return numpy_sum(x.data(), n);
    };
    EXPECT_EQ(sum(3), 0.7833333333333332);
    EXPECT_EQ(sum(7), 1.328968253968254);
    EXPECT_EQ(sum(8), 1.4289682539682538);
    EXPECT_EQ(sum(9), 1.5198773448773446);
    EXPECT_EQ(sum(100), 3.707082429307257);
    EXPECT_EQ(sum(128), 3.948591338265976);
    EXPECT_EQ(sum(129), 3.956224926052236);
    EXPECT_EQ(sum(300), 4.789297397713862);
    EXPECT_EQ(sum(1000), 5.987467865541362);
    EXPECT_EQ(sum(4099), 7.396323706821208);
}

TEST(Blend, Greedy) {
    EXPECT_EQ(to_vector(build_blend_index({0.3, 0.7}, 10).dataset), (V{1, 0, 1, 1, 0, 1, 1, 0, 1, 1}));
    const BlendIndex index = build_blend_index({0.5, 0.3, 0.2}, 10);
    EXPECT_EQ(to_vector(index.dataset), (V{0, 1, 2, 0, 1, 0, 2, 0, 1, 0}));
    EXPECT_EQ(to_vector(index.sample), (V{0, 0, 0, 1, 1, 2, 1, 3, 2, 4}));
    EXPECT_EQ(index.dataset.type(), NpyType::i16);
    EXPECT_EQ(index.sample.type(), NpyType::i64);
}

/// The rule itself, with products rounded before the difference.
V greedy(const std::vector<double>& weights, std::int64_t size) {
    std::vector<double> taken(weights.size(), 0.0);
    V picks;
    for (std::int64_t i = 0; i < size; ++i) {
        std::size_t best = 0;
        double most = -INFINITY;
        for (std::size_t d = 0; d < weights.size(); ++d) {
            volatile double due = weights[d] * std::max(static_cast<double>(i), 1.0);
            const double behind = due - taken[d];
            if (behind > most) most = behind, best = d;
        }
        taken[best] += 1.0;
        picks.push_back(static_cast<std::int64_t>(best));
    }
    return picks;
}

TEST(Blend, GreedyOfManyDatasets) {
    std::mt19937 random(1);
    for (const std::size_t datasets : {1u, 2u, 7u, 8u, 9u, 33u, 100u}) {
        std::vector<double> weights(datasets);
        for (double& w : weights) w = 1.0 + random() % 7;  // many ties
        weights = normalized(weights);
        ASSERT_EQ(to_vector(build_blend_index(weights, 3000).dataset), greedy(weights, 3000)) << datasets;
    }
}

TEST(Blend, Exhaustive) {
    const V sizes{5, 1, 14};
    const BlendIndex index = build_exhaustive_blend_index(sizes);
    ASSERT_EQ(index.dataset.size(), 20);
    V seen(3, 0);
    for (std::int64_t i = 0; i < 20; ++i) {
        auto& n = seen[static_cast<std::size_t>(index.dataset[i])];
        EXPECT_EQ(index.sample[i], n++);
    }
    EXPECT_EQ(seen, sizes);
}

class Numbered : public SampleDataset {
  public:
    Numbered(std::int64_t size, std::int32_t base) : size_(size), base_(base) {}
    std::int64_t size() const override { return size_; }
    std::int64_t sample_length() const override { return 1; }
    std::int32_t read(std::int64_t i, std::int32_t* out) const override {
        *out = base_ + static_cast<std::int32_t>(i);
        return 0;
    }

  private:
    std::int64_t size_;
    std::int32_t base_;
};

TEST(Blend, ReadsAndCounts) {
    const auto a = std::make_shared<Numbered>(10, 0), b = std::make_shared<Numbered>(10, 100);
    const BlendedDataset data({{a, 4}, {b, 9}}, build_blend_index({0.3, 0.7}, 10), Split::train);
    std::int32_t id = 0;
    EXPECT_EQ(data.read(0, &id), 9);
    EXPECT_EQ(id, 100);
    EXPECT_EQ(data.read(4, &id), 4);
    EXPECT_EQ(id, 1);
    EXPECT_EQ(data.usage(5), (V{2, 3}));
    EXPECT_EQ(data.usage(100), (V{3, 7}));
}

TEST(Blend, Oversampling) {
    const auto a = std::make_shared<Numbered>(10, 0), b = std::make_shared<Numbered>(6, 100);
    expect_usage_error(
        [&] {
            BlendedDataset({{a, 0}, {b, 1}}, build_blend_index({0.3, 0.7}, 10), Split::valid);
        },
        {"The valid blend oversamples", "requests 7 samples from GPTDataset 1 with size 6"});
}

}  // namespace
}  // namespace tera
