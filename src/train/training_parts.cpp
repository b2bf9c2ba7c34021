#include "train/training_parts.h"

#include <algorithm>

#include "core/error.h"
#include "train/model_from_flags.h"
#include "train/plan.h"

namespace tera {
namespace {

/// Word embedding and output matrix: what --decoupled-lr is for.
bool takes_decoupled_lr(const Param& p) { return p.name == "embedding.word.weight" || p.name == "lm_head.weight"; }

const Mesh& one_rank() {
    static const Mesh mesh;
    return mesh;
}

}  // namespace

MeshShape mesh_shape_from(const RunConfig& c) {
    return {.tp = static_cast<int>(c.tensor_model_parallel_size),
            .cp = static_cast<int>(c.context_parallel_size),
            .dp = static_cast<int>(c.data_parallel_size),
            .pp = static_cast<int>(c.pipeline_model_parallel_size),
            .pp_before_dp = c.use_tp_pp_dp_mapping};
}

CpComm cp_comm_from(const RunConfig& c) { return c.cp_comm_type[0] == "allgather" ? CpComm::all_gather : CpComm::ring; }

PipelineShape pipeline_shape_from(const RunConfig& c) {
    return {
        .stages = static_cast<int>(c.pipeline_model_parallel_size),
        .chunks = static_cast<int>(c.virtual_pipeline_model_parallel_size.value_or(1)),
        .micro_batches = std::max<std::int64_t>(1, c.global_batch_size / (c.micro_batch_size * c.data_parallel_size)),
        .group = c.microbatch_group_size_per_vp_stage.value_or(0)};
}

ReceiveAhead receive_ahead_from(const RunConfig& c) { return {c.overlap_p2p_comm, c.overlap_p2p_comm_warmup_flush}; }

std::optional<std::int64_t> deferral_from(const RunConfig& c) {
    if (!c.defer_embedding_wgrad_compute) return std::nullopt;
    return c.wgrad_deferral_limit;
}

int held_micro_batches(const PipelineShape& shape, int stage) {
    return static_cast<int>(most_micro_batches(schedule_1f1b(shape, stage)));
}

std::vector<ModelSlice> slices_of_stage(const RunConfig& config, int stage) {
    const LayerPlan plan = plan_layers(layer_plan_request(config));
    const auto& ranges = plan.stages[static_cast<std::size_t>(stage)];
    std::vector<ModelSlice> slices;
    for (std::size_t c = 0; c < ranges.size(); ++c) {
        slices.push_back({ranges[c].first, ranges[c].count, stage == 0 && c == 0,
                          stage + 1 == static_cast<int>(plan.stages.size()) && c + 1 == ranges.size()});
    }
    return slices;
}

TrainingParts::TrainingParts(const RunConfig& config, std::int64_t true_vocab, Workspace& workspace,
                             const MemoryPlan& plan)
    : TrainingParts(config, true_vocab, workspace, plan, one_rank()) {}

TrainingParts::TrainingParts(const RunConfig& config, std::int64_t true_vocab, Workspace& workspace,
                             const MemoryPlan& plan, const Mesh& mesh)
    : mesh_(mesh),
      weights_arena_(workspace.kind(), workspace.engine().memory()),
      optimizer_arena_(workspace.kind(), workspace.engine().memory()) {
    weights_arena_.reserve(plan.weights);
    optimizer_arena_.reserve(plan.optimizer);
    const auto seed = static_cast<std::uint64_t>(config.seed);
    const Exec exec = workspace.ctx().temp;
    const ModelConfig model = model_config_from(config, config.padded_vocab_size, true_vocab);
    const int stage = mesh.place().pp;
    const auto lane =
        config.async_tensor_model_parallel_allreduce ? std::make_shared<TpLane>(workspace.engine()) : nullptr;
    const Regions ranks{TpRegion(mesh.tp(), config.sequence_parallel, lane),
                        CpRegion(mesh.cp(), cp_comm_from(config), workspace.engine())};
    for (const ModelSlice& slice : slices_of_stage(config, stage)) {
        models_.push_back(std::make_unique<Decoder>(model, recompute_from(config), seed, slice, ranks));
        for (Param* p : params_of(*models_.back())) params_.push_back(p);
    }
    const GradSync::Settings settings{.distributed_optimizer = config.use_distributed_optimizer,
                                      .overlap_reduce = config.overlap_grad_reduce,
                                      .overlap_gather = config.overlap_param_gather,
                                      .gather_in_update = config.overlap_param_gather_with_optimizer_step,
                                      .bucket = config.ddp_bucket_size.value_or(0)};
    sync_ = std::make_unique<GradSync>(mesh, params_,
                                       allocate_params(params_, weights_arena_, value_dtype_from(config),
                                                       grad_dtypes_from(config), GradSync::cut(mesh.shape(), settings)),
                                       settings, workspace.engine(), exec);
    init_params(params_, exec, seed);
    // The model that was built must be the one that was asked for.
    const ParameterCount count = count_parameters(parameter_shape(config, config.padded_vocab_size), 1,
                                                  plan_layers(layer_plan_request(config)).layers_per_stage());
    const std::int64_t asked = count.per_rank[static_cast<std::size_t>(stage)][0];
    std::int64_t built = 0;
    for (const Param* p : params_) built += p->full_shape.numel();
    TERA_CHECK(built == asked, "parameters built and asked for: ", built, ", ", asked);
    Comm& agreement = sync_->norm_group();
    optimizer_ =
        std::make_unique<Optimizer>(update_rule_from(config),
                                    Optimizer::Share{sync_->owned(), sync_->counted(),
                                                     agreement.size() > 1 ? &agreement : nullptr, sync_->groups()},
                                    optimizer_arena_, exec);
    optimizer_->draw_main(exec, seed);
    if (config.decoupled_lr) {
        std::vector<const Param*> chosen;
        for (const Param* p : params_) {
            if (takes_decoupled_lr(*p)) chosen.push_back(p);
        }
        optimizer_->use_decoupled_lr(chosen);
    }
    scaler_ = loss_scaler_from(config);
    // With a dynamic loss scale an overflow is part of normal operation.
    const bool check = config.check_for_nan_in_loss_and_grad && !(scaler_ && scaler_->dynamic());
    step_settings_ = {config.clip_grad, config.calculate_per_token_loss, check, "; " + advice_on_loss(config),
                      "; " + advice_on_gradients(config)};
}

std::vector<Decoder*> TrainingParts::chunks() const {
    std::vector<Decoder*> all;
    for (const auto& model : models_) all.push_back(model.get());
    return all;
}

std::size_t TrainingParts::table_bytes() const {
    std::size_t bytes = 0;
    for (const auto& model : models_) bytes += model->table_bytes();
    return bytes;
}

std::int64_t TrainingParts::parameter_count() const {
    std::int64_t count = 0;
    for (const Param* p : params_) count += p->value.numel();
    return count;
}

}  // namespace tera
