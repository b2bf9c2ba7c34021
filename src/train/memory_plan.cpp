#include "train/memory_plan.h"

#include <tuple>

#include "core/error.h"
#include "core/uploader.h"
#include "train/format_text.h"
#include "train/run_schedules.h"
#include "train/training_parts.h"

namespace tera {
namespace {

/// Stands for an array of the batch, which a dry run never reads.
template <class T>
const T* somewhere() {
    return reinterpret_cast<const T*>(Arena::alignment);
}

MicroBatch batch_shape(const RunConfig& c) {
    MicroBatch batch{.S = c.seq_length,
                     .B = c.micro_batch_size,
                     .tokens = somewhere<std::int32_t>(),
                     .labels = somewhere<std::int32_t>(),
                     .loss_mask = somewhere<float>(),
                     .positions = somewhere<std::int32_t>(),
                     .doc_start = nullptr,
                     .sample = somewhere<std::int64_t>()};
    if (c.reset_attention_mask) {
        batch.doc_start = somewhere<std::int32_t>();
        if (c.context_parallel_size == 1)
            batch.documents = {ops::most_documents(c.seq_length, c.micro_batch_size), c.seq_length, batch.doc_start};
    }
    return batch;
}

}  // namespace

std::size_t batch_bytes(const RunConfig& c) {
    const auto tokens = static_cast<std::size_t>(c.seq_length / c.context_parallel_size * c.micro_batch_size);
    const auto documents = static_cast<std::size_t>(ops::most_documents(c.seq_length, c.micro_batch_size));
    std::size_t numbers = 4 * tokens;
    if (c.reset_attention_mask) numbers += tokens + (c.context_parallel_size == 1 ? 2 * documents : 0);
    return numbers * sizeof(std::int32_t) + static_cast<std::size_t>(c.micro_batch_size) * sizeof(std::int64_t);
}

std::string MemoryPlan::text() const {
    return cat("weights and gradients ", size_text(weights), ", optimizer ", size_text(optimizer), ", activations ",
               size_text(activations), ", scratch ", size_text(scratch), ", buffers ", size_text(buffers()));
}

MemoryPlan plan_memory(const RunConfig& config, std::int64_t true_vocab, Workspace& dry) {
    const Mesh one_rank;
    return plan_memory(config, true_vocab, dry, one_rank, 1);
}

MemoryPlan plan_memory(const RunConfig& config, std::int64_t true_vocab, Workspace& dry, const Mesh& mesh,
                       std::int64_t micro_batches) {
    TrainingParts parts(config, true_vocab, dry, {}, mesh);
    mesh.reset_traffic();
    const MicroBatch batch = batch_shape(config);
    BatchUpload no_upload{Engine()};
    Timers no_timers(0);
    PipelineShape shape = pipeline_shape_from(config);
    shape.micro_batches = micro_batches;
    Pipeline pipeline({parts.chunks(), parts.mesh(), dry, no_upload, no_timers, shape.group, parts.sync().observer(),
                       deferral_from(config), receive_ahead_from(config)});
    const Tensor sums(reinterpret_cast<std::byte*>(Arena::alignment), DType::f64, dry.engine().device(), {2});
    const Pipeline::Work work{[&]() -> const MicroBatch& { return batch; }, micro_batches, sums};
    pipeline.train(work);
    const Exec exec = dry.ctx().temp;
    parts.sync().finish_gradients(exec);
    for (int group = 0; group < parts.sync().groups().count; ++group) parts.sync().updated(exec, group);
    pipeline.share(exec, sums);
    const std::map<std::string, Traffic> one_step = mesh.traffic();
    pipeline.evaluate({work.next, 1, sums});
    MemoryPlan plan;
    plan.sent = one_step;
    plan.weights = parts.weights_bytes();
    for (const Param* p : parts.params()) plan.gradients += p->grad.bytes();
    plan.optimizer = parts.optimizer_bytes();
    for (const OptimizerTensor& t : parts.optimizer().state())
        plan.main_weights += t.kind == "master" ? t.tensor.own_bytes() : 0;
    plan.activations = dry.kept_peak();
    plan.scratch = dry.scratch_peak();
    plan.tables = parts.table_bytes();
    if (dry.engine().device() != Device::cpu) {
        plan.batches = Uploader::device_bytes(batch_bytes(config), held_micro_batches(shape, parts.mesh().place().pp));
        plan.messages = pipeline.messages(batch, micro_batches).total();
        const auto rest = [](std::size_t bytes) { return Arena::block_bytes(bytes) - bytes; };
        plan.rounding = rest(plan.weights) + rest(plan.optimizer) + dry.block_bytes() - dry.peak() +
                        Arena::block_bytes(1);  // of the sums of losses
        for (const Decoder* model : parts.chunks()) plan.rounding += rest(model->table_bytes());
    }
    plan.libraries = dry.engine().own_bytes();
    return plan;
}

namespace {

MemoryPlan plan_steps(const RunConfig& config, std::int64_t true_vocab, Workspace& dry, const Mesh& mesh) {
    return plan_memory(config, true_vocab, dry, mesh, pipeline_shape_from(config).micro_batches);
}

/// How to get from one configuration to the other.
std::string difference_text(const RunConfig& from, const RunConfig& to) {
    std::string with, without;
    const auto recomputed = [](const RunConfig& c) {
        return std::tie(c.recompute_granularity, c.recompute_method, c.recompute_num_layers);
    };
    const bool recompute = recomputed(to) != recomputed(from);
    if (recompute)
        with += cat(" --recompute-granularity full --recompute-method ", to.recompute_method,
                    " --recompute-num-layers ", to.recompute_num_layers);
    if (to.micro_batch_size != from.micro_batch_size) with += cat(" --micro-batch-size ", to.micro_batch_size);
    if (from.keep_mlp_activations && !to.keep_mlp_activations) without += " --keep-mlp-activations";
    if (recompute && from.given.count("recompute_activations") > 0) without += " --recompute-activations";
    if (recompute && !from.recompute_modules.empty()) without += " --recompute-modules";
    return cat(with.empty() ? "" : "with" + with, with.empty() || without.empty() ? "" : ", ",
               without.empty() ? "" : "without" + without);
}

}  // namespace

std::optional<std::string> advice_to_fit(const RunConfig& config, std::int64_t true_vocab, const Workspace& like,
                                         const Mesh& mesh, std::size_t room) {
    const auto fits = [&](RunConfig changed) {
        try {
            validate_and_derive(changed, changed.world_size);
            check_batches(changed);
        } catch (const UsageError&) {
            return false;
        }
        Workspace dry(like.engine(), like.pool(), Arena::Kind::counting);
        return plan_steps(changed, true_vocab, dry, mesh).total() <= room;
    };
    RunConfig changed = config;
    changed.keep_mlp_activations = false;
    for (const bool recompute : {false, true}) {
        if (recompute) {
            changed.recompute_granularity = "full";
            changed.recompute_method = "uniform";
            changed.recompute_num_layers = 1;
            changed.recompute_modules.clear();
        }
        for (std::int64_t size = config.micro_batch_size; size > 0; --size) {
            if (config.micro_batch_size % size != 0) continue;
            changed.micro_batch_size = size;
            if (fits(changed)) return difference_text(config, changed);
        }
    }
    return std::nullopt;
}

MemoryPlan reserve_memory(const RunConfig& config, std::int64_t true_vocab, Workspace& workspace, const Mesh& mesh) {
    const Engine& engine = workspace.engine();
    if (engine.device() == Device::cpu) return {};
    Workspace dry(engine, workspace.pool(), Arena::Kind::counting);
    const MemoryPlan plan = plan_steps(config, true_vocab, dry, mesh);
    mesh.reset_traffic();
    // The libraries have their workspace already, and load code in the first steps.
    constexpr std::size_t code = std::size_t{512} << 20;
    const std::size_t free = engine.memory_info().free, room = plan.libraries + (free > code ? free - code : 0);
    if (plan.total() > room) {
        const auto advice = advice_to_fit(config, true_vocab, workspace, mesh, room);
        usage_error("out of memory: this run needs ", size_text(plan.total()), " (", plan.text(), ") and ",
                    engine.name(), " has ", size_text(room), " for it; ",
                    advice ? "it fits " + *advice : "it needs more GPUs or a smaller model");
    }
    workspace.reserve_like(dry);
    return plan;
}

}  // namespace tera
