#include "data/sampler.h"

#include <gtest/gtest.h>

#include <set>

#include "data/random.h"
#include "support/expect_usage_error.h"

namespace tera {
namespace {

using V = std::vector<std::int64_t>;

TEST(SingleSampler, ChunksAndRanks) {
    for (std::int64_t rank = 0; rank < 3; ++rank) {
        auto sampler = make_sampler({.total_samples = 20,
                                     .consumed_samples = 6,
                                     .micro_batch_size = 2,
                                     .data_parallel_rank = rank,
                                     .data_parallel_size = 3});
        const auto first = sampler->next();
        ASSERT_TRUE(first);
        EXPECT_EQ(first->index, (V{6 + 2 * rank, 7 + 2 * rank}));
        EXPECT_EQ(first->consumed, first->index);
        EXPECT_EQ(sampler->consumed_samples(), 12);
        ASSERT_TRUE(sampler->next());
        EXPECT_FALSE(sampler->next());  // 18 and 19 are no full chunk
    }
}

TEST(SingleSampler, NothingLeft) {
    expect_usage_error([] { make_sampler({.total_samples = 8, .consumed_samples = 8, .what = "train"}); },
                       {"train", "8 consumed of 8"});
    expect_usage_error([] { make_sampler({.total_samples = 0, .what = "valid"}); }, {"valid", "no samples"});
}

V take(Sampler& sampler, int batches) {
    V all;
    for (int i = 0; i < batches; ++i) {
        const auto numbers = sampler.next();
        all.insert(all.end(), numbers->index.begin(), numbers->index.end());
    }
    return all;
}

TEST(CyclicSampler, OrderOfEachRound) {
    // 21 samples, chunks of 2: a round is 20 samples, 10 for each of 2 ranks, in the order of torch.randperm(10).
    const V round0{4, 1, 7, 5, 3, 9, 0, 8, 6, 2}, round1{5, 6, 1, 2, 0, 8, 9, 3, 7, 4};
    for (std::int64_t rank = 0; rank < 2; ++rank) {
        SamplerConfig config{.dataloader_type = "cyclic",
                             .total_samples = 21,
                             .micro_batch_size = 1,
                             .data_parallel_rank = rank,
                             .data_parallel_size = 2};
        V expected;
        for (const V* round : {&round0, &round1})
            for (const std::int64_t i : *round) expected.push_back(i + 10 * rank);
        EXPECT_EQ(take(*make_sampler(config), 20), expected);
        config.consumed_samples = 26;  // round 1, 3 chunks in
        EXPECT_EQ(take(*make_sampler(config), 7), V(expected.begin() + 13, expected.end()));
    }
}

TEST(CyclicSampler, WithoutSharding) {
    // randperm(10) dealt out in turn.
    SamplerConfig config{.dataloader_type = "cyclic",
                         .total_samples = 10,
                         .micro_batch_size = 1,
                         .data_parallel_rank = 0,
                         .data_parallel_size = 2,
                         .data_sharding = false};
    EXPECT_EQ(take(*make_sampler(config), 6), (V{4, 7, 3, 0, 6, 5}));
    config.data_parallel_rank = 1;
    EXPECT_EQ(take(*make_sampler(config), 6), (V{1, 5, 9, 8, 2, 6}));
    config.consumed_samples = 4;
    EXPECT_EQ(take(*make_sampler(config), 4), (V{9, 8, 2, 6}));
}

TEST(CyclicSampler, WithoutShardingRanksShareWhatOneWouldTake) {
    std::set<std::pair<std::int64_t, std::int64_t>> by_ranks[2];  // sample and its number, of the first eight
    for (const std::int64_t ranks : {1, 2})
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
            const auto sampler = make_sampler({.dataloader_type = "cyclic",
                                               .total_samples = 24,
                                               .micro_batch_size = 2,
                                               .data_parallel_rank = rank,
                                               .data_parallel_size = ranks,
                                               .data_sharding = false});
            for (std::int64_t i = 0; i < 4 / ranks; ++i) {
                const auto numbers = sampler->next();
                for (std::size_t b = 0; b < 2; ++b)
                    by_ranks[ranks - 1].insert({numbers->index[b], numbers->consumed[b]});
            }
        }
    EXPECT_EQ(by_ranks[0].size(), 8u);
    EXPECT_EQ(by_ranks[0], by_ranks[1]);
}

TEST(CyclicSampler, SampleNumbersGoOn) {
    auto sampler = make_sampler({.dataloader_type = "cyclic",
                                 .total_samples = 8,
                                 .consumed_samples = 4,
                                 .micro_batch_size = 2,
                                 .data_parallel_rank = 1,
                                 .data_parallel_size = 2});
    EXPECT_EQ(sampler->next()->consumed, (V{6, 7}));
    EXPECT_EQ(sampler->next()->consumed, (V{10, 11}));
}

TEST(CyclicSampler, ResumeIsNoStop) {
    for (const bool sharding : {true, false}) {
        SamplerConfig config{.dataloader_type = "cyclic",
                             .total_samples = 23,
                             .micro_batch_size = 2,
                             .data_parallel_rank = 1,
                             .data_parallel_size = 3,
                             .data_sharding = sharding};
        const V whole = take(*make_sampler(config), 12);
        for (int stop = 1; stop < 12; ++stop) {
            config.consumed_samples = 6 * stop;
            EXPECT_EQ(take(*make_sampler(config), 12 - stop), V(whole.begin() + 2 * stop, whole.end())) << stop;
        }
        config.consumed_samples = 0;
    }
}

TEST(CyclicSampler, Refused) {
    expect_usage_error([] { make_sampler({.dataloader_type = "cyclic", .total_samples = 3, .micro_batch_size = 4}); },
                       {"3 samples", "4"});
    expect_usage_error(
        [] {
            make_sampler(
                {.dataloader_type = "cyclic", .total_samples = 12, .consumed_samples = 3, .micro_batch_size = 2});
        },
        {"3", "multiple"});
    expect_usage_error([] { make_sampler({.dataloader_type = "external", .total_samples = 12}); },
                       {"--dataloader-type external"});
}

}  // namespace
}  // namespace tera
