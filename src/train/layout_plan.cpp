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

/// Of one sample.
std::vector<double> work_of_stages(const RunConfig& config) {
    const FlopsFormula formula = flops_formula_of(config.log_format);
    const FlopsShape whole = flops_shape(config, config.padded_vocab_size), headless = flops_shape(config, 0);
    const double in_layers = flops_per_step(formula, headless, 1),
                 in_head = flops_per_step(formula, whole, 1) - in_layers;
    std::vector<double> work;
    for (const std::int64_t layers : plan_layers(layer_plan_request(config)).layers_per_stage())
        work.push_back(in_layers * static_cast<double>(layers) / static_cast<double>(whole.layers));
    work.back() += in_head;
    return work;
}

}  // namespace

double pipeline_bubble(const RunConfig& config, std::int64_t micro_batches) {
    return pipeline_bubble(work_of_stages(config), config.virtual_pipeline_model_parallel_size.value_or(1),
                           micro_batches);
}

LayoutPlan plan_layout(const RunConfig& config, std::int64_t true_vocab, std::int64_t micro_batches) {
    const Engine engine = engine_to_plan_for(config.device);
    engine.set_deterministic(config.deterministic_mode);
    ThreadPool pool(1);
    const MeshShape shape = mesh_shape_from(config);
    LayoutPlan plan;
    plan.device = engine.name();
    for (int stage = 0; stage < shape.pp; ++stage) {
        const std::unique_ptr<Comm> world = make_paper_comm(rank_at(shape, {.pp = stage}), shape.size());
        const Mesh mesh(shape, *world);
        Workspace dry(engine, pool, Arena::Kind::counting);
        plan.stages.push_back(plan_memory(config, true_vocab, dry, mesh, micro_batches));
    }
    plan.bubble = pipeline_bubble(config, micro_batches);
    return plan;
}

}  // namespace tera
