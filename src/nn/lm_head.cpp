#include "nn/lm_head.h"

#include "core/profile.h"
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
                           .init = {Init::Kind::normal, c.init_std},
                           .grad_by_product = true};
}

template <class F>
void LmHead::each_piece(const Exec& exec, ConstTensor x, std::int64_t vocab, const F& f) const {
    // A GPU needs large products to be fast and has the memory for them; its tiles have 128 rows.
    const bool gpu = exec.device == Device::cuda;
    const std::int64_t most_logits = std::int64_t{1} << (gpu ? 29 : 25), tile = gpu ? 128 : 1;
    std::int64_t T = x.rows(), pieces = (T * vocab + most_logits - 1) / most_logits;
    std::int64_t rows = ((T + pieces - 1) / pieces + tile - 1) / tile * tile;
    for (std::int64_t t = 0; t < T; t += rows) f(t, std::min(rows, T - t));
}

namespace {

/// The GPU keeps logits in the training dtype (its kernels compute in f32 anyway); the CPU in the accumulation dtype.
DType logit_dtype(const Exec& exec, DType dtype) { return exec.device == Device::cuda ? dtype : acc_dtype(dtype); }

}  // namespace

Tensor LmHead::forward(Ctx& ctx, ConstTensor x, const LossRequest& request, Param& weight, Saved& saved) const {
    const ProfileRange range("lm head");
    DType acc = acc_dtype(x.dtype);
    Tensor loss = ctx.keep.tensor(acc, {x.rows()});
    saved.dx = ctx.keep.like(x);
    const Exec& e = ctx.temp;
    std::int64_t V = weight.value.rows();
    each_piece(e, x, V, [&](std::int64_t t, std::int64_t n) {
        ArenaScope scope(*e.arena);
        Tensor z = e.tensor(logit_dtype(e, x.dtype), {n, V});
        ops::linear_into(e, z, x.slice(t, n), weight.value);
        ops::cross_entropy(e, loss.slice(t, n), z, request.labels + t, request.mask + t, request.grad_scale);
        ConstTensor dz = ops::as_dtype(e, z, x.dtype);
        ops::linear_wgrad(e, weight.grad, dz, x.slice(t, n));
        ops::linear_dgrad_into(e, saved.dx.slice(t, n), dz, weight.value);
    });
    return loss;
}

Tensor LmHead::evaluate(Ctx& ctx, ConstTensor x, const std::int32_t* labels, const Param& weight) const {
    Tensor loss = ctx.keep.tensor(acc_dtype(x.dtype), {x.rows()});
    each_piece(ctx.temp, x, weight.value.rows(), [&](std::int64_t t, std::int64_t n) {
        ArenaScope scope(*ctx.temp.arena);
        Tensor z = logits(ctx.temp, x.slice(t, n), weight);
        ops::cross_entropy(ctx.temp, loss.slice(t, n), z, labels + t, nullptr, 0);
    });
    return loss;
}

Tensor LmHead::logits(const Exec& exec, ConstTensor x, const Param& weight) const {
    Tensor z = exec.tensor(acc_dtype(x.dtype), {x.rows(), weight.value.rows()});
    ops::linear_into(exec, z, x, weight.value);
    return z;
}

}  // namespace tera
