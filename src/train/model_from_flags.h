// From the flags to the parts of a training run: the model, its number formats, the optimizer's rule, the loss scaler.
// All take a validated configuration.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "config/run_config.h"
#include "core/dtype.h"
#include "nn/model_config.h"
#include "nn/param.h"
#include "optim/loss_scaler.h"
#include "optim/update_rule.h"

namespace tera {

/// padded_vocab: rows of the word embedding; true_vocab: the tokenizer's size.
ModelConfig model_config_from(const RunConfig& config, std::int64_t padded_vocab, std::int64_t true_vocab);
RecomputeConfig recompute_from(const RunConfig& config);

DType value_dtype_from(const RunConfig& config);
GradDTypes grad_dtypes_from(const RunConfig& config);

/// UsageError for an optimizer that is not built.
std::unique_ptr<UpdateRule> update_rule_from(const RunConfig& config);

/// Nothing for fp32 and bf16 without --loss-scale: scale 1, and gradients are not searched for overflow.
std::optional<LossScaler> loss_scaler_from(const RunConfig& config);

/// What to do where a loss or a gradient is not finite and the run stops: "lower --lr, ...".
std::string advice_on_loss(const RunConfig& config);
std::string advice_on_gradients(const RunConfig& config);
/// The same for a step that is skipped at the smallest loss scale, with a loss that is finite or not.
std::string advice_on_smallest_scale(const RunConfig& config, bool finite_loss);

}  // namespace tera
