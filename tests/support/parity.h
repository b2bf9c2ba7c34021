// The same training on any layout of ranks: every gradient of the first step and every weight after the last, gathered
// into whole tensors by name, in f64.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <string>

#include "comm/thread_comm.h"
#include "parallel/layer_plan.h"
#include "support/models.h"
#include "train/evaluate.h"
#include "train/train_step.h"

namespace tera::test {

struct Layout {
    MeshShape mesh;
    bool sequence_parallel = false;
    bool distributed_optimizer = false;
    int chunks = 1;                       ///< of each pipeline stage
    std::int64_t first_stage_layers = 0;  ///< 0: an even split
    RecomputeConfig recompute = {};

    std::string name() const {
        std::string text = cat("tp", mesh.tp, sequence_parallel ? "sp" : "", "_cp", mesh.cp, "_dp", mesh.dp,
                               distributed_optimizer ? "zero" : "", "_pp", mesh.pp, chunks > 1 ? cat("x", chunks) : "");
        constexpr const char* kinds[] = {"", "_selective", "_uniform", "_block"};
        return text + kinds[static_cast<int>(recompute.kind)];
    }
};

struct Training {
    ModelConfig model;
    std::int64_t S = 8, B = 2;
    int micro_batches = 4;  ///< of a step, over all ranks
    int steps = 3;
    bool documents = false, per_token_loss = false;
    double clip = 1;
};

/// A whole tensor, put together from the ranks' pieces.
class WholeTensors {
  public:
    /// Elements that several ranks hold must be the same bits on all of them.
    void put(const ParamSlice& slice, const Tensor& elements) {
        const Param& p = *slice.param;
        const std::lock_guard lock(mutex_);
        auto& whole = tensors_[p.name];
        if (whole.empty())
            whole.assign(static_cast<std::size_t>(p.full_shape.numel()), std::numeric_limits<double>::quiet_NaN());
        for (const ElementRun& run : runs_of(slice))
            for (std::int64_t i = 0; i < run.count; ++i) {
                double& to = whole[static_cast<std::size_t>(run.full + i)];
                const double x = elements.ptr<double>()[run.local + i];
                if (!std::isnan(to) && to != x) differing_.insert({p.name, std::abs(to - x)});
                to = x;
            }
    }
    const std::map<std::string, std::vector<double>>& all() const { return tensors_; }
    /// Tensors of which two ranks held different values.
    const std::map<std::string, double>& differing() const { return differing_; }

  private:
    std::mutex mutex_;
    std::map<std::string, std::vector<double>> tensors_;
    std::map<std::string, double> differing_;
};

struct ParityResult {
    WholeTensors grads, weights;
    std::vector<StepOutcome> steps;
    LossSum evaluation;

