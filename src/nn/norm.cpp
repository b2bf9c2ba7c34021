#include "nn/norm.h"

namespace tera {

ops::NormSpec norm_spec(const ModelConfig& config) {
    return {.rms = config.norm == NormKind::rms_norm, .one_plus = config.norm_one_plus, .eps = config.norm_eps};
}

NormParams::NormParams(const ModelConfig& config, const std::string& name, std::int64_t n, AxisSet sum_grad_over)
    : weight{.name = name + ".weight",
             .full_shape = {n},
             .shard = {},
             .sum_grad_over = sum_grad_over,
             .weight_decay = false,
             .init = {Init::Kind::constant, config.norm_one_plus ? 0.0 : 1.0}} {
    if (config.norm == NormKind::layer_norm)
        bias = Param{.name = name + ".bias",
                     .full_shape = {n},
                     .shard = {},
                     .sum_grad_over = sum_grad_over,
                     .weight_decay = false,
                     .init = {}};
}

Norm::Norm(const ModelConfig& config, const std::string& name, AxisSet sum_grad_over)
    : spec_(norm_spec(config)), params_(config, name, config.hidden, sum_grad_over) {}

Tensor Norm::forward(const Exec& exec, ConstTensor x, Saved& saved) const {
    saved.x = x;
    return ops::norm(exec, spec_, x, params_.weight.value, params_.bias_value(), saved.stats);
}

void Norm::backward(const Exec& exec, Tensor dx, ConstTensor dy, const Saved& saved, Tensor dx_sum) {
    ops::norm_backward(exec, spec_, {dx, params_.weight.grad, params_.bias_grad(), dx_sum}, dy, saved.x,
                       params_.weight.value, saved.stats);
}

}  // namespace tera
