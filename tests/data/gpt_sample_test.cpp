#include "data/gpt_sample.h"

#include <gtest/gtest.h>

#include "data/gpt_dataset.h"
#include "data/mock_source.h"
#include "data_fixture.h"
#include "support/expect_usage_error.h"

namespace tera {
namespace {

using V = std::vector<std::int32_t>;
using F = std::vector<float>;

GptSample sample(GptSampleOptions options, const V& ids) {
    options.sequence_length = static_cast<std::int64_t>(ids.size()) - options.extra_tokens;
    GptSample out;
    make_gpt_sample(options, ids, out);
    return out;
}

TEST(GptSample, Plain) {
    const GptSample s = sample({.eod_id = 0}, {5, 0, 6, 7, 0, 8});
    EXPECT_EQ(s.tokens, (V{5, 0, 6, 7, 0}));
    EXPECT_EQ(s.labels, (V{0, 6, 7, 0, 8}));
    EXPECT_EQ(s.loss_mask, (F{1, 1, 1, 1, 1}));
    EXPECT_EQ(s.positions, (V{0, 1, 2, 3, 4}));
    EXPECT_EQ(s.doc_start, (V{0, 0, 0, 0, 0}));
}

TEST(GptSample, ResetsAndEodMask) {
    const V ids{5, 0, 6, 7, 0, 0, 8, 9};
    const GptSample s =
        sample({.eod_id = 0, .reset_position_ids = true, .reset_attention_mask = true, .eod_mask_loss = true}, ids);
    EXPECT_EQ(s.positions, (V{0, 1, 0, 1, 2, 0, 0}));
    EXPECT_EQ(s.doc_start, (V{0, 0, 2, 2, 2, 5, 6}));
    EXPECT_EQ(s.loss_mask, (F{1, 0, 1, 1, 0, 0, 1}));
    const GptSample p = sample({.eod_id = 0, .reset_position_ids = true}, ids);
    EXPECT_EQ(p.positions, s.positions);
    EXPECT_EQ(p.doc_start, V(7, 0));
    const GptSample a = sample({.eod_id = 0, .reset_attention_mask = true}, ids);
    EXPECT_EQ(a.positions, (V{0, 1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(a.doc_start, s.doc_start);
    EXPECT_EQ(a.loss_mask, F(7, 1.0f));
}

TEST(GptSample, PadIsMaskedAndBecomesZero) {
    const GptSample none = sample({.eod_id = 2}, {5, 6, -1, -1});
    EXPECT_EQ(none.tokens, (V{5, 6, 0}));
    EXPECT_EQ(none.labels, (V{6, 0, 0}));
    EXPECT_EQ(none.loss_mask, (F{1, 0, 0}));
    const GptSample real = sample({.eod_id = 2, .pad_id = 6}, {5, 6, 7, 6});
    EXPECT_EQ(real.tokens, (V{5, 0, 7}));
    EXPECT_EQ(real.labels, (V{0, 7, 0}));
    EXPECT_EQ(real.loss_mask, (F{0, 1, 0}));
}

TEST(GptSample, PadThatIsEodStillEndsDocuments) {
    const GptSample s = sample({.eod_id = 2, .pad_id = 2, .reset_position_ids = true}, {5, 2, 7, 8});
    EXPECT_EQ(s.positions, (V{0, 1, 0}));
    EXPECT_EQ(s.tokens, (V{5, 0, 7}));
}

TEST(GptSample, WithoutExtraToken) {
    const GptSample s = sample({.extra_tokens = 0, .eod_id = 2, .pad_id = -1}, {5, 6, 7});
    EXPECT_EQ(s.tokens, (V{5, 6, 7}));
    EXPECT_EQ(s.labels, (V{6, 7, 0}));
    EXPECT_EQ(s.loss_mask, (F{1, 1, 0}));
}

V dropped(std::int64_t k, std::int64_t h) {
    V labels(400);
    for (std::int32_t i = 0; i < 400; ++i) labels[static_cast<std::size_t>(i)] = (i * i * 7 + i * 131 + 3) % 50021;
    F mask(400, 1.0f);
    apply_goldfish(labels, k, h, mask);
    V places;
    for (std::int32_t i = 0; i < 400; ++i)
        if (mask[static_cast<std::size_t>(i)] == 0.0f) places.push_back(i);
    return places;
}

// Computed with torch: unfold(0, h, 1).prod(1), remainder, table of torch.rand seeded 2971215073.
TEST(GptSample, Goldfish) {
    EXPECT_EQ(dropped(50, 50), (V{133, 211, 281, 342, 370}));
    EXPECT_EQ(dropped(10, 13),
              (V{12,  42,  72,  80,  86,  87,  101, 118, 122, 132, 175, 178, 212, 223, 231, 232, 235, 239,
                 258, 274, 279, 281, 282, 286, 289, 296, 300, 316, 319, 323, 344, 346, 366, 381, 393}));
    EXPECT_EQ(dropped(10, 401), V{});
}

TEST(GptSample, GoldfishOnlyTouchesTheLossMask) {
    V ids(300);
    for (std::int32_t i = 0; i < 300; ++i) ids[static_cast<std::size_t>(i)] = i * 17 % 101 + 1;
    const GptSample plain = sample({.eod_id = 0}, ids);
    const GptSample fish = sample({.eod_id = 0, .goldfish_loss = true, .goldfish_k = 3, .goldfish_h = 4}, ids);
    EXPECT_EQ(plain.tokens, fish.tokens);
    EXPECT_EQ(plain.labels, fish.labels);
    EXPECT_NE(plain.loss_mask, fish.loss_mask);
}

TEST(MockSource, Vectors) {
    const MockSource mock(50256, 50257);
    ASSERT_EQ(mock.size(), 100000);
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < mock.size(); ++i) sum += mock.sequence_length(i);
    EXPECT_EQ(sum, 204637097);
    const V first{3484, 2609, 2094, 1105, 1261, 168, 309, 68, 718, 3331};
    for (std::size_t i = 0; i < first.size(); ++i)
        EXPECT_EQ(mock.sequence_length(static_cast<std::int64_t>(i)), first[i]);
    V tokens(68);
    mock.get(7, 0, 68, tokens.data());
    EXPECT_EQ(tokens.front(), 1);
    EXPECT_EQ(tokens[66], 67);
    EXPECT_EQ(tokens[67], 50256);
    V part(3);
    mock.get(7, 64, 3, part.data());
    EXPECT_EQ(part, (V{65, 66, 67}));
    MockSource(9, 10).get(7, 8, 3, part.data());
    EXPECT_EQ(part, (V{9, 0, 1}));
}

TEST(GptDataset, TokensOfTheVector) {
    const auto source = std::make_shared<VectorSource>(VectorSource::of_lengths({5, 3, 7, 4, 6}));
    GptIndex index = build_gpt_index(*source, {0, 5}, {.sequence_length = 4, .num_samples = 12, .seed = 1234});
    const GptDataset data(source, {0, 5}, index, {.sequence_length = 4});
    EXPECT_EQ(data.size(), 12);
    V ids(5);
    // Item 0 is row 3: (1, 5) to (2, 2): the end of sequence 2 and the beginning of sequence 4.
    data.read(0, ids.data());
    EXPECT_EQ(ids, (V{205, 206, 400, 401, 402}));
    // Item 7 is row 0, within sequence 2.
    data.read(7, ids.data());
    EXPECT_EQ(ids, (V{200, 201, 202, 203, 204}));
}

TEST(GptDataset, LastPartialSampleIsPadded) {
    const auto source = std::make_shared<VectorSource>(VectorSource::of_lengths({6}));
    GptIndex index = build_gpt_index(
        *source, {0, 1}, {.sequence_length = 4, .num_samples = std::nullopt, .seed = 1, .drop_last_partial = false});
    ASSERT_EQ(index.plan.samples, 2);
    const GptDataset data(source, {0, 1}, index, {.sequence_length = 4, .pad_id = -1});
    V ids(5);
    data.read(index.shuffle[0] == 1 ? 0 : 1, ids.data());
    EXPECT_EQ(ids, (V{4, 5, -1, -1, -1}));
}

TEST(GptDataset, TokenBeyondTheVocabulary) {
    const auto source = std::make_shared<VectorSource>(std::vector<V>{{1, 2, 3}, {4, 50, 6, 7}});
    GptIndex index = build_gpt_index(*source, {0, 2}, {.sequence_length = 6, .num_samples = 1, .seed = 1});
    V ids(7);
    const GptDataset good(source, {0, 2}, index, {.sequence_length = 6, .vocab_size = 51});
    good.read(0, ids.data());
    const GptDataset bad(source, {0, 2}, index, {.sequence_length = 6, .vocab_size = 50});
    expect_usage_error([&] { bad.read(0, ids.data()); },
                       {"memory.bin", "sequence 1", "token 1", "id 50", "vocabulary of 50"});
    const auto negative = std::make_shared<VectorSource>(std::vector<V>{{1, -2, 3}, {4, 5, 6, 7}});
    const GptDataset below(negative, {0, 2}, index, {.sequence_length = 6, .vocab_size = 50});
    expect_usage_error([&] { below.read(0, ids.data()); }, {"id -2"});
}

TEST(GptDataset, DamagedIndexIsNoticed) {
    const auto source = std::make_shared<VectorSource>(VectorSource::of_lengths({5, 3, 7, 4, 6}));
    const GptIndex good = build_gpt_index(*source, {0, 5}, {.sequence_length = 4, .num_samples = 12, .seed = 1234});
    V ids(5);
    for (const std::int32_t wrong : {-1, -1000000, 1000000, 5, 10, 7}) {
        for (int where = 0; where < 4; ++where) {
            GptIndex index = build_gpt_index(*source, {0, 5}, {.sequence_length = 4, .num_samples = 12, .seed = 1234});
            if (where == 0) index.documents.mutable_data<std::int32_t>()[1] = wrong;
            if (where == 1) index.samples.mutable_data<std::int32_t>()[6] = wrong;
            if (where == 2) index.samples.mutable_data<std::int32_t>()[7] = wrong;
            if (where == 3) index.shuffle.mutable_data<std::uint32_t>()[0] = static_cast<std::uint32_t>(wrong);
            const GptDataset data(source, {0, 5}, index, {.sequence_length = 4});
            try {  // either noticed, or harmless
                for (std::int64_t i = 0; i < data.size(); ++i) data.read(i, ids.data());
            } catch (const UsageError& e) {
                EXPECT_NE(std::string(e.what()).find("cache"), std::string::npos);
            }
        }
    }
}

}  // namespace
}  // namespace tera