    /// Every rank must have seen the same.
    void add(int step, const StepOutcome& outcome) {
        const std::lock_guard lock(mutex);
        if (static_cast<int>(steps.size()) == step) steps.push_back(outcome);
        const StepOutcome& first = steps[static_cast<std::size_t>(step)];
        agreed = agreed && first.loss.loss == outcome.loss.loss && first.grad_norm == outcome.grad_norm &&
                 first.grad_zeros == outcome.grad_zeros && first.skipped == outcome.skipped;
    }
    bool agreed = true;
    std::mutex mutex;
};

/// The micro-batches of one step, the same for every layout.
inline std::vector<TestBatch> batches_of(const Training& t, int step) {
    std::vector<TestBatch> all;
    for (int i = 0; i < t.micro_batches; ++i) {
        World w(1);
        w.engine.seed(static_cast<std::uint64_t>(step * 100 + i));
        all.emplace_back(w, t.S, t.B, static_cast<std::int32_t>(t.model.true_vocab));
        TestBatch& batch = all.back();
        if (t.documents) batch.cut_documents(static_cast<std::int32_t>(t.S / 2 + i % 2 + 1));
        if (i % 2) batch.mask[0] = 0;  // so that micro-batches count different numbers of tokens
        for (std::int64_t b = 0; b < t.B; ++b)
            batch.sample[static_cast<std::size_t>(b)] = (step * t.micro_batches + i) * t.B + b;
    }
    return all;
}

/// This stage's slices of the model, one for each chunk.
inline std::vector<ModelSlice> slices_of(const ModelConfig& model, const Layout& layout, int stage) {
    const int P = layout.mesh.pp;
    LayerPlanRequest request;
    request.layers = model.layers, request.stages = P, request.chunks = layout.chunks;
    if (layout.first_stage_layers > 0) request.first_stage = layout.first_stage_layers;
    const LayerPlan plan = plan_layers(request);
    std::vector<ModelSlice> slices;
    for (int c = 0; c < layout.chunks; ++c) {
        const LayerRange range = plan.stages[static_cast<std::size_t>(stage)][static_cast<std::size_t>(c)];
        slices.push_back({range.first, range.count, stage == 0 && c == 0, stage == P - 1 && c == layout.chunks - 1});
    }
    return slices;
}

inline void run_rank(const Training& t, const Layout& layout, Comm& world, ParityResult& result) {
    const Mesh mesh(layout.mesh, world);
    ThreadPool pool(1);
    Workspace workspace(pool);
    Arena weights, states;
    std::vector<std::unique_ptr<Decoder>> models;
    std::vector<Decoder*> chunks;
    std::vector<Param*> params;
    for (const ModelSlice& slice : slices_of(t.model, layout, mesh.place().pp)) {
        models.push_back(
            std::make_unique<Decoder>(t.model, layout.recompute, 7, slice,
                                      Regions{TpRegion(mesh.tp(), layout.sequence_parallel), CpRegion(mesh.cp())}));
        chunks.push_back(models.back().get());
        for (Param* p : params_of(*models.back())) params.push_back(p);
    }
    for (Param* p : params)  // norms and biases too, so that every gradient is exercised
        if (p->init.kind == Init::Kind::constant) p->init = {Init::Kind::normal, 0.3};
    const int pieces = GradSync::pieces(layout.mesh, layout.distributed_optimizer);
    GradSync sync(mesh, params, allocate_params(params, weights, DType::f64, DType::f64, pieces),
                  layout.distributed_optimizer);
    init_params(params, workspace.ctx().temp, 1234);
    Optimizer optimizer(make_adam({.eps = 1e-5}), {sync.owned(), sync.counted(), &sync.norm_group()}, states,
                        workspace.ctx().temp);
    std::optional<LossScaler> no_scaler;
    BatchUpload upload(workspace.engine());
    Timers timers(0);
    bool first = true;
    Pipeline pipeline({chunks, mesh, workspace, upload, timers});
    TrainStep train({pipeline, sync, optimizer, no_scaler, timers},
                    {.clip_grad = t.clip, .per_token_loss = t.per_token_loss, .with_gradients = [&] {
                         if (first)
                             for (const ParamSlice& s : sync.owned()) result.grads.put(s, s.grad());
                         first = false;
                     }});
    const int share = t.micro_batches / layout.mesh.dp;
    for (int step = 0; step < t.steps; ++step) {
        const std::vector<TestBatch> all = batches_of(t, step);
        MicroBatch batch;
        int m = 0;
        const StepOutcome outcome = train.run(
            [&]() -> const MicroBatch& {
                batch = all[static_cast<std::size_t>(m++ * layout.mesh.dp + mesh.place().dp)].view();
                return batch;
            },
            share, {.learning_rate = 0.01, .weight_decay = 0.1}, step);
        result.add(step, outcome);
    }
    for (const ParamSlice& s : whole_slices(params)) result.weights.put(s, s.value());
    const std::vector<TestBatch> last = batches_of(t, t.steps);
    MicroBatch batch;
    int m = 0;
    const LossSum evaluation =
        evaluate(pipeline,
                 [&]() -> const MicroBatch& {
                     batch = last[static_cast<std::size_t>(m++ * layout.mesh.dp + mesh.place().dp)].view();
                     return batch;
                 },
                 {.iterations = 1, .micro_batches = share});
    if (world.rank() == 0) result.evaluation = evaluation;
}

inline void train_on(const Training& training, const Layout& layout, ParityResult& result) {
    run_on_threads(layout.mesh.size(), [&](Comm& world) { run_rank(training, layout, world, result); });
}

inline void expect_same(const WholeTensors& got, const WholeTensors& wanted, const char* what, double bound) {
    for (const auto& [name, difference] : got.differing())
        ADD_FAILURE() << what << " of " << name << " differ between ranks by " << difference;
    ASSERT_EQ(got.all().size(), wanted.all().size()) << what;
    for (const auto& [name, tensor] : wanted.all()) {
        const auto found = got.all().find(name);
        ASSERT_NE(found, got.all().end()) << what << " of " << name;
        ASSERT_EQ(found->second.size(), tensor.size());
        for (const double x : found->second) ASSERT_FALSE(std::isnan(x)) << what << " of " << name << " is not whole";
        EXPECT_LE(worst(found->second, tensor), bound) << what << " of " << name;
    }
}

/// Compares everything.
inline void expect_same_training(const Training& training, const ParityResult& many, const ParityResult& one,
                                 double bound = 1e-12) {
    EXPECT_TRUE(many.agreed) << "ranks have seen different losses or norms";
    expect_same(many.grads, one.grads, "gradients", bound);
    expect_same(many.weights, one.weights, "weights", bound);
    ASSERT_EQ(many.steps.size(), one.steps.size());
    for (std::size_t i = 0; i < one.steps.size(); ++i) {
        EXPECT_NEAR(many.steps[i].mean_loss(), one.steps[i].mean_loss(), bound * one.steps[i].mean_loss());
        EXPECT_EQ(many.steps[i].loss.tokens, one.steps[i].loss.tokens);
        EXPECT_NEAR(*many.steps[i].grad_norm, *one.steps[i].grad_norm, bound * *one.steps[i].grad_norm);
        // The gradient by the bias of the keys is zero but for rounding, which may or may not hit it exactly.
        if (!training.model.qkv_bias) {
            EXPECT_EQ(*many.steps[i].grad_zeros, *one.steps[i].grad_zeros);
        }
    }
    EXPECT_NEAR(many.evaluation.loss, one.evaluation.loss, bound * one.evaluation.loss);
}

/// Trains on the layout and on one rank.
inline void expect_parity(const Training& training, const Layout& layout) {
    ParityResult one, many;
    train_on(training, {}, one);
    train_on(training, layout, many);
    expect_same_training(training, many, one);
}

}  // namespace tera::test
