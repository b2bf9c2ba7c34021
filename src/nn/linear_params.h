// LinearParams: weight [out,in] and optional bias [out] of one matrix product.
#pragma once

#include <cmath>
#include <optional>

#include "nn/model_config.h"
#include "nn/param.h"
#include "nn/tp_region.h"
#include "ops/linear.h"

namespace tera {

/// How the weight starts: "into the residual stream" divides the standard deviation by sqrt(2 L).
inline Init linear_init(const ModelConfig& config, std::int64_t out, std::int64_t in, bool into_residual) {
    if (config.init_xavier_uniform) return {Init::Kind::uniform, std::sqrt(6.0 / static_cast<double>(out + in))};
    double std = config.init_std;
    if (into_residual) std /= std::sqrt(2.0 * static_cast<double>(config.layers));
    return {Init::Kind::normal, std};
}

struct LinearParams {
    Param weight;
    std::optional<Param> bias;

    LinearParams(const std::string& name, Shape shape, ShardSpec shard, Init init, bool with_bias, const TpRegion& tp)
        : weight{.name = name + ".weight",
                 .full_shape = shape,
                 .shard = shard,
                 .sum_grad_over = {Axis::dp, Axis::cp},
                 .weight_decay = true,
                 .init = init,
                 .grad_by_product = true} {
        if (with_bias)  // that of a matrix cut along its inputs is whole on every rank and added to the stream
            bias = Param{.name = name + ".bias",
                         .full_shape = {shape[0]},
                         .shard = shard.dim == 0 ? shard : ShardSpec{},
                         .sum_grad_over = shard.dim == 0 ? AxisSet{Axis::dp, Axis::cp} : tp.stream_axes(),
                         .weight_decay = false,
                         .init = {}};
    }

    template <class F>
    void visit(F&& f) {
        f(weight);
        if (bias) f(*bias);
    }
    ConstTensor bias_value() const { return bias ? ConstTensor(bias->value) : ConstTensor{}; }
    Tensor bias_grad() const { return bias ? bias->grad : Tensor{}; }
};

/// to.x + dropout(x Wᵀ + b) in ctx.keep, where W is cut along its inputs: the way out of a tensor-parallel region.
inline Tensor linear_to_stream(Ctx& ctx, const TpRegion& tp, ConstTensor x, const LinearParams& linear,
                               const ops::Residual& to) {
    if (tp.size() == 1) return ops::linear_residual(ctx.keep, x, linear.weight.value, linear.bias_value(), to);
    Tensor y = tp.leave(ctx.temp, ops::linear(ctx.temp, x, linear.weight.value));
    return ops::dropout_add(ctx.keep, to.x, y, linear.bias_value(), to.dropout);
}

/// The gradient by x of the stream, from dy = the gradient by x Wᵀ + b, where W is cut along its outputs: the way into
/// a tensor-parallel region, back. Adds to W's gradient and to db. With a lane x is gathered while the gradient by x is
/// computed, and that one crosses the border while W's is.
inline Tensor linear_from_stream_backward(const Exec& e, const TpRegion& tp, LinearParams& linear, ConstTensor dy,
                                          ConstTensor x_stream, Tensor db = {}) {
    ConstTensor x = tp.beside(e, [&](const Exec& lane) { return tp.enter(lane, x_stream); });
    Tensor dx = ops::linear_dgrad(e, dy, linear.weight.value);
    tp.wait(e);
    Tensor dx_stream = tp.beside(e, [&](const Exec& lane) { return tp.enter_backward(lane, dx); });
    add_product_grad(e, linear.weight, dy, x, db);
    tp.wait(e);
    return dx_stream;
}

}  // namespace tera
