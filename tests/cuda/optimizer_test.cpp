// The optimizer on the GPU against the CPU: every rule, every pair of dtypes, clipping, skipping, sizes no vector
// divides, sentinels around values and gradients.
#include "optim/optimizer.h"

#include <cmath>

#include "cuda/cuda_world.h"
#include "train/host_rows.h"

namespace tera::test {
namespace {

struct Rule {
    const char* name;
    std::unique_ptr<UpdateRule> (*make)();
};
const Rule rules[] = {
    {"adam",
     [] {
         return make_adam({0.9, 0.95, 1e-8, true});
     }},
    {"adam_l2",
     [] {
         return make_adam({0.9, 0.95, 1e-6, false});
     }},
    {"sgd", [] { return make_sgd(0); }},
    {"sgd_momentum", [] { return make_sgd(0.9); }},
    {"ademamix",
     [] {
         return make_ademamix({0.9, 0.99, 0.9999, 1e-8, 8, 20, 15});
     }},
};

struct Types {
    DType value, grad;
};
const Types types[] = {{DType::f64, DType::f64},   {DType::f32, DType::f32}, {DType::bf16, DType::f32},
                       {DType::bf16, DType::bf16}, {DType::f16, DType::f32}, {DType::f16, DType::f16},
                       {DType::f32, DType::bf16}};

const std::int64_t sizes[] = {3 * 16384 + 77, 131, 16384, 1, 16385, 4, 2 * 16384 + 6};

/// On whichever device they are.
std::vector<double> numbers(const Exec& exec, const SplitTensor& t) { return values(HostView(exec, t).tensor()); }

/// The same parameters on the CPU and on the GPU.
struct Twins {
    World w;
    CudaWorld g;
    Types type;
    std::vector<std::unique_ptr<Param>> cpu, gpu;
    std::unique_ptr<Optimizer> on_cpu, on_gpu;

