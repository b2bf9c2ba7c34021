// Mlp: up projection, activation (gated or not), down projection. The bias of the down projection is left to the
// residual connection that follows.
#pragma once

#include "nn/linear_params.h"

namespace tera {

class Mlp {
  public:
    Mlp(const ModelConfig& config, std::int64_t layer);

    struct Saved {
        ConstTensor x;  ///< normed input
        Tensor h;       ///< before the activation
    };

    template <class F>
    void visit(F&& f) {
        up_.visit(f);
        down_.visit(f);
    }

    /// Output [T,D] in ctx.temp, without bias().
    Tensor forward(Ctx& ctx, ConstTensor x, Saved& saved) const;
    /// Gradient by x, in ctx.temp.
    Tensor backward(Ctx& ctx, ConstTensor dy, const Saved& saved);

    ConstTensor bias() const { return down_.bias_value(); }
    Param* bias_param() { return down_.bias ? &*down_.bias : nullptr; }

  private:
    Activation activation_;
    LinearParams up_, down_;
};

}  // namespace tera
