#include "nn/mlp.h"

#include "core/profile.h"
#include "ops/activation.h"
#include "ops/beside.h"
#include "ops/linear.h"

namespace tera {
namespace {

ops::ActivationKind kind_of(Activation a) {
    switch (a) {
        case Activation::gelu_tanh:
            return ops::ActivationKind::gelu_tanh;
        case Activation::gelu_erf:
            return ops::ActivationKind::gelu_erf;
        case Activation::squared_relu:
            return ops::ActivationKind::squared_relu;
        case Activation::swiglu:
            return ops::ActivationKind::swiglu;
        case Activation::geglu:
            return ops::ActivationKind::geglu;
    }
    throw Error("unknown activation");
}

ShardSpec up_shard(const ModelConfig& c) {
    return is_gated(c.activation) ? ShardSpec{0, {c.ffn, c.ffn}} : ShardSpec{0, {}};
}

}  // namespace

Mlp::Mlp(const ModelConfig& c, std::int64_t layer, bool recompute_activation, const TpRegion& tp)
    : activation_(c.activation),
      recompute_activation_(recompute_activation),
      tp_(tp),
      up_(cat("layers.", layer, ".mlp.up"), {c.up_rows(), c.hidden}, up_shard(c),
          linear_init(c, c.up_rows(), c.hidden, false), c.linear_bias, tp),
      down_(cat("layers.", layer, ".mlp.down"), {c.hidden, c.ffn}, {1, {}}, linear_init(c, c.hidden, c.ffn, true),
            c.linear_bias, tp) {}

Tensor Mlp::forward(Ctx& ctx, ConstTensor x, const ops::Residual& to, Saved& saved) const {
    const ProfileRange range("mlp");
    saved.x = x;
    const Exec& of_output = recompute_activation_ ? ctx.temp : ctx.keep;
    ops::Activated up = ops::linear_activation(ctx.keep, of_output, kind_of(activation_), tp_.enter(ctx.temp, x),
                                               up_.weight.value, up_.bias_value());
    saved.h = up.h;
    if (!recompute_activation_) saved.a = up.a;
    return linear_to_stream(ctx, tp_, up.a, down_, to);
}

Tensor Mlp::backward(Ctx& ctx, ConstTensor dy_stream, const Saved& saved) {
    const ProfileRange range("mlp");
    const Exec& e = ctx.temp;
    ConstTensor dy = tp_.leave_backward(e, dy_stream);
    const ops::ActivationKind kind = kind_of(activation_);
    if (const auto at_once =
            ops::linear_dgrad_activation(e, kind, dy, down_.weight.value, saved.h, up_.bias_grad(), !saved.a)) {
        add_product_grad(e, down_.weight, dy, saved.a ? saved.a : at_once->a);
        return linear_from_stream_backward(e, tp_, up_, at_once->dh, saved.x);
    }
    Tensor da = ops::linear_dgrad(e, dy, down_.weight.value);
    Tensor dh;
    if (saved.a) {
        ops::product_beside(
            e, [&] { add_product_grad(e, down_.weight, dy, saved.a); }, 2 * saved.h.bytes() + da.bytes(),
            [&] { dh = ops::activation_backward(e, kind, da, saved.h, up_.bias_grad()); });
    } else {
        dh = ops::activation_backward_again(e, kind, da, saved.h, up_.bias_grad());
        add_product_grad(e, down_.weight, dy, da);
    }
    return linear_from_stream_backward(e, tp_, up_, dh, saved.x);
}

}  // namespace tera
