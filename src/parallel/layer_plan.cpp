#include "parallel/layer_plan.h"

#include "core/error.h"

namespace tera {
namespace {

/// " (8 and the embedding)" where more than layers are counted.
std::string what_counts(const LayerPlanRequest& r) {
    if (!r.count_embedding && !r.count_loss) return "";
    return cat(" (", r.layers,
               r.count_embedding && r.count_loss ? ", the embedding and the loss)"
               : r.count_embedding               ? " and the embedding)"
                                                 : " and the loss)");
}

/// Layers of each stage, pseudo-layers for embedding and loss included.
std::vector<std::int64_t> stage_sizes(const LayerPlanRequest& r) {
    const std::int64_t total = r.layers + r.count_embedding + r.count_loss;
    if (!r.first_stage && !r.last_stage) {
        if (total % r.stages != 0) {
            usage_error(total, " layers", what_counts(r), " do not split evenly over ", r.stages,
                        " pipeline stages; change --num-layers or --pipeline-model-parallel-size, or say the ends with "
                        "--decoder-first-pipeline-num-layers and --decoder-last-pipeline-num-layers");
        }
        return std::vector<std::int64_t>(static_cast<std::size_t>(r.stages), total / r.stages);
    }
    if (r.count_embedding || r.count_loss) {
        usage_error(
            "--account-for-embedding/loss-in-pipeline-split and --decoder-first/last-pipeline-num-layers exclude each "
            "other");
    }
    const std::int64_t first = r.first_stage.value_or(0), last = r.last_stage.value_or(0);
    const std::int64_t between = r.stages - (r.first_stage ? 1 : 0) - (r.last_stage ? 1 : 0);
    const std::string ends = cat(r.first_stage ? cat("--decoder-first-pipeline-num-layers ", first) : "",
                                 r.first_stage && r.last_stage ? " and " : "",
                                 r.last_stage ? cat("--decoder-last-pipeline-num-layers ", last) : "");
    if (between < 0) usage_error(ends, " need two stages; --pipeline-model-parallel-size is ", r.stages);
    if (first < 0 || last < 0 || first > r.layers || last > r.layers - first)
        usage_error(ends, ": there are only ", r.layers, " layers");
    const std::int64_t rest = r.layers - first - last;
    if (between == 0 && rest != 0) usage_error(ends, " leave ", rest, " of ", r.layers, " layers without a stage");
    if (between > 0 && rest % between != 0)
        usage_error(ends, " leave ", rest, " of ", r.layers, " layers for ", between,
                    " stages: they must split evenly");
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(r.stages), between > 0 ? rest / between : 0);
    if (r.first_stage) sizes.front() = first;
    if (r.last_stage) sizes.back() = last;
    return sizes;
}

}  // namespace

std::int64_t LayerPlan::layers_of_stage(std::size_t stage) const {
    std::int64_t sum = 0;
    for (const LayerRange& chunk : stages[stage]) sum += chunk.count;
    return sum;
}

std::vector<std::int64_t> LayerPlan::layers_per_stage() const {
    std::vector<std::int64_t> out;
    for (std::size_t stage = 0; stage < stages.size(); ++stage) out.push_back(layers_of_stage(stage));
    return out;
}

LayerPlan plan_layers(const LayerPlanRequest& r) {
    TERA_CHECK(r.layers > 0 && r.stages > 0 && r.chunks > 0, r.layers, " layers, ", r.stages, " stages, ", r.chunks,
               " chunks");
    const std::vector<std::int64_t> sizes = stage_sizes(r);
    const auto chunks = static_cast<std::size_t>(r.chunks);
    LayerPlan plan;
    for (std::size_t stage = 0; stage < sizes.size(); ++stage) {
        if (sizes[stage] % r.chunks != 0) {
            usage_error(
                "the ", sizes[stage], " layers of pipeline stage ", stage, " do not split into ", r.chunks,
                " equal chunks (--num-virtual-stages-per-pipeline-rank or --num-layers-per-virtual-pipeline-stage)");
        }
        plan.stages.emplace_back(chunks, LayerRange{0, sizes[stage] / r.chunks});
    }
    plan.stages.front().front().count -= r.count_embedding;
    plan.stages.back().back().count -= r.count_loss;
    std::int64_t next = 0;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        for (std::vector<LayerRange>& stage : plan.stages) {
            stage[chunk].first = next;
            next += stage[chunk].count;
            if (stage[chunk].count < 0)
                usage_error("a pipeline stage would hold fewer than no layers; use fewer stages");
            const bool embedding = chunk == 0 && &stage == &plan.stages.front();
            const bool loss = chunk + 1 == chunks && &stage == &plan.stages.back();
            if (stage[chunk].count == 0 && !embedding && !loss)
                usage_error(chunks > 1 ? cat("chunk ", chunk, " of ") : "", "pipeline stage ",
                            &stage - plan.stages.data(),
                            " would hold nothing: neither layers nor embedding nor loss; use fewer stages or chunks, "
                            "or other --decoder-first/last-pipeline-num-layers");
        }
    }
    TERA_CHECK(next == r.layers, "the plan holds ", next, " of ", r.layers, " layers");
    return plan;
}

}  // namespace tera
