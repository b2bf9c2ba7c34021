// LmHead: the output matrix and the loss. The logits of a whole micro-batch are the largest tensor of a training step,
// so they never exist whole: rows of tokens pass through product, loss, its gradient and both backward products piece
// by piece. The derivative of the loss is known the moment the loss is, so training does all of it in forward.
#pragma once

#include <optional>

#include "nn/deferred_grad.h"
#include "nn/model_config.h"
#include "nn/param.h"
#include "nn/tp_region.h"
#include "ops/vocab_cross_entropy.h"

namespace tera {

struct LossRequest {
    const std::int32_t* labels;  ///< [T]
    const float* mask;           ///< [T]
    double grad_scale = 1;       ///< derivative of the objective by Σ mask_t loss_t
};

class LmHead {
  public:
    /// has_embedding: the word embedding is at hand too, so that a tied output matrix needs no copy of it.
    LmHead(const ModelConfig& config, const TpRegion& tp, bool has_embedding);

    struct Saved {
        Tensor dx;                 ///< gradient by the input, [T,D] or this rank's rows of it
        bool grad_is_due = false;  ///< the weight's gradient is not complete before DeferredGrad::finish
    };
    /// Where the products of the weight's gradient go, with memory that lives until then.
    struct Later {
        DeferredGrad& grad;
        Exec memory;
    };

    /// The output matrix, unless it is the word embedding at hand.
    std::optional<Param> own_weight;

    template <class F>
    void visit(F&& f) {
        if (own_weight) f(*own_weight);
    }

    /// Loss of every token [T] (accumulation dtype, in ctx.keep) and the gradient by x; the weight's gradient is added
    /// to weight.grad, or put off.
    Tensor forward(Ctx& ctx, ConstTensor x, const LossRequest& request, Param& weight, Saved& saved,
                   const Later* later = nullptr) const;
    Tensor evaluate(Ctx& ctx, ConstTensor x, const std::int32_t* labels, const Param& weight) const;
    /// Logits [T,V] in the accumulation dtype, or this rank's columns of them.
    Tensor logits(const Exec& exec, ConstTensor x, const Param& weight) const;

  private:
    /// Loss [n] of rows whose labels are given; with a mask, z becomes the gradient.
    void loss_of(const Exec& exec, Tensor loss, Tensor z, const std::int32_t* labels, ops::LossWeight weight) const;

    TpRegion tp_;
    template <class F>
    void each_piece(const Exec& exec, ConstTensor x, std::int64_t vocab, const F& f) const;
};

}  // namespace tera
