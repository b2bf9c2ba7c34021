// Ten steps of every rule against PyTorch's optimizers, and AdEMAMix against its formulas written out.
#include <gtest/gtest.h>

#include <cmath>

#include "optim_fixture.h"

namespace tera {
namespace {

struct GoldenCase {
    const char* name;
    std::unique_ptr<UpdateRule> (*make)();
    double weight_decay, clip;
    DType dtype;
    double bound;
};

std::unique_ptr<UpdateRule> adamw() { return make_adam({0.9, 0.95, 1e-8, true}); }
std::unique_ptr<UpdateRule> adamw_clipped() { return make_adam({0.9, 0.999, 1e-6, true}); }
std::unique_ptr<UpdateRule> adam_l2() { return make_adam({0.8, 0.99, 1e-8, false}); }
std::unique_ptr<UpdateRule> sgd() { return make_sgd(0.9); }
std::unique_ptr<UpdateRule> sgd_plain() { return make_sgd(0); }

class GoldenUpdates : public testing::TestWithParam<GoldenCase> {};

// Sums of gradients of size 1 to 10 that cancel: what counts is their size, not that of the sum.
void expect_close(const std::vector<double>& got, const std::vector<double>& want, double bound,
                  const std::string& what) {
    ASSERT_EQ(got.size(), want.size()) << what;
    for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_LE(std::abs(got[i] - want[i]), bound * (1 + std::abs(want[i]))) << what << " element " << i;
    }
}

TEST_P(GoldenUpdates, TenStepsAgreeWithPyTorch) {
    const GoldenCase& c = GetParam();
    const auto& golden = golden_updates();
    ASSERT_TRUE(golden.count("start")) << "tests/golden/optim/updates.txt is missing";
    const auto& start = golden.at("start");
    const auto& grads = golden.at("grads");
    ParamSet set;
    Param& p = set.add("w", static_cast<std::int64_t>(start.size()), c.dtype, c.dtype);
    fill(p.value, start);
    Exec exec{Device::cpu, &set.arena(), &test_pool()};
    Optimizer optimizer(c.make(), set.list(), set.arena(), exec);
    const std::string prefix = std::string(c.name) + "." + name_of(c.dtype) + ".";
    for (std::size_t t = 0; t < golden.at("rates").size(); ++t) {
        fill(p.grad, {grads.begin() + static_cast<std::ptrdiff_t>(t * start.size()),
                      grads.begin() + static_cast<std::ptrdiff_t>((t + 1) * start.size())});
        optimizer.measure(exec);
        optimizer.step(exec, {.lr = golden.at("rates")[t], .weight_decay = c.weight_decay, .clip_norm = c.clip});
        const double norm = optimizer.finish(exec).grads.norm();
        if (c.clip > 0) {
            EXPECT_NEAR(norm, golden.at(prefix + "norms")[t], c.bound * norm);
        }
    }
    EXPECT_EQ(optimizer.steps(), 10);
    expect_close(values_of(p.value), golden.at(prefix + "weight"), c.bound, prefix + "weight");
    std::size_t compared = 0;
    for (const OptimizerTensor& t : optimizer.state()) {
        EXPECT_EQ(t.param, "w");
        ASSERT_TRUE(golden.count(prefix + t.kind)) << t.kind;
        expect_close(values_of(t.tensor), golden.at(prefix + t.kind), c.bound, prefix + t.kind);
        ++compared;
    }
    EXPECT_EQ(compared, c.make()->states().size());
}

const GoldenCase golden_cases[] = {
    {"adamw", adamw, 0.1, 0, DType::f64, 1e-14},
    {"adamw", adamw, 0.1, 0, DType::f32, 1e-6},
    {"adamw_clipped", adamw_clipped, 0.01, 1.0, DType::f64, 1e-13},
    {"adamw_clipped", adamw_clipped, 0.01, 1.0, DType::f32, 1e-6},
    {"adam_l2", adam_l2, 0.1, 0, DType::f64, 1e-14},
    {"adam_l2", adam_l2, 0.1, 0, DType::f32, 1e-6},
    {"sgd", sgd, 0.1, 0, DType::f64, 1e-14},
    {"sgd", sgd, 0.1, 0, DType::f32, 1e-6},
    {"sgd_plain", sgd_plain, 0.1, 0, DType::f64, 1e-14},
    {"sgd_plain", sgd_plain, 0.1, 0, DType::f32, 1e-6},
};
INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenUpdates, testing::ValuesIn(golden_cases), [](const auto& given) {
    return std::string(given.param.name) + "_" + name_of(given.param.dtype);
});

TEST(Adam, FirstStepMovesByTheLearningRate) {
    // t = 1: m̂ = g, v̂ = g², so the change is lr·sign(g), plus lr·wd·w.
    ParamSet set;
    Param& p = set.add("w", 3, DType::f64, DType::f64);
    fill(p.value, {1, 2, -4});
    fill(p.grad, {5, -1e-3, 7});
    Exec exec{Device::cpu, &set.arena(), &test_pool()};
    Optimizer optimizer(make_adam({0.9, 0.999, 0, true}), set.list(), set.arena(), exec);
    take_step(optimizer, exec, {0.1, 0.01});
    const std::vector<double> w = values_of(p.value);
    EXPECT_NEAR(w[0], 1 - 0.1 * (1 + 0.01 * 1), 1e-15);
    EXPECT_NEAR(w[1], 2 - 0.1 * (-1 + 0.01 * 2), 1e-15);
    EXPECT_NEAR(w[2], -4 - 0.1 * (1 + 0.01 * -4), 1e-15);
}

TEST(AdEmaMix, FollowsItsFormulas) {
    const AdEmaMixConfig config{0.9, 0.99, 0.9999, 1e-8, 8, 20, 15};
    ParamSet set;
    Param& p = set.add("w", 1, DType::f64, DType::f64);
    fill(p.value, {0.7});
    Exec exec{Device::cpu, &set.arena(), &test_pool()};
    Optimizer optimizer(make_ademamix(config), set.list(), set.arena(), exec);
    double w = 0.7, fast = 0, slow = 0, v = 0;
    auto f = [](double b) { return std::log(0.5) / std::log(b + 1e-8) - 1; };
    for (int t = 1; t <= 30; ++t) {
        const double g = std::sin(t), lr = 1e-3 * t, wd = 0.1;
        const double alpha = t < 15 ? 8.0 * t / 15 : 8;
        const double half = (1 - t / 20.0) * f(0.9) + t / 20.0 * f(0.9999);
        const double b3 = t < 20 ? std::pow(0.5, 1 / (half + 1)) : 0.9999;
        fast = 0.9 * fast + 0.1 * g;
        slow = b3 * slow + (1 - b3) * g;
        v = 0.99 * v + 0.01 * g * g;
        w -= lr * ((fast / (1 - std::pow(0.9, t)) + alpha * slow) /
                       (std::sqrt(v) / std::sqrt(1 - std::pow(0.99, t)) + 1e-8) +
                   wd * w);
        fill(p.grad, {g});
        take_step(optimizer, exec, {lr, wd});
        ASSERT_NEAR(values_of(p.value)[0], w, 1e-12) << "step " << t;
    }
    EXPECT_EQ(AdEmaMixConfig{}.alpha_at(1), 5);
    EXPECT_EQ(AdEmaMixConfig{}.beta3_at(1), 0.999);
}

}  // namespace
}  // namespace tera
