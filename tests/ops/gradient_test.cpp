// Every op's backward against differences in f64.
#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/residual.h"
#include "ops/rope.h"
#include "support/gradcheck.h"

namespace tera::test {
namespace {

using namespace ops;

TEST(Gradient, linear) {
    World w;
    const Exec& e = w.ctx.temp;
    Tensor x = w.random(DType::f64, {7, 5}), weight = w.random(DType::f64, {6, 5}), bias = w.random(DType::f64, {6});
    Tensor dy = w.random(DType::f64, {7, 6}), dw = w.random(DType::f64, {6, 5}), db = w.zeros(DType::f64, {6});
    std::vector<double> before = values(dw);
    auto loss = [&] {
        ArenaScope scope(*e.arena);
        return dot(values(linear(e, x, weight, bias)), values(dy));
    };
    linear_wgrad(e, dw, dy, x);
    bias_grad(e, db, dy);
    Tensor dx = linear_dgrad(e, dy, weight);
    for (std::int64_t i = 0; i < dw.numel(); ++i) dw.ptr<double>()[i] -= before[static_cast<std::size_t>(i)];
    check_gradient("x", x, dx, loss);
    check_gradient("weight (accumulated)", weight, dw, loss);
    check_gradient("bias", bias, db, loss);
}

struct NormCase {
    bool rms, one_plus;
};
class NormGradient : public testing::TestWithParam<NormCase> {};
TEST_P(NormGradient, matches_differences) {
    World w;
    const Exec& e = w.ctx.temp;
    NormSpec spec{.rms = GetParam().rms, .one_plus = GetParam().one_plus, .eps = 1e-5};
    Tensor x = w.random(DType::f64, {70, 9}), weight = w.random(DType::f64, {9}), bias = w.random(DType::f64, {9});
    Tensor dy = w.random(DType::f64, {70, 9}), dx = w.zeros(DType::f64, {70, 9}), dw = w.zeros(DType::f64, {9}),
           db = w.zeros(DType::f64, {9});
    ConstTensor b = spec.rms ? ConstTensor{} : ConstTensor(bias);
    auto loss = [&] {
        ArenaScope scope(*e.arena);
        NormStats stats;
        return dot(values(norm(e, spec, x, weight, b, stats)), values(dy));
    };
    NormStats stats;
    norm(e, spec, x, weight, b, stats);
    norm_backward(e, spec, {dx, dw, spec.rms ? Tensor{} : db}, dy, x, weight, stats);
    check_gradient("x", x, dx, loss);
    check_gradient("weight", weight, dw, loss);
    if (!spec.rms) check_gradient("bias", bias, db, loss);
    norm_backward(e, spec, {dx, dw, {}}, dy, x, weight, stats);  // dx accumulates
    std::vector<double> twice = values(dx);
    for (double& v : twice) v /= 2;
    std::memcpy(dx.data, twice.data(), dx.bytes());
    check_gradient("x, added twice", x, dx, loss, 50);
}
INSTANTIATE_TEST_SUITE_P(All, NormGradient,
                         testing::Values(NormCase{false, false}, NormCase{true, false}, NormCase{false, true},
                                         NormCase{true, true}));

class HeadNormGradient : public testing::TestWithParam<bool> {};
TEST_P(HeadNormGradient, matches_differences) {
    World w;
    const Exec& e = w.ctx.temp;
    NormSpec spec{.rms = GetParam(), .one_plus = false, .eps = 1e-5};
    HeadCounts counts{4, 2, 6};
    Tensor qkv = w.random(DType::f64, {40, 48});
    Tensor wq = w.random(DType::f64, {6}), wk = w.random(DType::f64, {6}), bq = w.random(DType::f64, {6}),
           bk = w.random(DType::f64, {6}), r = w.random(DType::f64, {40, 48});
    HeadNormWeights weights{wq, spec.rms ? ConstTensor{} : ConstTensor(bq), wk,
                            spec.rms ? ConstTensor{} : ConstTensor(bk)};
    HeadNormGrads grads{w.zeros(DType::f64, {6}), {}, w.zeros(DType::f64, {6}), {}};
    if (!spec.rms) grads.dbq = w.zeros(DType::f64, {6}), grads.dbk = w.zeros(DType::f64, {6});
    auto loss = [&] {
        ArenaScope scope(*e.arena);
        NormStats stats;
        return dot(values(head_norm(e, spec, counts, qkv, weights, stats)), values(r));
    };
    NormStats stats;
    head_norm(e, spec, counts, qkv, weights, stats);
    Tensor d = w.zeros(DType::f64, {40, 48});
    std::memcpy(d.data, r.data, d.bytes());
    head_norm_backward(e, spec, counts, grads, d, qkv, weights, stats);
    check_gradient("qkv", qkv, d, loss);
    check_gradient("wq", wq, grads.dwq, loss);
    check_gradient("wk", wk, grads.dwk, loss);
    if (!spec.rms) check_gradient("bq", bq, grads.dbq, loss), check_gradient("bk", bk, grads.dbk, loss);
}
INSTANTIATE_TEST_SUITE_P(Both, HeadNormGradient, testing::Bool());

class ActivationGradient : public testing::TestWithParam<ActivationKind> {};
TEST_P(ActivationGradient, matches_differences) {
    World w;
    const Exec& e = w.ctx.temp;
    ActivationKind kind = GetParam();
    Tensor h = w.random(DType::f64, {9, 10}, 3);
    for (std::int64_t i = 0; i < h.numel(); ++i)  // stay clear of the kink of relu
        if (double& v = h.ptr<double>()[i]; std::abs(v) < 0.01) v = 0.5;
    Tensor a = activation(e, kind, h);
    Tensor da = w.random(DType::f64, a.shape);
    auto loss = [&] {
        ArenaScope scope(*e.arena);
        return dot(values(activation(e, kind, h)), values(da));
    };
    check_gradient("h", h, activation_backward(e, kind, da, h), loss);
}
INSTANTIATE_TEST_SUITE_P(All, ActivationGradient,
                         testing::Values(ActivationKind::gelu_tanh, ActivationKind::gelu_erf,
                                         ActivationKind::squared_relu, ActivationKind::swiglu, ActivationKind::geglu));

class RopeGradient : public testing::TestWithParam<bool> {};
TEST_P(RopeGradient, inverse_is_the_transpose) {
    World w;
    const Exec& e = w.ctx.temp;
    Tensor x = w.random(DType::f64, {8, 5 * 6}), r = w.random(DType::f64, {8, 5 * 6});
    Tensor angles = w.random(DType::f64, {16, 2}, 3), cos = w.zeros(DType::f64, {16, 2}),
           sin = w.zeros(DType::f64, {16, 2});
    for (int i = 0; i < 32; ++i) {
        cos.ptr<double>()[i] = std::cos(angles.ptr<double>()[i]);
        sin.ptr<double>()[i] = std::sin(angles.ptr<double>()[i]);
    }
    RopeTable table{cos, sin, GetParam()};
    std::vector<std::int32_t> positions = w.random_ints(8, 16);
    auto loss = [&] {
        ArenaScope scope(*e.arena);
        Tensor y = e.like(x);
        std::memcpy(y.data, x.data, x.bytes());
        rope(e, y, table, positions.data(), {3, 6}, false);
        return dot(values(y), values(r));
    };
    Tensor d = w.zeros(DType::f64, x.shape);
    std::memcpy(d.data, r.data, d.bytes());
    rope(e, d, table, positions.data(), {3, 6}, true);
    check_gradient("x", x, d, loss);
}
INSTANTIATE_TEST_SUITE_P(Both, RopeGradient, testing::Bool());

struct AttentionCase {
    std::int64_t B, Sq, Sk, H, G, K;
    bool causal, documents;
    double dropout;
};
class AttentionGradient : public testing::TestWithParam<AttentionCase> {};
TEST_P(AttentionGradient, matches_differences) {
    World w;
    const Exec& e = w.ctx.temp;
    AttentionCase c = GetParam();
    Tensor q = w.random(DType::f64, {c.Sq * c.B, c.H * c.K}),
           kv = w.random(DType::f64, {c.Sk * c.B, 2 * c.G * c.K + 3});
    Tensor d_o = w.random(DType::f64, {c.Sq * c.B, c.H * c.K});
    AttentionSpec spec{
        .B = c.B, .Sq = c.Sq, .Sk = c.Sk, .H = c.H, .G = c.G, .K = c.K, .scale = 0.7, .causal = c.causal};
    std::vector<std::int32_t> starts(static_cast<std::size_t>(c.Sq * c.B), 0);
    if (c.documents) {
        for (std::int64_t s = 0; s < c.Sq; ++s)
            for (std::int64_t b = 0; b < c.B; ++b)
                starts[static_cast<std::size_t>(s * c.B + b)] = static_cast<std::int32_t>(s >= 5 + b ? 5 + b : 0);
        spec.doc_start = starts.data();
    }
    std::vector<std::int64_t> samples{77, 1LL << 40, 3};
    spec.dropout = c.dropout;
    spec.site = {.seed = 9, .layer = 3, .place = 1};
    spec.sample = samples.data();
    auto run = [&] {
        return attention(e, spec, {ConstTensor(q), 0}, {ConstTensor(kv), 3}, {ConstTensor(kv), 3 + c.G * c.K});
    };
    auto loss = [&] {
        ArenaScope scope(*e.arena);
        return dot(values(run().o), values(d_o));
    };
    Tensor dq = w.zeros(DType::f64, q.shape), dkv = w.zeros(DType::f64, kv.shape);
    attention_backward(e, spec, {{dq, 0}, {dkv, 3}, {dkv, 3 + c.G * c.K}}, d_o, {ConstTensor(q), 0},
                       {ConstTensor(kv), 3}, {ConstTensor(kv), 3 + c.G * c.K}, run());
    check_gradient("q", q, dq, loss);
    check_gradient("k and v", kv, dkv, loss);
}
INSTANTIATE_TEST_SUITE_P(Shapes, AttentionGradient,
                         testing::Values(AttentionCase{2, 9, 9, 4, 2, 3, true, false, 0},
                                         AttentionCase{1, 70, 70, 1, 1, 2, true, false, 0},
                                         AttentionCase{3, 8, 8, 2, 2, 4, false, false, 0},
                                         AttentionCase{2, 12, 12, 4, 1, 3, true, true, 0},
                                         AttentionCase{2, 9, 9, 2, 1, 4, true, false, 0.4},
                                         AttentionCase{2, 5, 11, 2, 2, 3, true, false, 0}));

TEST(Gradient, dropout_add) {
    World w;
    const Exec& e = w.ctx.temp;
    std::vector<std::int64_t> samples{5, 6};
    Dropout dropout{0.3, {1, 2, 3}, 2, samples.data()};
    Tensor x = w.random(DType::f64, {10, 7}), y = w.random(DType::f64, {10, 7}), bias = w.random(DType::f64, {7});
    Tensor dout = w.random(DType::f64, {10, 7}), db = w.zeros(DType::f64, {7});
    auto loss = [&] {
        ArenaScope scope(*e.arena);
        return dot(values(dropout_add(e, x, y, bias, dropout)), values(dout));
    };
    ConstTensor dy = dropout_backward(e, dout, dropout);
    bias_grad(e, db, dy);
    check_gradient("y", y, dy, loss);
    check_gradient("x", x, dout, loss);
    check_gradient("bias", bias, db, loss);
}

TEST(Gradient, embedding) {
    World w;
    const Exec& e = w.ctx.temp;
    Tensor word = w.random(DType::f64, {5, 6}), position = w.random(DType::f64, {4, 6}),
           dx = w.random(DType::f64, {12, 6});
    std::vector<std::int32_t> tokens = w.random_ints(12, 5), positions = w.random_ints(12, 4);
    auto loss = [&] {
        ArenaScope scope(*e.arena);
        return dot(values(embedding(e, word, position, tokens.data(), positions.data(), 12)), values(dx));
    };
    Tensor dword = w.zeros(DType::f64, {5, 6}), dposition = w.zeros(DType::f64, {4, 6});
    embedding_backward(e, dword, dx, tokens.data());
    embedding_backward(e, dposition, dx, positions.data());
    check_gradient("word", word, dword, loss);
    check_gradient("position", position, dposition, loss);
}

TEST(Gradient, cross_entropy) {
    World w;
    const Exec& e = w.ctx.temp;
    Tensor z = w.random(DType::f64, {6, 11}, 4), loss_values = w.zeros(DType::f64, {6}),
           copy = w.zeros(DType::f64, {6, 11});
    std::vector<std::int32_t> labels = w.random_ints(6, 11);
    std::vector<float> mask{0.5, 1, 0, 2, 0.25, 3};
    std::vector<double> weight;
    for (float m : mask) weight.push_back(0.7 * static_cast<double>(m));
    auto loss = [&] {
        std::memcpy(copy.data, z.data, z.bytes());
        cross_entropy(e, loss_values, copy, labels.data(), nullptr, 0);
        return dot(values(loss_values), weight);
    };
    Tensor dz = w.zeros(DType::f64, {6, 11});
    std::memcpy(dz.data, z.data, z.bytes());
    cross_entropy(e, loss_values, dz, labels.data(), mask.data(), 0.7);
    check_gradient("logits", z, dz, loss);
}

}  // namespace
}  // namespace tera::test
