// Mlp: up projection, activation (gated or not), down projection into the residual stream.
#pragma once

#include "nn/linear_params.h"
#include "ops/residual.h"

namespace tera {

class Mlp {
  public:
    Mlp(const ModelConfig& config, std::int64_t layer, bool recompute_activation, const TpRegion& tp);

    struct Saved {
        ConstTensor x;  ///< normed input, this rank's rows
        Tensor h;       ///< before the activation
        Tensor a;       ///< behind it; absent: built again in backward
    };

    template <class F>
    void visit(F&& f) {
        up_.visit(f);
        down_.visit(f);
    }

    /// to.x + dropout(mlp(x)), in ctx.keep.
    Tensor forward(Ctx& ctx, ConstTensor x, const ops::Residual& to, Saved& saved) const;
    /// Gradient by x, in ctx.temp; dy is that of the branch, behind the dropout.
    Tensor backward(Ctx& ctx, ConstTensor dy, const Saved& saved);

    /// Of the down projection; whoever has dy at hand sums its columns.
    Param* bias_param() { return down_.bias ? &*down_.bias : nullptr; }

  private:
    Activation activation_;
    bool recompute_activation_;
    TpRegion tp_;
    LinearParams up_, down_;
};

}  // namespace tera
