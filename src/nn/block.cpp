#include "nn/block.h"

#include "ops/linear.h"

namespace tera {

Block::Block(const ModelConfig& c, std::int64_t layer, bool recompute_core_attention)
    : p_(c.hidden_dropout),
      layer_(layer),
      attention_norm_(c, cat("layers.", layer, ".attention.norm")),
      attention_(c, layer, recompute_core_attention),
      mlp_norm_(c, cat("layers.", layer, ".mlp.norm")),
      mlp_(c, layer) {}

ops::Dropout Block::dropout(const BlockInput& in, DropoutPlace place) const {
    if (!in.dropout || p_ == 0) return {};
    return {p_, {in.seed, static_cast<std::uint32_t>(layer_), static_cast<std::uint32_t>(place)}, in.B, in.sample};
}

Tensor Block::forward(Ctx& ctx, const BlockInput& in, ConstTensor x, Saved& saved) const {
    ArenaScope scope(*ctx.temp.arena);
    Tensor normed = attention_norm_.forward(ctx.keep, x, saved.attention_norm);
    Tensor a = attention_.forward(ctx, in, normed, saved.attention);
    Tensor middle = ops::dropout_add(ctx.keep, x, a, attention_.bias(), dropout(in, DropoutPlace::after_attention));
    normed = mlp_norm_.forward(ctx.keep, middle, saved.mlp_norm);
    Tensor m = mlp_.forward(ctx, normed, saved.mlp);
    return ops::dropout_add(ctx.keep, middle, m, mlp_.bias(), dropout(in, DropoutPlace::after_mlp));
}

void Block::backward(Ctx& ctx, const BlockInput& in, Tensor dx, const Saved& saved) {
    const Exec& e = ctx.temp;
    {
        ArenaScope scope(*e.arena);
        ConstTensor d = ops::dropout_backward(e, dx, dropout(in, DropoutPlace::after_mlp));
        if (Param* bias = mlp_.bias_param()) ops::bias_grad(e, bias->grad, d);
        mlp_norm_.backward(e, dx, mlp_.backward(ctx, d, saved.mlp), saved.mlp_norm);
    }
    ArenaScope scope(*e.arena);
    ConstTensor d = ops::dropout_backward(e, dx, dropout(in, DropoutPlace::after_attention));
    if (Param* bias = attention_.bias_param()) ops::bias_grad(e, bias->grad, d);
    attention_norm_.backward(e, dx, attention_.backward(ctx, in, d, saved.attention), saved.attention_norm);
}

Tensor Block::infer(Ctx& ctx, const BlockInput& in, ConstTensor x, LayerCache& cache, std::int64_t cached) const {
    Saved unused;
    Ctx inner{ctx.temp, ctx.temp, ctx.temp};
    Tensor normed = attention_norm_.forward(ctx.temp, x, unused.attention_norm);
    Tensor a = attention_.infer(inner, in, normed, cache, cached);
    Tensor middle = ops::dropout_add(ctx.temp, x, a, attention_.bias(), {});
    normed = mlp_norm_.forward(ctx.temp, middle, unused.mlp_norm);
    return ops::dropout_add(ctx.temp, middle, mlp_.forward(inner, normed, unused.mlp), mlp_.bias(), {});
}

}  // namespace tera
