#include "nn/mlp.h"

#include "core/profile.h"
#include "ops/activation.h"
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

Mlp::Mlp(const ModelConfig& c, std::int64_t layer, const TpRegion& tp)
    : activation_(c.activation),
      tp_(tp),
      up_(cat("layers.", layer, ".mlp.up"), {c.up_rows(), c.hidden}, up_shard(c),
          linear_init(c, c.up_rows(), c.hidden, false), c.linear_bias, tp),
      down_(cat("layers.", layer, ".mlp.down"), {c.hidden, c.ffn}, {1, {}}, linear_init(c, c.hidden, c.ffn, true),
            c.linear_bias, tp) {}

Tensor Mlp::forward(Ctx& ctx, ConstTensor x, const ops::Residual& to, Saved& saved) const {
    const ProfileRange range("mlp");
    saved.x = x;
    ops::Activated up = ops::linear_activation(ctx.keep, ctx.temp, kind_of(activation_), tp_.enter(ctx.temp, x),
                                               up_.weight.value, up_.bias_value());
    saved.h = up.h;
    return linear_to_stream(ctx, tp_, up.a, down_, to);
}

Tensor Mlp::backward(Ctx& ctx, ConstTensor dy_stream, const Saved& saved) {
    const ProfileRange range("mlp");
    const Exec& e = ctx.temp;
    ConstTensor dy = tp_.leave_backward(e, dy_stream);
    Tensor a = ops::linear_dgrad(e, dy, down_.weight.value);  // the gradient by a, until a itself is rebuilt there
    Tensor dh = ops::activation_backward_again(e, kind_of(activation_), a, saved.h, up_.bias_grad());
    ops::linear_wgrad(e, down_.weight.grad, dy, a);
    return linear_from_stream_backward(e, tp_, up_, dh, saved.x);
}

}  // namespace tera
