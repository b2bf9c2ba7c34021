// What the optimizer does around its rule: main weights, dtypes, decay exclusion, threads, state by name.
#include "optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "comm/thread_comm.h"
#include "optim/clip.h"
#include "optim/pieces.h"
#include "optim_fixture.h"

namespace tera {
namespace {

std::vector<double> wave(std::int64_t n, double scale, double phase) {
    std::vector<double> out(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = scale * std::sin(phase + 0.37 * static_cast<double>(i));
    return out;
}

/// Three parameters over several pieces, with sizes that no vector width divides.
void build(ParamSet& set, DType value, DType grad) {
    fill(set.add("layers.0.attn.qkv.weight", 2 * piece_elements + 77, value, grad).value,
         wave(2 * piece_elements + 77, 0.5, 0.1));
    fill(set.add("layers.0.norm1.weight", 131, value, grad, false).value, wave(131, 1, 0.2));
    fill(set.add("embedding.word.weight", piece_elements + 1, value, grad).value, wave(piece_elements + 1, 0.02, 0.3));
}

void run_steps(ParamSet& set, Optimizer& optimizer, const Exec& exec, int steps) {
    for (int t = 0; t < steps; ++t) {
        for (Param* p : set.list()) fill(p->grad, wave(p->grad.numel(), 3, 0.5 * t));
        optimizer.measure(exec);
        optimizer.step(exec, {.lr = 1e-2, .weight_decay = 0.1, .clip_norm = 1.0});
        EXPECT_GT(optimizer.finish(exec).grads.norm(), 1);
    }
}

TEST(Optimizer, SameBitsForAnyNumberOfThreads) {
    for (DType dtype : {DType::f32, DType::bf16}) {
        ParamSet one, many;
        build(one, dtype, DType::f32);
        build(many, dtype, DType::f32);
        ThreadPool pool1(1), pool5(5);
        Exec exec1{Device::cpu, &one.arena(), &pool1}, exec5{Device::cpu, &many.arena(), &pool5};
        Optimizer a(make_adam({}), one.list(), one.arena(), exec1), b(make_adam({}), many.list(), many.arena(), exec5);
        run_steps(one, a, exec1, 3);
        run_steps(many, b, exec5, 3);
        for (std::size_t i = 0; i < one.list().size(); ++i) {
            EXPECT_TRUE(same_bits(one.list()[i]->value, many.list()[i]->value)) << one.list()[i]->name;
        }
        for (std::size_t i = 0; i < a.state().size(); ++i) {
            EXPECT_TRUE(same_bits(a.state()[i].tensor, b.state()[i].tensor)) << a.state()[i].kind;
        }
        EXPECT_EQ(norm_of(exec1, a.main_weights()), norm_of(exec5, b.main_weights()));
    }
}

TEST(Optimizer, AnElementDoesNotDependOnItsPlace) {
    // The same numbers shifted by a few places: what a rank with another slice computes must be the same bits.
    constexpr std::int64_t n = 1000, shift = 13;
    ParamSet set;
    Param& a = set.add("a", n, DType::f32, DType::f32);
    Param& b = set.add("b", n + shift, DType::f32, DType::f32);
    const auto w = wave(n, 0.5, 0), g = wave(n, 2, 1);
    auto shifted = [&](std::vector<double> x) {
        x.insert(x.begin(), shift, 0.25);
        return x;
    };
    fill(a.value, w), fill(b.value, shifted(w)), fill(a.grad, g), fill(b.grad, shifted(g));
    Exec exec{Device::cpu, &set.arena(), &test_pool()};
    Optimizer optimizer(make_adam({}), set.list(), set.arena(), exec);
    take_step(optimizer, exec, {1e-3, 0.1, 0.77});
    EXPECT_EQ(0, std::memcmp(a.value.data, b.value.ptr<float>() + shift, a.value.bytes()));
}

TEST(Optimizer, HalfPrecisionValuesAreTheRoundedMainWeights) {
    for (DType dtype : {DType::bf16, DType::f16}) {
        ParamSet set;
        build(set, dtype, DType::f32);
        Exec exec{Device::cpu, &set.arena(), &test_pool()};
        Optimizer optimizer(make_adam({}), set.list(), set.arena(), exec);
        for (std::size_t i = 0; i < set.list().size(); ++i) {
            EXPECT_EQ(values_of(optimizer.main_weights()[i]), values_of(set.list()[i]->value)) << "cloned at first";
        }
        run_steps(set, optimizer, exec, 2);
        bool finer = false;
        for (std::size_t i = 0; i < set.list().size(); ++i) {
            const auto main = values_of(optimizer.main_weights()[i]), value = values_of(set.list()[i]->value);
            for (std::size_t k = 0; k < main.size(); ++k) {
                const float x = static_cast<float>(main[k]);
                const float rounded = dtype == DType::bf16 ? joined({split(x).value, 0}) : static_cast<float>(f16_t(x));
                ASSERT_EQ(value[k], rounded);
                finer = finer || main[k] != value[k];
            }
        }
        EXPECT_TRUE(finer);
    }
}

TEST(Optimizer, MainWeightsAreDrawnFinerThanTheValuesThatTheyRoundTo) {
    constexpr std::int64_t n = (1 << 20) + 900, begin = 100, count = n - 200;  // more than are drawn at once
    for (DType dtype : {DType::bf16, DType::f16}) {
        ParamSet set;
        Param& p = set.add("layers.0.mlp.up.weight", n, dtype, DType::f32);
        p.init = {Init::Kind::normal, 0.02};
        Exec exec{Device::cpu, &set.arena(), &test_pool()};
        init_params(set.list(), exec, 42);
        const auto value = values_of(p.value);
        const ParamSlice slice{&p, begin, count};
        Optimizer optimizer(make_adam({}), Optimizer::Share{{slice}, {slice}, nullptr}, set.arena(), exec);
        optimizer.draw_main(exec, 42);
        EXPECT_EQ(values_of(p.value), value) << "ranks that do not update it have these";
        const Tensor whole = set.arena().tensor(DType::f32, {count});
        init_slice(slice, whole, exec, 42);
        const auto main = values_of(optimizer.main_weights()[0]), drawn = values_of(whole);
        int finer = 0;
        for (std::size_t k = 0; k < main.size(); ++k) {
            const auto x = static_cast<float>(main[k]);
            ASSERT_EQ(value[begin + k],
                      dtype == DType::bf16 ? static_cast<float>(bf16_t(x)) : static_cast<float>(f16_t(x)));
            ASSERT_NEAR(main[k], drawn[k], std::abs(drawn[k]) * 0x1p-23);
            finer += main[k] != value[begin + k];
        }
        EXPECT_GT(finer, count * 9 / 10);
    }
}

TEST(Optimizer, NormsAreOfMainWeights) {
    ParamSet set;
    fill(set.add("a", 300, DType::bf16, DType::f32).value, wave(300, 1, 0.3));
    Exec exec{Device::cpu, &set.arena(), &test_pool()};
    Optimizer optimizer(make_adam({}), set.list(), set.arena(), exec);
    run_steps(set, optimizer, exec, 2);
    double of_main = 0, of_values = 0;
    for (const double x : values_of(optimizer.main_weights()[0])) of_main += x * x;
    for (const double x : values_of(set.list()[0]->value)) of_values += x * x;
    EXPECT_NEAR(norm_of(exec, optimizer.main_weights()), std::sqrt(of_main), 1e-12);
    EXPECT_GT(std::abs(std::sqrt(of_values) - std::sqrt(of_main)), 1e-6);
    EXPECT_EQ(norm_of(exec, optimizer.main_of({{set.list()[0], 100, 50}})),
              norm_of(exec, {optimizer.main_weights()[0].part(100, 50)}));
}

TEST(Optimizer, AGradientOfProductsIsLeftAndCountsAsZero) {
    ParamSet set;
    Param& product = set.add("a", 6, DType::f32, DType::f32);
    Param& other = set.add("b", 6, DType::f32, DType::f32);
    product.grad_by_product = true;
    for (Tensor* t : {&product.value, &product.grad}) *t = t->reshape({2, 3});
    Exec exec{Device::cpu, &set.arena(), &test_pool()};
    Optimizer optimizer(make_adam({}), set.list(), set.arena(), exec);
    fill(product.grad, {1, 2, 3, 4, 5, 6}), fill(other.grad, {1, 2, 3, 4, 5, 6});
    take_step(optimizer, exec, {.lr = 1e-3, .zero_grad = false});
    EXPECT_FALSE(product.grad_is_old);
    take_step(optimizer, exec, {.lr = 1e-3});
    EXPECT_EQ(values_of(other.grad), std::vector<double>(6, 0.0));
    EXPECT_TRUE(product.grad_is_old);
    EXPECT_FALSE(other.grad_is_old);
    // dyᵀ x with dy [1,2] = (1, 10), x [1,3] = (1, 2, 3)
    Tensor dy = exec.tensor(DType::f32, {1, 2}), x = exec.tensor(DType::f32, {1, 3});
    fill(dy, {1, 10}), fill(x, {1, 2, 3});
    add_product_grad(exec, product, dy, x);
    EXPECT_EQ(values_of(product.grad), (std::vector<double>{1, 2, 3, 10, 20, 30}));
    add_product_grad(exec, product, dy, x);
    EXPECT_EQ(values_of(product.grad), (std::vector<double>{2, 4, 6, 20, 40, 60}));
}

TEST(Optimizer, ListsItsStateByNameAndLeavesOutMainWeightsThatAreTheValues) {
    ParamSet f32, bf16;
    build(f32, DType::f32, DType::f32);
    build(bf16, DType::bf16, DType::f32);
    Exec exec{Device::cpu, &f32.arena(), &test_pool()};
    auto kinds = [](const Optimizer& o) {
        std::string text;
        for (const OptimizerTensor& t : o.state()) {
            if (t.param == "layers.0.norm1.weight") text += t.kind + " ";
        }
        return text;
    };
    EXPECT_EQ(kinds(Optimizer(make_adam({}), f32.list(), f32.arena(), exec)), "exp_avg exp_avg_sq ");
    EXPECT_EQ(kinds(Optimizer(make_adam({}), bf16.list(), bf16.arena(), exec)), "master exp_avg exp_avg_sq ");
    EXPECT_EQ(kinds(Optimizer(make_sgd(0.9), f32.list(), f32.arena(), exec)), "momentum_buffer ");
    EXPECT_EQ(kinds(Optimizer(make_sgd(0), f32.list(), f32.arena(), exec)), "");
}

TEST(Optimizer, DecayLeavesExcludedParametersAloneAndGradientsEndAtZero) {
    ParamSet set;
    Param& decayed = set.add("w", 3, DType::f64, DType::f64);
    Param& excluded = set.add("b", 3, DType::f64, DType::f64, false);
    fill(decayed.value, {1, 2, 3});
    fill(excluded.value, {1, 2, 3});
    fill(decayed.grad, {0, 0, 0});
    fill(excluded.grad, {0, 0, 0});
    Exec exec{Device::cpu, &set.arena(), &test_pool()};
    Optimizer optimizer(make_adam({}), set.list(), set.arena(), exec);
    take_step(optimizer, exec, {0.5, 0.1});
    EXPECT_EQ(values_of(excluded.value), (std::vector<double>{1, 2, 3}));
    EXPECT_NEAR(values_of(decayed.value)[2], 3 * (1 - 0.05), 1e-15);

    fill(decayed.grad, {1, 1, 1});
    take_step(optimizer, exec, {0.5, 0.1, 1, false});
    EXPECT_EQ(values_of(decayed.grad), (std::vector<double>{1, 1, 1}));
    take_step(optimizer, exec, {0.5, 0.1, 1, true});
    EXPECT_EQ(values_of(decayed.grad), (std::vector<double>{0, 0, 0}));
}

TEST(Optimizer, GradientFactorIsAMultiplicationOfTheGradient) {
    ParamSet plain, scaled;
    Param& a = plain.add("w", 100, DType::f32, DType::f32);
    Param& b = scaled.add("w", 100, DType::f32, DType::f32);
    fill(a.grad, wave(100, 1, 0));
    fill(b.grad, wave(100, 65536, 0));
    Exec exec{Device::cpu, &plain.arena(), &test_pool()};
    Optimizer x(make_adam({}), plain.list(), plain.arena(), exec),
        y(make_adam({}), scaled.list(), scaled.arena(), exec);
    take_step(x, exec, {1e-3, 0});
    take_step(y, exec, {1e-3, 0, 1.0 / 65536});
    EXPECT_TRUE(same_bits(a.value, b.value));
}

TEST(Optimizer, AcceptsGradientsInHalfPrecision) {
    ParamSet set;
    Param& p = set.add("w", 3000, DType::bf16, DType::bf16);
    Param& q = set.add("v", 3000, DType::bf16, DType::f32);
    fill(p.grad, wave(3000, 1, 0));
    fill(q.grad, values_of(p.grad));
    Exec exec{Device::cpu, &set.arena(), &test_pool()};
    Optimizer optimizer(make_adam({}), set.list(), set.arena(), exec);
    take_step(optimizer, exec, {1e-3, 0});
    EXPECT_TRUE(same_bits(p.value, q.value));
    EXPECT_EQ(values_of(p.grad), std::vector<double>(3000, 0.0));
}

TEST(Optimizer, SecondLearningRateForNamedParameters) {
    ParamSet set;
    Param& a = set.add("a", 1, DType::f64, DType::f64);
    Param& b = set.add("b", 1, DType::f64, DType::f64);
    fill(a.grad, {1});
    fill(b.grad, {1});
    Exec exec{Device::cpu, &set.arena(), &test_pool()};
    Optimizer optimizer(make_sgd(0), set.list(), set.arena(), exec);
    optimizer.use_decoupled_lr({&b});
    take_step(optimizer, exec, {0.5, 0, 1, false, 0.25});
    EXPECT_EQ(values_of(a.value)[0], -0.5);
    EXPECT_EQ(values_of(b.value)[0], -0.25);
}

TEST(Optimizer, ClippingIsTheFactorOfTheMeasuredNorm) {
    ParamSet clipped, scaled;
    build(clipped, DType::bf16, DType::f32);
    build(scaled, DType::bf16, DType::f32);
    Exec exec{Device::cpu, &clipped.arena(), &test_pool()};
    Optimizer a(make_adam({}), clipped.list(), clipped.arena(), exec),
        b(make_adam({}), scaled.list(), scaled.arena(), exec);
    const double loss_scale = 1.0 / 1024;
    for (double size : {3.0, 1e-6}) {  // above the bound and below
        for (ParamSet* set : {&clipped, &scaled})
            for (Param* p : set->list()) fill(p->grad, wave(p->grad.numel(), size, 0));
        const double norm = measure_grads(exec, whole_slices(scaled.list())).norm();
        const double factor = loss_scale * clip_factor(norm * loss_scale, 0.25);
        EXPECT_EQ(factor == loss_scale, size < 1);
        a.measure(exec);
        a.step(exec, {.lr = 1e-2, .weight_decay = 0.1, .grad_factor = loss_scale, .clip_norm = 0.25});
        EXPECT_EQ(a.finish(exec).grads.norm(), norm);
        take_step(b, exec, {.lr = 1e-2, .weight_decay = 0.1, .grad_factor = factor});
        for (std::size_t i = 0; i < a.main_weights().size(); ++i)
            EXPECT_TRUE(same_bits(a.main_weights()[i], b.main_weights()[i]));
    }
}

TEST(Optimizer, SkipsAStepWhoseGradientsAreNotFiniteIfAsked) {
    ParamSet set;
    build(set, DType::bf16, DType::f32);
    Exec exec{Device::cpu, &set.arena(), &test_pool()};
    Optimizer optimizer(make_adam({}), set.list(), set.arena(), exec);
    run_steps(set, optimizer, exec, 2);
    std::vector<std::vector<double>> before;
    for (const OptimizerTensor& t : optimizer.state()) before.push_back(values_of(t.tensor));
    const auto weight = values_of(set.list()[0]->value);
    auto bad_grads = [&] {
        for (Param* p : set.list()) fill(p->grad, wave(p->grad.numel(), 3, 0));
        set.list()[1]->grad.ptr<float>()[130] = NAN;
        set.list()[2]->grad.ptr<float>()[0] = INFINITY;
        optimizer.measure(exec);
    };
    bad_grads();
    optimizer.step(exec, {.lr = 1, .clip_norm = 1, .skip_not_finite = true});
    StepResult result = optimizer.finish(exec);
    EXPECT_TRUE(result.skipped);
    EXPECT_EQ(result.grads.not_finite, set.list()[1]);
    EXPECT_EQ(optimizer.steps(), 2);
    EXPECT_EQ(values_of(set.list()[0]->value), weight);
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(values_of(optimizer.state()[i].tensor), before[i]);
    for (Param* p : set.list()) EXPECT_EQ(values_of(p->grad), std::vector<double>(p->grad.numel(), 0.0));

    bad_grads();
    optimizer.step(exec, {.lr = 1, .zero_grad = false, .skip_not_finite = true});
    EXPECT_TRUE(optimizer.finish(exec).skipped);
    EXPECT_NE(values_of(set.list()[0]->grad)[1], 0) << "zeroed though not asked to";

    bad_grads();
    optimizer.step(exec, {.lr = 1});
    result = optimizer.finish(exec);
    EXPECT_FALSE(result.skipped) << "not asked to";
    EXPECT_EQ(optimizer.steps(), 3);
    EXPECT_TRUE(std::isnan(values_of(set.list()[1]->value)[130]));
}

TEST(Optimizer, RanksAddUpWhatTheyFindAndSkipAlike) {
    run_on_threads(3, [](Comm& ranks) {
        ParamSet set;
        Param& p = set.add("w", 2, DType::f32, DType::f32);
        ThreadPool pool(1);
        Exec exec{Device::cpu, &set.arena(), &pool};
        Optimizer optimizer(make_sgd(0), Optimizer::Share{{{&p, 0, 2}}, {{&p, 0, 2}}, &ranks}, set.arena(), exec);
        const auto step = [&](double grad) {
            fill(p.grad, {grad, 0});
            optimizer.measure(exec);
            optimizer.step(exec, {.lr = 1, .clip_norm = 1, .skip_not_finite = true});
            return optimizer.finish(exec);
        };
        const StepResult finite = step(ranks.rank() + 1);
        EXPECT_EQ(finite.grads.sum_squares, 1 + 4 + 9);
        EXPECT_EQ(finite.grads.zeros, 3);
        EXPECT_NEAR(values_of(p.value)[0], -(ranks.rank() + 1) / std::sqrt(14), 1e-6);
        const StepResult bad = step(ranks.rank() == 1 ? INFINITY : 1);
        EXPECT_TRUE(bad.skipped);
        EXPECT_EQ(bad.grads.not_finite, ranks.rank() == 1 ? &p : nullptr);
        EXPECT_EQ(bad.grads.finite_elsewhere, ranks.rank() == 1);
        EXPECT_FALSE(step(1).skipped);
    });
}

/// The first and last parameter are in group 2, the second is in 0, and this rank has nothing of group 1.
Optimizer::Share in_groups(const ParamSet& set) {
    return {whole_slices(set.list()), whole_slices(set.list()), nullptr, {3, {2, 0, 2}}};
}

TEST(Optimizer, GroupsGiveTheSameBitsAsAllAtOnce) {
    for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
        ParamSet together, apart;
        build(together, dtype, acc_dtype(dtype));
        build(apart, dtype, acc_dtype(dtype));
        Exec exec{Device::cpu, &together.arena(), &test_pool()};
        Optimizer a(make_adam({}), together.list(), together.arena(), exec);
        Optimizer b(make_adam({}), in_groups(apart), apart.arena(), exec);
        run_steps(together, a, exec, 3);
        run_steps(apart, b, exec, 3);
        for (std::size_t i = 0; i < together.list().size(); ++i) {
            EXPECT_TRUE(same_bits(together.list()[i]->value, apart.list()[i]->value)) << together.list()[i]->name;
            EXPECT_TRUE(same_bits(together.list()[i]->grad, apart.list()[i]->grad)) << together.list()[i]->name;
        }
        ASSERT_EQ(a.state().size(), b.state().size());
        for (std::size_t i = 0; i < a.state().size(); ++i) {
            EXPECT_EQ(a.state()[i].param, b.state()[i].param);
            EXPECT_TRUE(same_bits(a.state()[i].tensor, b.state()[i].tensor)) << a.state()[i].kind;
        }
    }
}

TEST(Optimizer, GroupsAreToldOfOneAfterTheOther) {
    ParamSet set;
    build(set, DType::bf16, DType::f32);
    Exec exec{Device::cpu, &set.arena(), &test_pool()};
    Optimizer optimizer(make_sgd(0), in_groups(set), set.arena(), exec);
    std::vector<std::vector<double>> before;
    for (const Param* p : set.list()) before.push_back(values_of(p->value));
    const auto step = [&](double grad) {
        std::vector<std::string> seen;
        for (Param* p : set.list()) fill(p->grad, std::vector<double>(static_cast<std::size_t>(p->grad.numel()), grad));
        optimizer.measure(exec);
        optimizer.step(exec, {.lr = 1, .skip_not_finite = true}, [&](int group) {
            std::string now = cat(group, ":");
            for (std::size_t i = 0; i < before.size(); ++i) {
                const Param& p = *set.list()[i];
                now += values_of(p.value) == before[i] ? " old" : " new";
                now += values_of(p.grad)[7] == 0 ? "" : "+grad";
            }
            seen.push_back(now);
        });
        EXPECT_EQ(optimizer.finish(exec).skipped, !std::isfinite(grad));
        return seen;
    };
    EXPECT_EQ(step(INFINITY),
              (std::vector<std::string>{"0: old+grad old old+grad", "1: old+grad old old+grad", "2: old old old"}));
    EXPECT_EQ(step(1),
              (std::vector<std::string>{"0: old+grad new old+grad", "1: old+grad new old+grad", "2: new new new"}));
}

TEST(Optimizer, GroupsThatAreNotThereAreErrors) {
    ParamSet set;
    build(set, DType::f32, DType::f32);
    Exec exec{Device::cpu, &set.arena(), &test_pool()};
    for (const SliceGroups& groups : {SliceGroups{2, {0, 1, 2}}, SliceGroups{2, {0, 1}}}) {
        Optimizer::Share share = in_groups(set);
        share.groups = groups;
        EXPECT_THROW(Optimizer(make_sgd(0), share, set.arena(), exec), Error);
    }
}

TEST(Optimizer, CallsOutOfOrderAreErrors) {
    ParamSet set;
    build(set, DType::f32, DType::f32);
    Exec exec{Device::cpu, &set.arena(), &test_pool()};
    Optimizer optimizer(make_sgd(0), set.list(), set.arena(), exec);
    EXPECT_THROW(optimizer.finish(exec), Error);
    EXPECT_THROW(optimizer.step(exec, {.clip_norm = 1}), Error) << "clips by a norm that was not measured";
    EXPECT_THROW(optimizer.step(exec, {.skip_not_finite = true}), Error);
    optimizer.step(exec, {.lr = 1});
    EXPECT_THROW(optimizer.step(exec, {.lr = 1}), Error) << "unfinished";
    EXPECT_THROW(optimizer.measure(exec), Error) << "unfinished";
    EXPECT_EQ(optimizer.finish(exec).grads.sum_squares, 0);
    EXPECT_THROW(optimizer.step(exec, {.clip_norm = 1}), Error) << "measured for an earlier step";
}

TEST(Clip, NormZerosAndTheFirstBadParameter) {
    ParamSet set;
    Param& a = set.add("a", piece_elements + 3, DType::f32, DType::f32);
    Param& b = set.add("b", 4, DType::f32, DType::f32);
    fill(b.grad, {3, 4, 0, 12});
    a.grad.ptr<float>()[piece_elements + 1] = 84;
    Exec exec{Device::cpu, &set.arena(), &test_pool()};
    GradStats stats = measure_grads(exec, whole_slices(set.list()));
    EXPECT_EQ(stats.norm(), 85);
    EXPECT_EQ(stats.zeros, piece_elements + 3);
    EXPECT_TRUE(stats.finite());
    b.grad.ptr<float>()[2] = INFINITY;
    EXPECT_EQ(measure_grads(exec, whole_slices(set.list())).not_finite, &b);
    a.grad.ptr<float>()[piece_elements + 1] = NAN;
    EXPECT_EQ(measure_grads(exec, whole_slices(set.list())).not_finite, &a);
    // Squares that would overflow in fp32 are no infinity.
    a.grad.ptr<float>()[piece_elements + 1] = 3e38f;
    b.grad.ptr<float>()[2] = 0;
    stats = measure_grads(exec, whole_slices(set.list()));
    EXPECT_TRUE(stats.finite());
    EXPECT_NEAR(stats.norm(), 3e38, 1e32);
}

TEST(Clip, FactorIsOneBelowTheBoundAndWhenOff) {
    EXPECT_EQ(clip_factor(0.5, 1.0), 1);
    EXPECT_EQ(clip_factor(100, 0), 1);
    EXPECT_DOUBLE_EQ(clip_factor(4, 1.0), 1.0 / (4 + 1e-6));
    EXPECT_DOUBLE_EQ(clip_factor(1.0, 1.0), 1.0 / (1 + 1e-6));
}

}  // namespace
}  // namespace tera
