#include "nn/lm_head.h"

#include "core/profile.h"
#include "ops/convert.h"
#include "ops/cross_entropy.h"
#include "ops/linear.h"

namespace tera {

LmHead::LmHead(const ModelConfig& c, const TpRegion& tp, bool has_embedding) : tp_(tp) {
    if (!c.tied || !has_embedding)
        own_weight = Param{.name = c.tied ? "embedding.word.weight" : "lm_head.weight",
                           .full_shape = {c.vocab, c.hidden},
                           .shard = {0, {}},
                           .sum_grad_over = {Axis::dp, Axis::cp},
                           .weight_decay = true,
                           .init = {Init::Kind::normal, c.init_std},
                           .grad_by_product = !c.tied,
                           .tie = c.tied ? Param::Tie::copy : Param::Tie::none};
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

void LmHead::loss_of(const Exec& exec, Tensor loss, Tensor z, const std::int32_t* labels,
                     ops::LossWeight weight) const {
    if (tp_.size() == 1) return ops::cross_entropy(exec, loss, z, labels, weight.mask, weight.scale);
    const ops::LocalLabels local{labels, z.cols() * tp_.rank()};
    const ops::VocabStats stats{exec.like(loss), exec.tensor(loss.dtype, {2, loss.numel()})};
    ops::vocab_max(exec, stats.top, z);
    tp_.all_reduce(exec, stats.top, Reduce::max);
    ops::vocab_sums(exec, stats, z, local);
    tp_.all_reduce(exec, stats.sums, Reduce::sum);
    ops::vocab_cross_entropy(exec, loss, z, stats, local, weight);
}

Tensor LmHead::forward(Ctx& ctx, ConstTensor x_stream, const LossRequest& request, Param& weight, Saved& saved,
                       const Later* later) const {
    const ProfileRange range("lm head");
    const Exec& e = ctx.temp;
    ArenaScope whole(*e.arena);
    const bool put_off = later != nullptr && later->grad.begin_micro_batch();
    const Exec& lasting = put_off ? later->memory : e;
    ConstTensor x = tp_.enter(lasting, x_stream);
    if (put_off && x.data == x_stream.data) {  // not gathered: it lives no longer than its micro-batch
        Tensor copy = lasting.like(x);
        ops::copy(e, copy, x);
        x = copy;
    }
    DType acc = acc_dtype(x.dtype), logit = logit_dtype(e, x.dtype);
    Tensor loss = ctx.keep.tensor(acc, {x.rows()});
    Tensor dx = (tp_.sequence_parallel() ? ctx.temp : ctx.keep).like(x);
    std::int64_t V = weight.value.rows();
    each_piece(e, x, V, [&](std::int64_t t, std::int64_t n) {
        ArenaScope scope(*e.arena);
        Tensor z = (logit == x.dtype ? lasting : e).tensor(logit, {n, V});
        ops::linear_into(e, z, x.slice(t, n), weight.value);
        loss_of(e, loss.slice(t, n), z, request.labels + t, {request.mask + t, request.grad_scale});
        ConstTensor dz = ops::as_dtype(lasting, z, x.dtype);
        if (put_off)
            later->grad.add(dz, x.slice(t, n));
        else
            add_product_grad(e, weight, dz, x.slice(t, n));
        ops::linear_dgrad_into(e, dx.slice(t, n), dz, weight.value);
    });
    saved.grad_is_due = later != nullptr;
    saved.dx = tp_.enter_backward(ctx.keep, dx);
    return loss;
}

Tensor LmHead::evaluate(Ctx& ctx, ConstTensor x_stream, const std::int32_t* labels, const Param& weight) const {
    ArenaScope whole(*ctx.temp.arena);
    ConstTensor x = tp_.enter(ctx.temp, x_stream);
    Tensor loss = ctx.keep.tensor(acc_dtype(x.dtype), {x.rows()});
    each_piece(ctx.temp, x, weight.value.rows(), [&](std::int64_t t, std::int64_t n) {
        ArenaScope scope(*ctx.temp.arena);
        Tensor z = logits(ctx.temp, x.slice(t, n), weight);
        loss_of(ctx.temp, loss.slice(t, n), z, labels + t, {});
    });
    return loss;
}

Tensor LmHead::logits(const Exec& exec, ConstTensor x, const Param& weight) const {
    Tensor z = exec.tensor(acc_dtype(x.dtype), {x.rows(), weight.value.rows()});
    ops::linear_into(exec, z, x, weight.value);
    return z;
}

}  // namespace tera
