#include "train/training_parts.h"

#include "core/error.h"
#include "train/model_from_flags.h"
#include "train/plan.h"

namespace tera {
namespace {

/// Word embedding and output matrix: what --decoupled-lr is for.
bool takes_decoupled_lr(const Param& p) { return p.name == "embedding.word.weight" || p.name == "lm_head.weight"; }

}  // namespace

TrainingParts::TrainingParts(const RunConfig& config, std::int64_t true_vocab, Workspace& workspace,
                             const MemoryPlan& plan)
    : weights_arena_(workspace.kind(), workspace.engine().memory()),
      optimizer_arena_(workspace.kind(), workspace.engine().memory()) {
    weights_arena_.reserve(plan.weights);
    optimizer_arena_.reserve(plan.optimizer);
    const auto seed = static_cast<std::uint64_t>(config.seed);
    const Exec exec = workspace.ctx().temp;
    model_ = std::make_unique<Decoder>(model_config_from(config, config.padded_vocab_size, true_vocab),
                                       recompute_from(config), seed);
    params_ = params_of(*model_);
    allocate_params(params_, weights_arena_, value_dtype_from(config), grad_dtypes_from(config));
    init_params(params_, exec, seed);
    // The model that was built must be the one that was asked for.
    const std::int64_t asked =
        count_parameters(parameter_shape(config, config.padded_vocab_size), 1, {config.num_layers}).total;
    TERA_CHECK(parameter_count() == asked, "parameters built and asked for: ", parameter_count(), ", ", asked);
    optimizer_ = std::make_unique<Optimizer>(update_rule_from(config), params_, optimizer_arena_, exec);
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
    step_settings_ = {config.clip_grad, config.calculate_per_token_loss, check};
}

std::int64_t TrainingParts::parameter_count() const {
    std::int64_t count = 0;
    for (const Param* p : params_) count += p->value.numel();
    return count;
}

}  // namespace tera
