#include "nn/block.h"

#include "core/profile.h"
#include "ops/linear.h"

namespace tera {
namespace {

struct Branch {
    ConstTensor dy;    ///< gradient of the branch's output, behind the dropout
    Tensor bias_grad;  ///< where the column sums of dy are still owed; absent: nowhere
};

/// Where nothing is dropped dy is the stream's own gradient, which the norm's backward reads anyway: it sums the
/// columns.
Branch branch_gradient(const Exec& exec, ConstTensor dx, const ops::Dropout& dropout, Param* bias) {
    ConstTensor dy = ops::dropout_backward(exec, dx, dropout);
    if (!bias) return {dy, {}};
    if (dropout.p == 0) return {dy, bias->grad};
    ops::bias_grad(exec, bias->grad, dy);
    return {dy, {}};
}

}  // namespace

Block::Block(const ModelConfig& c, std::int64_t layer, const LayerRecompute& recompute, const Regions& ranks)
    : p_(c.hidden_dropout),
      layer_(layer),
      attention_norm_(c, cat("layers.", layer, ".attention.norm"), ranks.tp.stream_axes()),
      attention_(c, layer, recompute.core_attention, ranks),
      mlp_norm_(c, cat("layers.", layer, ".mlp.norm"), ranks.tp.stream_axes()),
      mlp_(c, layer, recompute.mlp_activation, ranks.tp) {}

ops::Dropout Block::dropout(const BlockInput& in, DropoutPlace place) const {
    if (!in.dropout || p_ == 0) return {};
    return {p_,
            {in.seed, static_cast<std::uint32_t>(layer_), static_cast<std::uint32_t>(place)},
            in.B,
            in.sample,
            in.stream};
}

Tensor Block::forward(Ctx& ctx, const BlockInput& in, ConstTensor x, Saved& saved) const {
    const ProfileRange range("layer", layer_, "forward");
    ArenaScope scope(*ctx.temp.arena);
    Tensor normed = attention_norm_.forward(ctx.keep, x, saved.attention_norm);
    Tensor middle =
        attention_.forward(ctx, in, normed, {x, dropout(in, DropoutPlace::after_attention)}, saved.attention);
    normed = mlp_norm_.forward(ctx.keep, middle, saved.mlp_norm);
    return mlp_.forward(ctx, normed, {middle, dropout(in, DropoutPlace::after_mlp)}, saved.mlp);
}

void Block::backward(Ctx& ctx, const BlockInput& in, Tensor dx, const Saved& saved) {
    const ProfileRange range("layer", layer_, "backward");
    const Exec& e = ctx.temp;
    {
        ArenaScope scope(*e.arena);
        Branch branch = branch_gradient(e, dx, dropout(in, DropoutPlace::after_mlp), mlp_.bias_param());
        mlp_norm_.backward(e, dx, mlp_.backward(ctx, branch.dy, saved.mlp), saved.mlp_norm, branch.bias_grad);
    }
    ArenaScope scope(*e.arena);
    Branch branch = branch_gradient(e, dx, dropout(in, DropoutPlace::after_attention), attention_.bias_param());
    attention_norm_.backward(e, dx, attention_.backward(ctx, in, branch.dy, saved.attention), saved.attention_norm,
                             branch.bias_grad);
}

Tensor Block::infer(Ctx& ctx, const BlockInput& in, ConstTensor x, LayerCache& cache, std::int64_t cached) const {
    Saved unused;
    Ctx inner{ctx.temp, ctx.temp, ctx.temp};
    Tensor normed = attention_norm_.forward(ctx.temp, x, unused.attention_norm);
    Tensor middle = attention_.infer(inner, in, normed, x, cache, cached);
    normed = mlp_norm_.forward(ctx.temp, middle, unused.mlp_norm);
    return mlp_.forward(inner, normed, {middle}, unused.mlp);
}

}  // namespace tera
