#include "train/layout_plan.h"

#include <algorithm>
#include <numeric>

#include "train/plan.h"
#include "train/training_parts.h"

namespace tera {

const MemoryPlan& LayoutPlan::fullest() const {
    return *std::max_element(stages.begin(), stages.end(),
                             [](const MemoryPlan& a, const MemoryPlan& b) { return a.total() < b.total(); });
}

double pipeline_bubble(const std::vector<double>& work, std::int64_t chunks, std::int64_t micro_batches) {
    const double slowest = *std::max_element(work.begin(), work.end());
    const double all = std::accumulate(work.begin(), work.end(), 0.0), stages = static_cast<double>(work.size());
    const auto steps = static_cast<double>(chunks * micro_batches);
    return 1 - all * steps / (stages * slowest * (steps + stages - 1));
}

namespace {

/// Where a run on GPUs is planned and there is none, one on paper is enough.
Engine engine_to_plan_for(const std::string& device) {
    return device == "cuda" && Engine::gpus() == 0 ? Engine::on_paper() : Engine(device_named(device));
}

/// As the driver of an H200 said it (CUDA 13.0, NCCL 2.28): 0.54 GiB for one rank, 1.16 to 1.33 with NCCL.
std::size_t libraries_about(const Engine& engine, int ranks) {
    if (engine.device() == Device::cpu) return 0;
    return static_cast<std::size_t>((ranks == 1 ? 0.54 : 1.2) * 0x1p30);
}

}  // namespace

SampleWork work_of_sample(const RunConfig& config) {
    const FlopsFormula formula = flops_formula_of(config.log_format);
    const FlopsShape whole = flops_shape(config, config.padded_vocab_size), headless = flops_shape(config, 0);
    const double in_layers = flops_per_step(formula, headless, 1);
    return {in_layers / static_cast<double>(whole.layers), flops_per_step(formula, whole, 1) - in_layers};
}

double pipeline_bubble(const RunConfig& config, std::int64_t micro_batches) {
    const SampleWork sample = work_of_sample(config);
    std::vector<double> stages;
    for (const std::int64_t layers : plan_layers(layer_plan_request(config)).layers_per_stage())
        stages.push_back(sample.layer * static_cast<double>(layers));
    stages.back() += sample.head;
    return pipeline_bubble(stages, config.virtual_pipeline_model_parallel_size.value_or(1), micro_batches);
}

namespace {

/// Two steps of which one is twice as long, both long enough to fill the pipeline, tell what a longer one sends and
/// keeps, once the longer of them keeps no more: every micro-batch, or with interleaving every group of them, sends as
/// much.
class LongStep {
  public:
    LongStep(const RunConfig& config, std::int64_t micro_batches)
        : micro_batches_(micro_batches),
          group_(std::max(config.pipeline_model_parallel_size, config.microbatch_group_size_per_vp_stage.value_or(0))) {
    }

    template <class Plan>
    MemoryPlan plan(const Plan& of) const {
        const std::int64_t rest = micro_batches_ % group_;
        std::int64_t groups = 4;
        if (micro_batches_ <= 2 * groups * group_ + rest) return of(micro_batches_);
        for (MemoryPlan some = of(groups * group_ + rest);; groups *= 2) {
            if (micro_batches_ <= 2 * groups * group_ + rest) return of(micro_batches_);
            MemoryPlan more = of(2 * groups * group_ + rest);
            if (some.total() == more.total()) return grown(some, more, groups);
            some = std::move(more);
        }
    }

  private:
    /// `some` is of so many groups, `all` of twice as many.
    MemoryPlan grown(const MemoryPlan& some, MemoryPlan all, std::int64_t groups) const {
        const std::int64_t further = micro_batches_ / group_ - groups;
        for (auto& [what, sent] : all.sent) {
            const Traffic& before = some.sent.at(what);
            sent.bytes =
                before.bytes + (sent.bytes - before.bytes) / static_cast<double>(groups) * static_cast<double>(further);
            sent.calls = before.calls + (sent.calls - before.calls) / groups * further;
        }
        return all;
    }

    std::int64_t micro_batches_, group_;
};

}  // namespace

LayoutPlan plan_stages(const RunConfig& config, std::int64_t true_vocab, std::int64_t micro_batches,
                       const std::vector<int>& stages) {
    const Engine engine = engine_to_plan_for(config.device);
    engine.set_deterministic(config.deterministic_mode);
    ThreadPool pool(1);
    const MeshShape shape = mesh_shape_from(config);
    const LongStep step(config, micro_batches);
    LayoutPlan plan;
    plan.device = engine.name();
    plan.libraries_about = libraries_about(engine, shape.size());
    for (const int stage : stages) {
        plan.stages.push_back(step.plan([&](std::int64_t count) {
            const std::unique_ptr<Comm> world = make_paper_comm(rank_at(shape, {.pp = stage}), shape.size());
            const Mesh mesh(shape, *world);
            Workspace dry(engine, pool, Arena::Kind::counting);
            return plan_memory(config, true_vocab, dry, mesh, count);
        }));
    }
    plan.bubble = pipeline_bubble(config, micro_batches);
    return plan;
}

LayoutPlan plan_layout(const RunConfig& config, std::int64_t true_vocab, std::int64_t micro_batches) {
    std::vector<int> stages(static_cast<std::size_t>(config.pipeline_model_parallel_size));
    std::iota(stages.begin(), stages.end(), 0);
    return plan_stages(config, true_vocab, micro_batches, stages);
}

}  // namespace tera
