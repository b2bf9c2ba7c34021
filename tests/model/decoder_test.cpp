#include <gtest/gtest.h>

#include "support/arena_gap.h"
#include "support/gradcheck.h"
#include "support/models.h"

namespace tera::test {
namespace {

struct Variant {
    const char* name;
    ModelConfig config;
    bool documents = false;
    double h = 1e-4;
};

std::vector<Variant> variants() {
    std::vector<Variant> list;
    list.push_back({"gpt", gpt_config()});
    list.push_back({"llama", llama_config()});
    Variant v{"gpt_dropout", gpt_config()};
    v.config.hidden_dropout = 0.2, v.config.attention_dropout = 0.3;
    list.push_back(v);
    v = {"gpt_documents", gpt_config(), true};
    list.push_back(v);
    v = {"llama_documents", llama_config(), true};
    list.push_back(v);
    v = {"llama_qk_norm_tied", llama_config()};
    v.config.qk_norm = true, v.config.tied = true, v.config.qkv_bias = true;
    list.push_back(v);
    v = {"gpt_qk_norm", gpt_config()};
    v.config.qk_norm = true, v.config.norm_one_plus = true, v.config.activation = Activation::gelu_erf;
    list.push_back(v);
    v = {"squared_relu_no_positions", gpt_config()};
    v.config.activation = Activation::squared_relu, v.config.position = PositionKind::none, v.config.qkv_bias = false;
    v.h = 2e-5;  // a kink in the second derivative: stay closer to the point
    list.push_back(v);
    v = {"geglu_interleaved_partial_rope", llama_config()};
    v.config.activation = Activation::geglu, v.config.rope.interleaved = true, v.config.rope.percent = 0.7;
    v.config.linear_bias = true, v.config.rope.interpolation = 2, v.config.heads = 4, v.config.kv_heads = 1;
    list.push_back(v);
    return list;
}

class DecoderGradient : public testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(All, DecoderGradient, testing::ValuesIn(variants()),
                         [](const auto& v) { return v.param.name; });

TEST_P(DecoderGradient, every_parameter_matches_differences) {
    World w;
    TestModel m(w, GetParam().config);
    TestBatch batch(w, 6, 2, 15);
    if (GetParam().documents) batch.cut_documents(4);
    run_step(w, m, batch, 0.5);
    auto loss = [&] {
        w.reset();
        Decoder::Saved saved;
        return 0.5 * m.model.forward(w.ctx, batch.view(), 0, saved).loss;
    };
    for (Param* p : m.params) {
        Tensor claimed = w.zeros(DType::f64, p->grad.shape);
        std::memcpy(claimed.data, p->grad.data, claimed.bytes());
        check_gradient(p->name, p->value, claimed, loss, 40, GetParam().h);
    }
}

TEST(Decoder, parameters_are_what_the_config_says) {
    ModelConfig c = gpt_config();
    Decoder gpt(c, {}, 1);
    std::int64_t n = 0, decayed = 0;
    gpt.visit([&](Param& p) {
        n += p.full_shape.numel();
        if (p.weight_decay) decayed += p.full_shape.numel();
    });
    std::int64_t D = c.hidden, F = c.ffn, L = c.layers;
    std::int64_t matrices = c.vocab * D + c.max_positions * D + L * (3 * D * D + D * D + 2 * D * F);
    EXPECT_EQ(decayed, matrices);
    EXPECT_EQ(n, matrices + L * (3 * D + D + F + D + 4 * D) + 2 * D);
}

class Recompute : public testing::TestWithParam<RecomputeConfig> {};
using Kind = RecomputeConfig::Kind;
INSTANTIATE_TEST_SUITE_P(Kinds, Recompute,
                         testing::Values(RecomputeConfig{Kind::selective, 1}, RecomputeConfig{Kind::uniform, 1},
                                         RecomputeConfig{Kind::uniform, 2}, RecomputeConfig{Kind::uniform, 3},
                                         RecomputeConfig{Kind::block, 2}, RecomputeConfig{Kind::block, 9}));

TEST_P(Recompute, gives_the_same_bits_and_keeps_less) {
    for (ModelConfig c : {gpt_config(), llama_config()}) {
        c.layers = 5, c.hidden_dropout = 0.1, c.attention_dropout = 0.1;
        World a, b;
        TestModel plain(a, c, {}, DType::f32), again(b, c, GetParam(), DType::f32);
        TestBatch batch_a(a, 11, 2, 15), batch_b(b, 11, 2, 15);
        LossSum la = run_step(a, plain, batch_a), lb = run_step(b, again, batch_b);
        EXPECT_EQ(la.loss, lb.loss);
        for (std::size_t i = 0; i < plain.params.size(); ++i)
            EXPECT_TRUE(same_bits(plain.params[i]->grad, again.params[i]->grad)) << plain.params[i]->name;
        EXPECT_LT(b.keep_arena.peak(), a.keep_arena.peak());
    }
}

TEST(Decoder, keeping_what_leaves_the_mlp_activation_changes_no_bit_and_takes_what_it_says) {
    for (ModelConfig c : {gpt_config(), llama_config()})
        for (const Kind kind : {Kind::none, Kind::uniform}) {
            c.layers = 3;
            World a, b;
            TestModel again(a, c, {kind, 1}, DType::f32), kept(b, c, {.kind = kind, .keep_mlp = true}, DType::f32);
            TestBatch batch_a(a, 16, 2, 15), batch_b(b, 16, 2, 15);
            EXPECT_EQ(run_step(a, again, batch_a).loss, run_step(b, kept, batch_b).loss);
            for (std::size_t i = 0; i < again.params.size(); ++i)
                EXPECT_TRUE(same_bits(again.params[i]->grad, kept.params[i]->grad)) << again.params[i]->name;
            if (kind != Kind::none) continue;
            const auto layers = static_cast<std::size_t>(c.layers), ffn = static_cast<std::size_t>(c.ffn);
            EXPECT_EQ(b.keep_arena.peak() - a.keep_arena.peak(), layers * (16 * 2 * ffn * 4 + arena_gap()));
        }
}

TEST(Decoder, same_bits_for_any_number_of_threads) {
    ModelConfig c = llama_config();
    c.layers = 2, c.hidden = 96, c.heads = 6, c.kv_heads = 2, c.head_dim = 16, c.ffn = 200, c.vocab = 700;
    c.max_positions = 200, c.hidden_dropout = 0.1, c.attention_dropout = 0.1, c.qk_norm = true, c.linear_bias = true;
    for (DType dtype : {DType::f32, DType::bf16}) {
        World one(1), many(5);
        TestModel a(one, c, {}, dtype), b(many, c, {}, dtype);
        TestBatch ba(one, 130, 3, 700), bb(many, 130, 3, 700);
        EXPECT_EQ(run_step(one, a, ba).loss, run_step(many, b, bb).loss);
        for (std::size_t i = 0; i < a.params.size(); ++i)
            EXPECT_TRUE(same_bits(a.params[i]->grad, b.params[i]->grad)) << a.params[i]->name;
    }
}

/// Documents packed into one sample do not see each other: not one bit.
TEST(Decoder, changing_one_document_leaves_the_other_alone) {
    for (ModelConfig c : {gpt_config(), llama_config()}) {
        c.max_positions = 200;
        World w;
        TestModel m(w, c, {}, DType::f32);
        TestBatch batch(w, 150, 2, 15);
        batch.cut_documents(70);
        w.reset();
        Tensor before = w.zeros(DType::f32, {300, c.vocab});
        Tensor logits = m.model.logits(w.ctx, batch.view());
        std::memcpy(before.data, logits.data, before.bytes());
        for (std::size_t t = 0; t < 70 * 2; ++t) batch.tokens[t] = (batch.tokens[t] + 1) % 15;
        w.reset();
        Tensor after = m.model.logits(w.ctx, batch.view());
        EXPECT_FALSE(same_bits(before.slice(0, 140), after.slice(0, 140)));
        EXPECT_TRUE(same_bits(before.slice(140, 160), after.slice(140, 160)));

        // And the second document alone gives the same logits up to rounding.
        TestBatch alone(w, 80, 2, 15);
        std::copy(batch.tokens.begin() + 140, batch.tokens.end(), alone.tokens.begin());
        w.keep_arena.reset();
        EXPECT_LT(worst(values(m.model.logits(w.ctx, alone.view())), values(before.slice(140, 160))), 1e-5);
    }
}

TEST(Decoder, future_tokens_are_not_seen) {
    World w;
    TestModel m(w, llama_config(), {}, DType::f32);
    TestBatch batch(w, 12, 1, 15);
    w.reset();
    Tensor before = w.zeros(DType::f32, {12, 17});
    std::memcpy(before.data, m.model.logits(w.ctx, batch.view()).data, before.bytes());
    batch.tokens[8] = (batch.tokens[8] + 1) % 15;
    w.reset();
    Tensor after = m.model.logits(w.ctx, batch.view());
    EXPECT_TRUE(same_bits(before.slice(0, 8), after.slice(0, 8)));
    EXPECT_FALSE(same_bits(before.slice(8, 4), after.slice(8, 4)));
}

TEST(Decoder, cached_inference_equals_the_whole_sequence) {
    for (ModelConfig c : {gpt_config(), llama_config()}) {
        c.qk_norm = true;
        World w;
        TestModel m(w, c, {}, DType::f64);
        TestBatch batch(w, 10, 2, 15);
        w.reset();
        std::vector<double> whole = values(m.model.logits(w.ctx, batch.view()));
        KvCache cache = m.model.make_cache(w.store, 2, 10);
        std::int64_t done = 0;
        for (std::int64_t n : {4, 1, 1, 3, 1}) {  // a prompt, single tokens, and several at once
            w.reset();
            MicroBatch part = batch.view();
            part.S = n, part.tokens += done * 2, part.positions += done * 2;
            std::vector<double> last = values(m.model.next_logits(w.ctx, part, cache));
            done += n;
            std::vector<double> expected(whole.begin() + (done - 1) * 2 * c.vocab, whole.begin() + done * 2 * c.vocab);
            EXPECT_LT(worst(last, expected), 1e-12) << done;
        }
    }
}

TEST(Decoder, evaluation_equals_training_without_dropout) {
    World w;
    TestModel m(w, llama_config(), {}, DType::f32);
    TestBatch batch(w, 9, 3, 15);
    LossSum trained = run_step(w, m, batch);
    w.reset();
    Tensor per_token;
    LossSum evaluated = m.model.evaluate(w.ctx, batch.view(), &per_token);
    EXPECT_EQ(trained.loss, evaluated.loss);
    EXPECT_EQ(trained.tokens, evaluated.tokens);
    EXPECT_EQ(per_token.numel(), 27);
}

TEST(Decoder, too_long_a_sequence_is_refused) {
    World w;
    TestModel m(w, gpt_config(), {}, DType::f32);
    TestBatch batch(w, 17, 1, 15);
    EXPECT_THROW(m.model.logits(w.ctx, batch.view()), Error);
}

TEST(InitParams, are_a_function_of_seed_name_and_index) {
    World w;
    ModelConfig c = gpt_config();
    c.vocab = 20000, c.init_std = 0.02;
    Decoder a(c, {}, 1), b(c, {}, 1);
    auto pa = params_of(a), pb = params_of(b);
    allocate_params(pa, w.store, DType::f32, DType::f32);
    allocate_params(pb, w.store, DType::f32, DType::f32);
    init_params(pa, w.ctx.temp, 5);
    init_params(pb, w.ctx.temp, 5);
    for (std::size_t i = 0; i < pa.size(); ++i) EXPECT_TRUE(same_bits(pa[i]->value, pb[i]->value));
    double mean = 0, square = 0, fourth = 0;
    auto v = values(pa[0]->value);
    for (double x : v) mean += x, square += x * x, fourth += x * x * x * x;
    auto n = static_cast<double>(v.size());
    EXPECT_NEAR(mean / n, 0, 2e-4);
    EXPECT_NEAR(std::sqrt(square / n), 0.02, 1e-4);
    EXPECT_NEAR(fourth / n / (square / n * square / n), 3, 0.05);  // as a normal has
    init_params(pb, w.ctx.temp, 6);
    EXPECT_FALSE(same_bits(pa[0]->value, pb[0]->value));
    auto std_of = [&](const std::string& name) {
        for (Param* p : pa)
            if (p->name == name)
                return std::sqrt(dot(values(p->value), values(p->value)) / static_cast<double>(p->value.numel()));
        return -1.0;
    };
    EXPECT_NEAR(std_of("layers.0.mlp.down.weight"), 0.02 / 2, 0.0015);  // 1/sqrt(2 L), L = 2
}

TEST(InitParams, any_slice_of_a_piece_has_the_values_of_the_whole) {
    World w;
    ModelConfig c = gpt_config();
    c.hidden = 16, c.heads = c.kv_heads = c.head_dim = 4, c.vocab = 20;
    Decoder model(c, {}, 1);
    auto params = params_of(model);
    allocate_params(params, w.store, DType::f32, DType::f32);
    init_params(params, w.ctx.temp, 5);
    std::vector<std::vector<double>> whole;
    for (Param* p : params) whole.push_back(values(p->value));
    for (int size : {1, 2, 4})
        for (int rank = 0; rank < size; ++rank) {
            for (Param* p : params) p->tp = {rank, size};
            allocate_params(params, w.store, DType::f32, DType::f32);
            for (std::size_t i = 0; i < params.size(); ++i) {
                const std::int64_t n = params[i]->value.numel();
                for (const std::int64_t begin : {std::int64_t{0}, n / 3, n - 1}) {
                    const ParamSlice slice{params[i], begin, std::min(n - begin, (n - begin) / 2 + 1)};
                    Tensor part = w.ctx.temp.tensor(DType::f32, {slice.count});
                    init_slice(slice, part, w.ctx.temp, 5);
                    const std::vector<double> found = values(part);
                    for (const ElementRun& run : runs_of(slice))
                        for (std::int64_t k = 0; k < run.count; ++k)
                            ASSERT_EQ(found[static_cast<std::size_t>(run.local + k)],
                                      whole[i][static_cast<std::size_t>(run.full + k)])
                                << params[i]->name << " from " << begin << " on rank " << rank;
                }
            }
        }
}

TEST(AllocateParams, the_first_product_overwrites_as_in_every_step) {
    World w;
    Decoder model(llama_config(), {}, 1);
    auto params = params_of(model);
    allocate_params(params, w.store, DType::f32, DType::f32);
    for (const Param* p : params) {
        EXPECT_EQ(p->grad_is_old, p->grad_by_product) << p->name;
        for (const double g : values(p->grad)) EXPECT_EQ(g, 0) << p->name;
    }
}

}  // namespace
}  // namespace tera::test
