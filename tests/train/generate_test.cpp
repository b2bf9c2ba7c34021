#include "train/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "support/expect_usage_error.h"
#include "support/model_configs.h"
#include "token/null_tokenizer.h"

namespace tera {
namespace {

std::map<std::int32_t, int> counts(const SamplingConfig& config, const std::vector<float>& logits, int draws) {
    std::map<std::int32_t, int> out;
    Sampler sampler(config, 0);
    for (int i = 0; i < draws; ++i) ++out[sampler.pick(logits, static_cast<std::uint64_t>(i))];
    return out;
}

const std::vector<float> some_logits = {std::log(0.1f), std::log(0.4f), std::log(0.05f), std::log(0.3f),
                                        std::log(0.15f)};

TEST(Sampler, DrawsByProbability) {
    const auto drawn = counts({}, some_logits, 100000);
    const double expected[] = {0.1, 0.4, 0.05, 0.3, 0.15};
    for (int id = 0; id < 5; ++id) EXPECT_NEAR(drawn.at(id) / 1e5, expected[id], 0.006) << id;
}

TEST(Sampler, TemperatureSharpens) {
    const auto drawn = counts({.temperature = 0.5}, some_logits, 100000);
    const double total = 0.01 + 0.16 + 0.0025 + 0.09 + 0.0225;
    EXPECT_NEAR(drawn.at(1) / 1e5, 0.16 / total, 0.006);
    EXPECT_NEAR(drawn.at(3) / 1e5, 0.09 / total, 0.006);
    EXPECT_EQ(counts({.temperature = 0}, some_logits, 10), (std::map<std::int32_t, int>{{1, 10}}));
}

TEST(Sampler, GreedyTakesTheLowestOfEquals) {
    Sampler sampler({.greedy = true}, 0);
    EXPECT_EQ(sampler.pick(std::vector<float>{1, 3, 2, 3}, 0), 1);
}

TEST(Sampler, TopKKeepsTheLikeliest) {
    const auto drawn = counts({.top_k = 2}, some_logits, 20000);
    ASSERT_EQ(drawn.size(), 2u);
    EXPECT_NEAR(drawn.at(1) / 2e4, 4.0 / 7, 0.015);
    EXPECT_EQ(counts({.top_k = 99}, some_logits, 20000).size(), 5u);
    // Among equals the lower ids stay.
    EXPECT_EQ(counts({.top_k = 2}, {1, 1, 1, 1}, 100).rbegin()->first, 1);
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
    EXPECT_EQ(counts({.top_p = 0.39}, some_logits, 1000).size(), 1u);
    EXPECT_EQ(counts({.top_p = 0.41}, some_logits, 1000).size(), 2u);
    const auto drawn = counts({.top_p = 0.8}, some_logits, 20000);
    ASSERT_EQ(drawn.size(), 3u);
    EXPECT_NEAR(drawn.at(4) / 2e4, 0.15 / 0.85, 0.015);
    EXPECT_EQ(counts({.top_p = 0.0001}, some_logits, 100), (std::map<std::int32_t, int>{{1, 100}}));
    // Many equals: the count is right to the token.
    EXPECT_EQ(counts({.top_p = 0.5}, std::vector<float>(64, 0.0f), 20000).size(), 32u);
}

TEST(Sampler, DependsOnSeedSampleAndPositionOnly) {
    const std::vector<float> flat(1000, 0.0f);
    Sampler a({.seed = 7}, 3), b({.seed = 7}, 3), other_sample({.seed = 7}, 4), other_seed({.seed = 8}, 3);
    a.pick(flat, 99);
    EXPECT_EQ(a.pick(flat, 5), b.pick(flat, 5));
    EXPECT_NE(a.pick(flat, 5), a.pick(flat, 6));
    EXPECT_NE(a.pick(flat, 5), other_sample.pick(flat, 5));
    EXPECT_NE(a.pick(flat, 5), other_seed.pick(flat, 5));
}

TEST(Sampler, RefusesWhatIsNotANumber) {
    Sampler sampler({}, 0);
    const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    expect_usage_error([&] { sampler.pick(std::vector<float>{1, nan}, 12); }, {"position 12", "not a number"});
    expect_usage_error([&] { sampler.pick(std::vector<float>{1, inf}, 0); }, {"not a number"});
    EXPECT_EQ(sampler.pick(std::vector<float>{-inf, 1, -inf}, 0), 1);
    expect_usage_error([] { check_sampling({.temperature = -1}); }, {"--temperature"});
    expect_usage_error([] { check_sampling({.top_k = -1}); }, {"--top-k"});
    expect_usage_error([] { check_sampling({.top_p = 0}); }, {"--top-p"});
    expect_usage_error([] { check_sampling({.top_p = 1.5}); }, {"--top-p"});
}

/// Ids are bytes.
class ByteTokenizer : public Tokenizer {
  public:
    std::unique_ptr<Encoder> make_encoder() const override { return nullptr; }
    std::string decode(std::span<const std::int32_t> ids) const override {
        std::string out;
        for (const std::int32_t id : ids) out += static_cast<char>(id);
        return out;
    }
    std::int64_t vocab_size() const override { return 256; }
    std::int32_t eod() const override { return 0; }
    std::string name() const override { return "bytes"; }
};

TEST(TextStream, HoldsBackHalfACharacter) {
    const ByteTokenizer bytes;
    const std::vector<std::int32_t> context = {'a'};
    TextStream stream(bytes, context);
    EXPECT_EQ(stream.push('b'), "b");
    EXPECT_EQ(stream.push(0xE2), "");
    EXPECT_EQ(stream.push(0x82), "");
    EXPECT_EQ(stream.push(0xAC), "\xE2\x82\xAC");
    EXPECT_EQ(stream.push(0xF0), "");
    EXPECT_EQ(stream.push(0x9F), "");
    EXPECT_EQ(stream.push(0x98), "");
    EXPECT_EQ(stream.push(0x80), "\xF0\x9F\x98\x80");
    EXPECT_EQ(stream.push(0xC3), "");
    EXPECT_EQ(stream.push('x'), "\xEF\xBF\xBDx");
    EXPECT_EQ(stream.push(0xFF), "\xEF\xBF\xBD");
    EXPECT_EQ(stream.push(0x80), "\xEF\xBF\xBD");
    EXPECT_EQ(stream.push(0xE2), "");
    EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
    EXPECT_EQ(stream.finish(), "");
}

class Generation : public ::testing::TestWithParam<ModelConfig> {
  protected:
    Generation() : model_(GetParam(), {}, 1) {
        const std::vector<Param*> params = params_of(model_);
        for (Param* p : params) p->value = arena_.tensor(DType::f32, p->full_shape);
        for (Param* p : params) {
            if (p->init.kind == Init::Kind::normal) p->init.value = 0.4;  // far from uniform
        }
        init_params(params, workspace_.ctx().temp, 77);
    }
    /// The most likely token after `tokens`, without any cache.
    std::int32_t most_likely_after(const std::vector<std::int32_t>& tokens) {
        std::vector<std::int32_t> positions(tokens.size());
        for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<std::int32_t>(i);
        MicroBatch batch;
        batch.S = static_cast<std::int64_t>(tokens.size());
        batch.B = 1;
        batch.tokens = tokens.data();
        batch.positions = positions.data();
        Ctx ctx = workspace_.ctx();
        const Tensor logits = model_.logits(ctx, batch);
        const float* last = logits.ptr<float>() + (batch.S - 1) * logits.cols();
        const auto id = std::max_element(last, last + model_.config().true_vocab) - last;
        workspace_.reset();
        return static_cast<std::int32_t>(id);
    }
    std::vector<std::int32_t> run(Generator& g, const SamplingConfig& s, std::uint64_t sample = 0,
                                  const Generator::Stop& stop = {}) {
        std::vector<std::int32_t> out;
        end_ = g.run(s, sample, stop, [&](std::int32_t id) { out.push_back(id); });
        return out;
    }
    ThreadPool pool_{2};
    Workspace workspace_{pool_};
    Arena arena_;
    Decoder model_;
    Generator::End end_ = Generator::End::length;
    const std::vector<std::int32_t> prompt_ = {3, 1, 4, 1, 5};
};

TEST_P(Generation, TheCacheChangesNothing) {
    Generator generator(model_, workspace_, prompt_, 12, model_.config().true_vocab);
    const std::vector<std::int32_t> out = run(generator, {.greedy = true});
    ASSERT_EQ(out.size(), 12u);
    std::vector<std::int32_t> tokens = prompt_;
    for (const std::int32_t id : out) {
        ASSERT_EQ(id, most_likely_after(tokens)) << tokens.size();
        tokens.push_back(id);
    }
    EXPECT_EQ(run(generator, {.greedy = true}), out) << "the prompt is read once and can be continued again";
}

TEST_P(Generation, TheSeedDecidesTheText) {
    Generator generator(model_, workspace_, prompt_, 12, model_.config().true_vocab);
    const auto first = run(generator, {.temperature = 2, .seed = 1});
    EXPECT_EQ(run(generator, {.temperature = 2, .seed = 1}), first);
    EXPECT_NE(run(generator, {.temperature = 2, .seed = 2}), first);
    EXPECT_NE(run(generator, {.temperature = 2, .seed = 1}, 1), first);
    for (const std::int32_t id : first) EXPECT_LT(id, model_.config().true_vocab);
}

TEST_P(Generation, EndsAtTheStopTokenAndAtTheLastPosition) {
    Generator generator(model_, workspace_, prompt_, 1000, model_.config().true_vocab);
    const auto all = run(generator, {.temperature = 2});
    EXPECT_EQ(end_, Generator::End::positions);
    EXPECT_EQ(static_cast<std::int64_t>(all.size()), model_.config().max_positions - 5 + 1);
    const auto until = std::find(all.begin(), all.end(), all[6]);
    const auto some = run(generator, {.temperature = 2}, 0, {.token = all[6]});
    EXPECT_EQ(end_, Generator::End::stop_token);
    EXPECT_EQ(some, std::vector<std::int32_t>(all.begin(), until));
}

TEST_P(Generation, RefusesBadPrompts) {
    const auto with = [&](std::vector<std::int32_t> prompt) {
        Generator(model_, workspace_, std::move(prompt), 5, model_.config().true_vocab);
    };
    expect_usage_error([&] { with({}); }, {"empty"});
    expect_usage_error([&] { with({1, 53}); }, {"token 53", "ends at 52"});
    expect_usage_error([&] { with({-1}); }, {"token -1"});
    expect_usage_error([&] { with(std::vector<std::int32_t>(25, 1)); }, {"25 tokens", "24 positions"});
}

INSTANTIATE_TEST_SUITE_P(Of, Generation, ::testing::Values(tiny_gpt2(), tiny_llama(), tiny_nemotron(), tiny_unnamed()),
                         [](const auto& which) { return std::string("Model") + std::to_string(which.index); });

}  // namespace
}  // namespace tera
