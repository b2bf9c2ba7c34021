// Block: one transformer layer, pre-norm.
//   x ← x + dropout(attention(norm(x)) + b);  x ← x + dropout(mlp(norm(x)) + b)
#pragma once

#include "nn/attention.h"
#include "nn/mlp.h"
#include "nn/norm.h"
#include "ops/residual.h"

namespace tera {

class Block {
  public:
    Block(const ModelConfig& config, std::int64_t layer, const LayerRecompute& recompute, const Regions& ranks);

    struct Saved {
        Norm::Saved attention_norm, mlp_norm;
        Attention::Saved attention;
        Mlp::Saved mlp;
    };

    template <class F>
    void visit(F&& f) {
        attention_norm_.visit(f);
        attention_.visit(f);
        mlp_norm_.visit(f);
        mlp_.visit(f);
    }

    /// In which the layer is trained.
    DType dtype() const { return attention_norm_.dtype(); }

    /// The new residual stream, in ctx.keep.
    Tensor forward(Ctx& ctx, const BlockInput& in, ConstTensor x, Saved& saved) const;
    /// dx holds the gradient of the output and receives that of the input.
    void backward(Ctx& ctx, const BlockInput& in, Tensor dx, const Saved& saved);
    /// forward with a cache of keys and values, nothing kept for backward.
    Tensor infer(Ctx& ctx, const BlockInput& in, ConstTensor x, LayerCache& cache, std::int64_t cached) const;

  private:
    ops::Dropout dropout(const BlockInput& in, DropoutPlace place) const;

    double p_;
    std::int64_t layer_;
    Norm attention_norm_;
    Attention attention_;
    Norm mlp_norm_;
    Mlp mlp_;
};

}  // namespace tera
