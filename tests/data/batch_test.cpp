#include "data/batch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "support/expect_usage_error.h"

namespace tera {
namespace {

using V = std::vector<std::int32_t>;

/// Sample i reads 10 i, 10 i + 1, ...; reading some takes longer than reading others.
class Counting : public SampleDataset {
  public:
    explicit Counting(std::int64_t size, std::int64_t bad = -1) : size_(size), bad_(bad) {}
    std::int64_t size() const override { return size_; }
    std::int64_t sample_length() const override { return 5; }
    std::int32_t read(std::int64_t i, std::int32_t* out) const override {
        if (i == bad_) usage_error("sample ", i, " is bad");
        if (i % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
        for (int k = 0; k < 5; ++k) out[k] = static_cast<std::int32_t>(10 * i) + k;
        return static_cast<std::int32_t>(i % 3);
    }

  private:
    std::int64_t size_, bad_;
};

const GptSampleOptions options{.sequence_length = 4, .eod_id = 21, .reset_attention_mask = true};

TEST(Batch, LayoutIsSequenceFirst) {
    const Batch batch = make_batch(Counting(10), options, {{1, 2}, {41, 42}});
    EXPECT_EQ(batch.sequence_length, 4);
    EXPECT_EQ(batch.batch_size, 2);
    EXPECT_EQ(batch.tokens, (V{10, 20, 11, 21, 12, 22, 13, 23}));
    EXPECT_EQ(batch.labels, (V{11, 21, 12, 22, 13, 23, 14, 24}));
    EXPECT_EQ(batch.positions, (V{0, 0, 1, 1, 2, 2, 3, 3}));
    EXPECT_EQ(batch.doc_start, (V{0, 0, 0, 0, 0, 2, 0, 2}));
    EXPECT_EQ(batch.loss_mask, std::vector<float>(8, 1.0f));
    EXPECT_EQ(batch.sample_ids, (std::vector<std::int64_t>{41, 42}));
    EXPECT_EQ(batch.indices, (std::vector<std::int64_t>{1, 2}));
    EXPECT_EQ(batch.sources, (V{1, 2}));
    EXPECT_TRUE(batch.isolate_documents);
}

TEST(BatchLoader, SameForAnyNumberOfWorkers) {
    for (const char* type : {"single", "cyclic"}) {
        const SamplerConfig sampler{.dataloader_type = type,
                                    .total_samples = 200,
                                    .consumed_samples = 12,
                                    .micro_batch_size = 3,
                                    .data_parallel_rank = 1,
                                    .data_parallel_size = 2};
        BatchLoader plain(std::make_shared<Counting>(200), options, sampler, 0);
        BatchLoader one(std::make_shared<Counting>(200), options, sampler, 1);
        BatchLoader five(std::make_shared<Counting>(200), options, sampler, 5);
        for (int i = 0; i < 30; ++i) {
            const Batch expected = plain.next();
            EXPECT_EQ(plain.consumed_samples(), 12 + 6 * (i + 1));
            for (BatchLoader* loader : {&one, &five}) {
                const Batch batch = loader->next();
                ASSERT_EQ(batch.tokens, expected.tokens);
                ASSERT_EQ(batch.sample_ids, expected.sample_ids);
                ASSERT_EQ(batch.sources, expected.sources);
                EXPECT_EQ(loader->consumed_samples(), plain.consumed_samples());
            }
        }
    }
}

TEST(BatchLoader, UsedUp) {
    for (const std::int64_t workers : {0, 1, 4}) {
        BatchLoader loader(std::make_shared<Counting>(7), options, {.total_samples = 7, .micro_batch_size = 2},
                           workers);
        for (int i = 0; i < 3; ++i) loader.next();
        for (int i = 0; i < 2; ++i)
            expect_usage_error([&] { loader.next(); }, {"train data is used up", "6 samples of 7"});
    }
}

TEST(BatchLoader, FailureArrivesInOrderAndStays) {
    for (const std::int64_t workers : {0, 1, 4}) {
        BatchLoader loader(std::make_shared<Counting>(50, 9), options, {.total_samples = 50, .micro_batch_size = 2},
                           workers);
        for (int i = 0; i < 4; ++i) loader.next();
        for (int i = 0; i < 2; ++i) expect_usage_error([&] { loader.next(); }, {"sample 9 is bad"});
        EXPECT_EQ(loader.consumed_samples(), 8);
    }
}

TEST(BatchLoader, StopsInTheMiddle) {
    for (int i = 0; i < 20; ++i) {
        BatchLoader loader(std::make_shared<Counting>(500), options, {.total_samples = 500, .micro_batch_size = 2}, 4);
        for (int k = 0; k < i % 4; ++k) loader.next();
    }
}

}  // namespace
}  // namespace tera
