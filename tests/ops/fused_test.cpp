// Ops that do the work of several: on the CPU they are those others one after the other, bit for bit.
#include <gtest/gtest.h>

#include "ops/linear.h"
#include "ops/norm.h"
#include "support/world.h"

namespace tera::test {
namespace {

using namespace ops;

class FusedOps : public testing::TestWithParam<DType> {
  protected:
    World w_;
    const Exec& e_ = w_.ctx.temp;
    Tensor copy(ConstTensor t) {
        Tensor out = w_.store.tensor(t.dtype, t.shape);
        std::memcpy(out.data, t.data, t.bytes());
        return out;
    }
};
INSTANTIATE_TEST_SUITE_P(Types, FusedOps, testing::Values(DType::f64, DType::f32, DType::bf16, DType::f16),
                         [](const auto& type_case) { return name_of(type_case.param); });

TEST_P(FusedOps, product_into_the_residual_stream) {
    const std::vector<std::int64_t> samples{7, 9, 1};
    Tensor x = w_.random(GetParam(), {15, 19}), w = w_.random(GetParam(), {37, 19}), b = w_.random(GetParam(), {37}),
           stream = w_.random(GetParam(), {15, 37});
    for (double p : {0.0, 0.4})
        for (bool with_bias : {false, true}) {
            Dropout dropout{p, {1, 2, 3}, 3, samples.data()};
            ConstTensor bias = with_bias ? ConstTensor(b) : ConstTensor{};
            EXPECT_TRUE(same_bits(linear_residual(e_, x, w, bias, {stream, dropout}),
                                  dropout_add(e_, stream, linear(e_, x, w), bias, dropout)));
        }
}

TEST_P(FusedOps, product_and_activation) {
    Tensor x = w_.random(GetParam(), {15, 19}), w = w_.random(GetParam(), {38, 19}), b = w_.random(GetParam(), {38});
    for (auto kind : {ActivationKind::gelu_tanh, ActivationKind::squared_relu, ActivationKind::swiglu}) {
        Activated both = linear_activation(w_.ctx.keep, e_, kind, x, w, b);
        Tensor h = linear(e_, x, w, b), a = activation(e_, kind, h);
        EXPECT_TRUE(same_bits(both.h, h));
        EXPECT_TRUE(same_bits(both.a, a));
    }
}

TEST_P(FusedOps, activation_once_more_in_backward) {
    DType acc = acc_dtype(GetParam());
    for (auto kind : {ActivationKind::gelu_tanh, ActivationKind::squared_relu, ActivationKind::swiglu}) {
        Tensor h = w_.random(GetParam(), {15, 38}, 3), a = activation(e_, kind, h), da = w_.random(GetParam(), a.shape),
               db = w_.random(acc, {38}), again = copy(da), db2 = copy(db);
        Tensor dh = activation_backward(e_, kind, da, h);
        bias_grad(e_, db, dh);
        EXPECT_TRUE(same_bits(activation_backward_again(e_, kind, again, h, db2), dh));
        EXPECT_TRUE(same_bits(again, a));
        EXPECT_TRUE(same_bits(db2, db));
        Tensor db3 = w_.random(acc, {38}), db4 = copy(db3);
        bias_grad(e_, db3, dh);
        EXPECT_TRUE(same_bits(activation_backward(e_, kind, da, h, db4), dh));
        EXPECT_TRUE(same_bits(db4, db3));
        EXPECT_TRUE(same_bits(activation_backward_again(e_, kind, da, h, {}), dh));
    }
}

TEST_P(FusedOps, column_sums_on_the_way) {
    DType acc = acc_dtype(GetParam());
    Tensor x = w_.random(GetParam(), {70, 20}), dy = w_.random(GetParam(), {70, 20}), db = w_.random(acc, {20}),
           dw = w_.random(acc, {20, 20}), dx = w_.random(GetParam(), {70, 20}), w = w_.random(GetParam(), {20}),
           norm_dw = w_.random(acc, {20});
    Tensor db2 = copy(db), dw2 = copy(dw), dx2 = copy(dx), norm_dw2 = copy(norm_dw);
    linear_wgrad(e_, dw, dy, x, db);
    bias_grad(e_, db2, dy);
    linear_wgrad(e_, dw2, dy, x);
    EXPECT_TRUE(same_bits(db, db2));
    EXPECT_TRUE(same_bits(dw, dw2));

    NormSpec spec{.rms = true, .one_plus = false, .eps = 1e-5};
    NormStats stats;
    norm(e_, spec, x, w, {}, stats);
    bias_grad(e_, db2, dx2);
    norm_backward(e_, spec, {dx2, norm_dw2, {}}, dy, x, w, stats);
    norm_backward(e_, spec, {dx, norm_dw, {}, db}, dy, x, w, stats);
    EXPECT_TRUE(same_bits(db, db2));
    EXPECT_TRUE(same_bits(dx, dx2));
    EXPECT_TRUE(same_bits(norm_dw, norm_dw2));
}

}  // namespace
}  // namespace tera::test
