#include "nn/lm_head.h"

#include "ops/convert.h"
#include "ops/cross_entropy.h"
#include "ops/linear.h"

namespace tera {

LmHead::LmHead(const ModelConfig& c) {
    if (!c.tied)
        own_weight = Param{.name = "lm_head.weight",
                           .full_shape = {c.vocab, c.hidden},
                           .shard = {0, {}},
                           .sum_grad_over = {Axis::dp, Axis::cp},
                           .weight_decay = true,
                           .init = {Init::Kind::normal, c.init_std}};
}

template <class F>
void LmHead::each_piece(ConstTensor x, std::int64_t vocab, const F& f) const {
    constexpr std::int64_t most_logits = std::int64_t{1} << 25;
    std::int64_t T = x.rows(), pieces = (T * vocab + most_logits - 1) / most_logits;
    std::int64_t rows = (T + pieces - 1) / pieces;
    for (std::int64_t t = 0; t < T; t += rows) f(t, std::min(rows, T - t));
}

Tensor LmHead::forward(Ctx& ctx, ConstTensor x, const LossRequest& request, Param& weight, Saved& saved) const {
    DType acc = acc_dtype(x.dtype);
    Tensor loss = ctx.keep.tensor(acc, {x.rows()});
    saved.dx = ctx.keep.like(x);
    const Exec& e = ctx.temp;
    std::int64_t V = weight.value.rows();
    each_piece(x, V, [&](std::int64_t t, std::int64_t n) {
        ArenaScope scope(*e.arena);
        Tensor z = e.tensor(acc, {n, V});
        ops::linear_into(e, z, x.slice(t, n), weight.value);
        std::vector<double> weights(static_cast<std::size_t>(n));
        for (std::int64_t i = 0; i < n; ++i)
            weights[static_cast<std::size_t>(i)] = request.grad_scale * static_cast<double>(request.mask[t + i]);
        ops::cross_entropy(e, loss.slice(t, n), z, request.labels + t, weights.data());
        ConstTensor dz = ops::as_dtype(e, z, x.dtype);
        ops::linear_wgrad(e, weight.grad, dz, x.slice(t, n));
        ops::linear_dgrad_into(e, saved.dx.slice(t, n), dz, weight.value);
    });
    return loss;
}

Tensor LmHead::evaluate(Ctx& ctx, ConstTensor x, const std::int32_t* labels, const Param& weight) const {
    Tensor loss = ctx.keep.tensor(acc_dtype(x.dtype), {x.rows()});
    each_piece(x, weight.value.rows(), [&](std::int64_t t, std::int64_t n) {
        ArenaScope scope(*ctx.temp.arena);
        Tensor z = logits(ctx.temp, x.slice(t, n), weight);
        ops::cross_entropy(ctx.temp, loss.slice(t, n), z, labels + t, nullptr);
    });
    return loss;
}

Tensor LmHead::logits(const Exec& exec, ConstTensor x, const Param& weight) const {
    Tensor z = exec.tensor(acc_dtype(x.dtype), {x.rows(), weight.value.rows()});
    ops::linear_into(exec, z, x, weight.value);
    return z;
}

}  // namespace tera