    Twins(const Types& t, const Rule& rule) : type(t) {
        for (std::int64_t n : sizes) {
            bool decay = n != 131;
            std::string name = cat("p", n);
            cpu.push_back(std::make_unique<Param>(Param{name, {n}, {}, {}, decay, {}}));
            cpu.back()->value = w.random(type.value, {n}), cpu.back()->grad = w.zeros(type.grad, {n});
            gpu.push_back(std::make_unique<Param>(*cpu.back()));
            gpu.back()->value = g.up(cpu.back()->value), gpu.back()->grad = g.up(cpu.back()->grad);
        }
        on_cpu = std::make_unique<Optimizer>(rule.make(), list(cpu), w.store, w.ctx.temp);
        on_gpu = std::make_unique<Optimizer>(rule.make(), list(gpu), g.store, g.ctx.temp);
        on_cpu->use_decoupled_lr({cpu[2].get()});
        on_gpu->use_decoupled_lr({gpu[2].get()});
    }
    static std::vector<Param*> list(const std::vector<std::unique_ptr<Param>>& params) {
        std::vector<Param*> out;
        for (auto& p : params) out.push_back(p.get());
        return out;
    }
    void fill_grads(double scale) {
        for (std::size_t i = 0; i < cpu.size(); ++i) {
            w.fill_random(cpu[i]->grad, scale);
            copy_from_host(g.ctx.temp, gpu[i]->grad, cpu[i]->grad.data);
        }
    }
    void set_grad(std::size_t param, std::int64_t element, float value) {
        dispatch_float(type.grad, [&](auto zero) {
            using T = decltype(zero);
            cpu[param]->grad.ptr<T>()[element] = static_cast<T>(value);
        });
        copy_from_host(g.ctx.temp, gpu[param]->grad, cpu[param]->grad.data);
    }
    StepResult step(Optimizer& optimizer, const Exec& exec, const StepArgs& args) {
        optimizer.measure(exec);
        optimizer.step(exec, args);
        return optimizer.finish(exec);
    }
    void step_both(const StepArgs& args) {
        StepResult c = step(*on_cpu, w.ctx.temp, args), d = step(*on_gpu, g.ctx.temp, args);
        EXPECT_EQ(c.skipped, d.skipped);
        EXPECT_EQ(c.grads.zeros, d.grads.zeros);
        EXPECT_EQ(c.grads.finite(), d.grads.finite());
        if (c.grads.finite()) {
            EXPECT_NEAR(c.grads.norm(), d.grads.norm(), 1e-13 * c.grads.norm());
        } else {
            EXPECT_EQ(c.grads.not_finite->name, d.grads.not_finite->name);
        }
        EXPECT_EQ(on_cpu->steps(), on_gpu->steps());
    }
    void expect_alike(const std::string& what) {
        double bound = type.value == DType::f64 ? 1e-14 : 1e-6;
        std::vector<OptimizerTensor> c = on_cpu->state(), d = on_gpu->state();
        ASSERT_EQ(c.size(), d.size());
        for (std::size_t i = 0; i < c.size(); ++i)
            EXPECT_LT(worst(numbers(g.ctx.temp, d[i].tensor), numbers(w.ctx.temp, c[i].tensor)), bound)
                << what << " " << c[i].param << " " << c[i].kind;
        for (std::size_t i = 0; i < cpu.size(); ++i) {
            std::vector<double> main = numbers(g.ctx.temp, on_gpu->main_weights()[i]), value = g.down(gpu[i]->value);
            EXPECT_LT(worst(main, numbers(w.ctx.temp, on_cpu->main_weights()[i])), bound)
                << what << " " << cpu[i]->name;
            dispatch_float(type.value, [&](auto zero) {
                using T = decltype(zero);
                const auto rounded = [](double x) -> double {
                    if constexpr (std::is_same_v<T, bf16_t>) return joined({split(static_cast<float>(x)).value, 0});
                    return static_cast<acc_t<T>>(static_cast<T>(static_cast<acc_t<T>>(x)));
                };
                for (std::size_t k = 0; k < main.size(); ++k)
                    ASSERT_EQ(value[k], rounded(main[k]))
                        << what << " " << cpu[i]->name << ": the value is not the rounded main weight, element " << k;
            });
            EXPECT_EQ(g.down(gpu[i]->grad), values(cpu[i]->grad)) << what << " gradient of " << cpu[i]->name;
        }
        g.expect_sentinels();
    }
};

class CudaOptimizer : public testing::TestWithParam<std::tuple<Rule, Types>> {
  protected:
    void SetUp() override { NEED_GPU(); }
};
std::string case_name(const testing::TestParamInfo<std::tuple<Rule, Types>>& given) {
    const auto& [rule, type] = given.param;
    return cat(rule.name, "_", name_of(type.value), "_", name_of(type.grad));
}
INSTANTIATE_TEST_SUITE_P(RulesAndTypes, CudaOptimizer,
                         testing::Combine(testing::ValuesIn(rules), testing::ValuesIn(types)), case_name);

TEST_P(CudaOptimizer, steps_match_the_cpu) {
    auto& [rule, type] = GetParam();
    Twins t(type, rule);
    t.expect_alike("at first");
    t.fill_grads(3);
    t.set_grad(0, 49152, 0);
    t.step_both({.lr = 1e-2, .weight_decay = 0.1, .grad_factor = 1.0 / 1024, .clip_norm = 0.1});
    t.expect_alike("clipped");
    t.fill_grads(0.5);
    t.step_both({.lr = 1e-2, .weight_decay = 0.1, .zero_grad = false, .decoupled_lr = 1e-3, .clip_norm = 1e9});
    t.expect_alike("not clipped, gradients kept");
    t.fill_grads(0.5);
    t.step_both({.lr = 3e-3, .weight_decay = 0.1, .grad_factor = 0.5, .skip_not_finite = true});
    t.expect_alike("finite, though it might have been skipped");
}

TEST_P(CudaOptimizer, a_gradient_that_is_not_finite) {
    auto& [rule, type] = GetParam();
    Twins t(type, rule);
    t.fill_grads(1);
    t.step_both({.lr = 1e-2});
    t.fill_grads(1);
    t.set_grad(4, 16384, INFINITY);
    t.step_both({.lr = 1, .zero_grad = false, .clip_norm = 1, .skip_not_finite = true});
    t.expect_alike("skipped, gradients kept");
    t.set_grad(1, 130, NAN);
    t.step_both({.lr = 1, .clip_norm = 1, .skip_not_finite = true});
    EXPECT_EQ(t.on_gpu->steps(), 1);
    t.expect_alike("skipped, gradients zeroed");
    t.fill_grads(1);
    t.step_both({.lr = 1e-2, .weight_decay = 0.1, .clip_norm = 1, .skip_not_finite = true});
    EXPECT_EQ(t.on_gpu->steps(), 2);
    t.expect_alike("after a skipped step");
}

TEST(CudaOptimizerMore, the_same_bits_twice) {
    NEED_GPU();
    std::vector<std::vector<double>> runs;
    for (int run = 0; run < 2; ++run) {
        Twins t({DType::bf16, DType::f32}, rules[0]);
        for (int s = 0; s < 3; ++s) {
            t.fill_grads(2);
            runs.push_back({t.step(*t.on_gpu, t.g.ctx.temp, {.lr = 1e-2, .clip_norm = 1}).grads.sum_squares});
        }
        for (auto& o : t.on_gpu->state()) runs.push_back(numbers(t.g.ctx.temp, o.tensor));
    }
    for (std::size_t i = 0; i < runs.size() / 2; ++i) EXPECT_EQ(runs[i], runs[i + runs.size() / 2]);
}

TEST(CudaOptimizerMore, groups_give_the_same_bits_as_all_at_once) {
    NEED_GPU();
    std::vector<std::vector<double>> runs;
    for (const SliceGroups& groups : {SliceGroups{}, SliceGroups{4, {3, 0, 3, 1, 0, 1, 3}}}) {
        Twins t({DType::bf16, DType::f32}, rules[0]);
        const auto all = whole_slices(Twins::list(t.gpu));
        t.on_gpu = std::make_unique<Optimizer>(rules[0].make(), Optimizer::Share{all, all, nullptr, groups}, t.g.store,
                                               t.g.ctx.temp);
        std::vector<int> told;
        for (const float bad : {0.0f, INFINITY, 0.0f}) {
            t.fill_grads(2);
            t.set_grad(1, 5, bad);
            t.on_gpu->measure(t.g.ctx.temp);
            t.on_gpu->step(t.g.ctx.temp, {.lr = 1e-2, .clip_norm = 1, .skip_not_finite = true},
                           [&](int group) { told.push_back(group); });
            EXPECT_EQ(t.on_gpu->finish(t.g.ctx.temp).skipped, bad != 0);
            for (const auto& p : t.gpu) runs.push_back(t.g.down(p->grad));
        }
        ASSERT_EQ(told.size(), 3 * static_cast<std::size_t>(groups.count));
        for (std::size_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i], static_cast<int>(i) % groups.count);
        for (const auto& p : t.gpu) runs.push_back(t.g.down(p->value));
        for (auto& o : t.on_gpu->state()) runs.push_back(numbers(t.g.ctx.temp, o.tensor));
        t.g.expect_sentinels();
    }
    for (std::size_t i = 0; i < runs.size() / 2; ++i) EXPECT_EQ(runs[i], runs[i + runs.size() / 2]);
}

TEST(CudaOptimizerMore, norms_and_copies) {
    NEED_GPU();
    Twins t({DType::bf16, DType::f32}, rules[0]);
    t.fill_grads(1);
    t.step_both({.lr = 1e-2});
    double squares = 0, of_values = 0;
    for (std::size_t i = 0; i < t.gpu.size(); ++i) {
        for (const double x : numbers(t.g.ctx.temp, t.on_gpu->main_weights()[i])) squares += x * x;
        for (const double x : t.g.down(t.gpu[i]->value)) of_values += x * x;
    }
    EXPECT_NEAR(norm_of(t.g.ctx.temp, t.on_gpu->main_weights()), std::sqrt(squares), 1e-12 * std::sqrt(squares));
    EXPECT_GT(std::abs(squares - of_values), 1e-9 * squares) << "main weights are their values";
    t.fill_grads(1);
    t.set_grad(5, 2, NAN);
    EXPECT_EQ(measure_grads(t.g.ctx.temp, whole_slices(Twins::list(t.gpu))).not_finite, t.gpu[5].get());
    Tensor zeros = t.w.zeros(DType::bf16, t.gpu[0]->value.shape);
    copy_from_host(t.g.ctx.temp, t.gpu[0]->value, zeros.data);
    t.on_gpu->copy_values_to_main(t.g.ctx.temp);
    EXPECT_EQ(numbers(t.g.ctx.temp, t.on_gpu->main_weights()[0]), values(zeros));
    t.g.expect_sentinels();
}

TEST(CudaOptimizerMore, draws_what_the_cpu_draws) {
    NEED_GPU();
    for (const DType dtype : {DType::bf16, DType::f16}) {
        Twins t({dtype, DType::f32}, rules[0]);
        for (const auto& all : {&t.cpu, &t.gpu})
            for (const auto& p : *all) p->init = {Init::Kind::normal, 0.02};
        init_params(Twins::list(t.cpu), t.w.ctx.temp, 7);
        init_params(Twins::list(t.gpu), t.g.ctx.temp, 7);
        t.on_cpu->draw_main(t.w.ctx.temp, 7);
        t.on_gpu->draw_main(t.g.ctx.temp, 7);
        for (std::size_t i = 0; i < t.cpu.size(); ++i) {
            const auto main = numbers(t.g.ctx.temp, t.on_gpu->main_weights()[i]);
            EXPECT_EQ(main, numbers(t.w.ctx.temp, t.on_cpu->main_weights()[i]));
            if (main.size() > 100) {
                EXPECT_NE(main, t.g.down(t.gpu[i]->value)) << "not finer than the values";
            }
        }
        t.g.expect_sentinels();
    }
}

TEST(CudaOptimizerMore, the_host_need_not_measure) {
    NEED_GPU();
    Twins t({DType::f32, DType::f32}, rules[2]);
    t.fill_grads(1);
    for (auto [o, exec] : {std::pair{t.on_cpu.get(), t.w.ctx.temp}, {t.on_gpu.get(), t.g.ctx.temp}}) {
        o->step(exec, {.lr = 0.5, .grad_factor = 0.25});
        EXPECT_EQ(o->finish(exec).grads.sum_squares, 0);
    }
    t.expect_alike("without measure");
}

}  // namespace
}  // namespace tera::test
