#include "train/layout_plan.h"

#include <algorithm>

#include "train/training_parts.h"

namespace tera {

const MemoryPlan& LayoutPlan::fullest() const {
    return *std::max_element(stages.begin(), stages.end(),
                             [](const MemoryPlan& a, const MemoryPlan& b) { return a.total() < b.total(); });
}

double pipeline_bubble(std::int64_t stages, std::int64_t chunks, std::int64_t micro_batches) {
    const auto idle = static_cast<double>(stages - 1);
    return idle / (static_cast<double>(chunks * micro_batches) + idle);
}

namespace {

/// Where a run on GPUs is planned and there is none, one on paper is enough.
Engine engine_to_plan_for(const std::string& device) {
    return device == "cuda" && Engine::gpus() == 0 ? Engine::on_paper() : Engine(device_named(device));
}

}  // namespace

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
    plan.bubble = pipeline_bubble(shape.pp, config.virtual_pipeline_model_parallel_size.value_or(1), micro_batches);
    return plan;
}

}  // namespace tera
