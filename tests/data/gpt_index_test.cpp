#include "data/gpt_index.h"

#include <gtest/gtest.h>

#include <ctime>
#include <random>

#include "data_fixture.h"
#include "support/expect_usage_error.h"

namespace tera {
namespace {

using V = std::vector<std::int64_t>;

GptIndex build(const SequenceSource& source, const GptIndexSpec& spec) {
    return build_gpt_index(source, {0, source.size()}, spec);
}

TEST(GptIndex, TwoEpochsTogether) {
    const auto source = VectorSource::of_lengths({5, 3, 7, 4, 6});
    const GptIndex index = build(source, {.sequence_length = 4, .num_samples = 12, .seed = 1234});
    EXPECT_EQ(index.plan.epochs, 2);
    EXPECT_FALSE(index.plan.separate_last_epoch);
    EXPECT_EQ(to_vector(index.documents), (V{2, 2, 4, 1, 0, 3, 4, 0, 1, 3}));
    EXPECT_EQ(to_vector(index.samples),
              (V{0, 0, 0, 4, 1, 1, 1, 5, 2, 2, 3, 0, 4, 1, 5, 0, 6, 0, 6, 4, 7, 2, 8, 1, 9, 2}));
    EXPECT_EQ(to_vector(index.shuffle), (V{3, 11, 2, 1, 7, 5, 4, 0, 8, 6, 10, 9}));
    EXPECT_EQ(index.documents.type(), NpyType::i32);
    EXPECT_EQ(index.samples.type(), NpyType::i32);
    EXPECT_EQ(index.samples.shape(), (V{13, 2}));
    EXPECT_EQ(index.shuffle.type(), NpyType::u32);
}

TEST(GptIndex, LastEpochApart) {
    const auto source = VectorSource::of_lengths({5, 3, 7, 4, 6});
    const GptIndex index = build(source, {.sequence_length = 4, .num_samples = 8, .seed = 1234});
    EXPECT_EQ(index.plan.epochs, 2);
    EXPECT_TRUE(index.plan.separate_last_epoch);
    EXPECT_EQ(to_vector(index.documents), (V{4, 0, 1, 2, 3, 3, 2, 1, 0, 4}));
    EXPECT_EQ(to_vector(index.samples),
              (V{0, 0, 0, 4, 1, 2, 2, 1, 3, 2, 3, 6, 4, 3, 5, 3, 6, 3, 7, 0, 8, 1, 9, 0, 9, 4}));
    EXPECT_EQ(to_vector(index.shuffle), (V{0, 4, 3, 2, 5, 1, 7, 6, 9, 8, 11, 10}));
}

TEST(GptIndex, EpochsAndSeparation) {
    // E is the smallest number with E·T >= n·S + 1.
    const auto epochs = [](std::int64_t tokens, std::int64_t samples, std::int64_t length) {
        return plan_epochs(tokens, {.sequence_length = length, .num_samples = samples}).epochs;
    };
    EXPECT_EQ(epochs(25, 6, 4), 1);
    EXPECT_EQ(epochs(24, 6, 4), 2);
    EXPECT_EQ(epochs(1, 3, 4), 13);
    EXPECT_EQ(epochs(10, 0, 4), 1);
    EXPECT_EQ(plan_epochs(25, {.sequence_length = 4, .num_samples = std::nullopt}).samples, 6);
    EXPECT_EQ(plan_epochs(3, {.sequence_length = 4, .num_samples = std::nullopt}).samples, 0);
    expect_usage_error([] { plan_epochs(25, {.sequence_length = 1 << 30, .num_samples = std::int64_t{1} << 40}); },
                       {"--train-samples"});
}

/// The walk as the format's description tells it, sample by sample.
V walk(const SequenceSource& source, const V& documents, const GptIndexSpec& spec, std::int64_t samples) {
    V rows{0, 0};
    std::int64_t position = 0, offset = 0;
    const std::int64_t extra = spec.extra_tokens;
    for (std::int64_t k = 0; k < samples; ++k) {
        std::int64_t remaining = spec.sequence_length + extra;
        while (remaining != 0) {
            const std::int64_t length = source.sequence_length(documents[static_cast<std::size_t>(position)]) - offset;
            remaining -= length;
            if (remaining <= 0) {
                offset += remaining + length - extra;
                remaining = 0;
            } else if (position == static_cast<std::int64_t>(documents.size()) - 1) {
                offset = source.sequence_length(documents[static_cast<std::size_t>(position)]) - extra;
                break;
            } else {
                ++position;
                offset = 0;
            }
        }
        rows.push_back(position);
        rows.push_back(offset);
    }
    return rows;
}

TEST(GptIndex, SampleIndexIsTheDescribedWalk) {
    std::mt19937 random(3);
    for (int round = 0; round < 300; ++round) {
        std::vector<std::int32_t> lengths(1 + random() % 12);
        for (auto& l : lengths) l = static_cast<std::int32_t>(random() % 9);
        lengths[0] += 1;
        const auto source = VectorSource::of_lengths(lengths);
        GptIndexSpec spec{.sequence_length = 1 + static_cast<std::int64_t>(random() % 10),
                          .num_samples = static_cast<std::int64_t>(random() % 30),
                          .seed = static_cast<std::uint32_t>(random())};
        spec.drop_last_partial = random() % 2 == 0;
        spec.extra_tokens = random() % 3 == 0 ? 0 : 1;
        const GptIndex index = build(source, spec);
        ASSERT_EQ(to_vector(index.samples), walk(source, to_vector(index.documents), spec, index.plan.samples))
            << round;
    }
}

TEST(GptIndex, OnlyTheRangeIsUsed) {
    const auto source = VectorSource::of_lengths({5, 3, 7, 4, 6});
    const GptIndex index = build_gpt_index(source, {1, 3}, {.sequence_length = 4, .num_samples = 5, .seed = 1});
    for (const std::int64_t d : to_vector(index.documents)) EXPECT_TRUE(d == 1 || d == 2);
    expect_usage_error(
        [&] {
            build_gpt_index(source, {2, 2}, {.sequence_length = 4, .num_samples = 5});
        },
        {"no tokens"});
}

TEST(SlowGptIndex, TenMillionSamplesInASecondOrTwo) {
    const std::vector<std::int32_t> lengths(10'000'000, 1025);
    class Lengths : public SequenceSource {
      public:
        explicit Lengths(const std::vector<std::int32_t>& l) : l_(l) {}
        const std::string& path() const override { return path_; }
        std::int64_t size() const override { return static_cast<std::int64_t>(l_.size()); }
        const std::byte* lengths() const override { return reinterpret_cast<const std::byte*>(l_.data()); }
        void get(std::int64_t, std::int64_t, std::int64_t, std::int32_t*) const override {}

      private:
        const std::vector<std::int32_t>& l_;
        std::string path_;
    };
    const std::clock_t begin = std::clock();  // processor time: the machine may be busy
    const GptIndex index = build(Lengths(lengths), {.sequence_length = 1024, .num_samples = 10'000'000});
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    std::printf("10^7 documents, %lld samples: %.2f s\n", static_cast<long long>(index.plan.samples), seconds);
    EXPECT_GE(index.plan.samples, 10'000'000);
    EXPECT_LT(seconds, 4.0);
}

}  // namespace
}  // namespace tera
