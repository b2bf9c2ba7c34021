// Norm: LayerNorm or RMSNorm over the model dimension (ops/norm.h).
#pragma once

#include <optional>

#include "nn/model_config.h"
#include "nn/param.h"
#include "ops/norm.h"

namespace tera {

ops::NormSpec norm_spec(const ModelConfig& config);

/// Weight and (LayerNorm) bias of a norm over n elements.
struct NormParams {
    NormParams(const ModelConfig& config, const std::string& name, std::int64_t n, AxisSet sum_grad_over);
    Param weight;
    std::optional<Param> bias;

    template <class F>
    void visit(F&& f) {
        f(weight);
        if (bias) f(*bias);
    }
    ConstTensor bias_value() const { return bias ? ConstTensor(bias->value) : ConstTensor{}; }
    Tensor bias_grad() const { return bias ? bias->grad : Tensor{}; }
};

class Norm {
  public:
    /// sum_grad_over: of its parameters (TpRegion::stream_axes).
    Norm(const ModelConfig& config, const std::string& name, AxisSet sum_grad_over);

    struct Saved {
        ConstTensor x;
        ops::NormStats stats;
    };

    template <class F>
    void visit(F&& f) {
        params_.visit(f);
    }

    DType dtype() const { return params_.weight.value.dtype; }

    Tensor forward(const Exec& exec, ConstTensor x, Saved& saved) const;
    /// dx += gradient by x. dx_sum, if given, += the sums of the columns of dx as it came.
    void backward(const Exec& exec, Tensor dx, ConstTensor dy, const Saved& saved, Tensor dx_sum = {});

  private:
    ops::NormSpec spec_;
    NormParams params_;
};

}  // namespace tera
