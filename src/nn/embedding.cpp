#include "nn/embedding.h"

#include "ops/convert.h"

namespace tera {

Embedding::Embedding(const ModelConfig& c, const TpRegion& tp)
    : word{.name = "embedding.word.weight",
           .full_shape = {c.vocab, c.hidden},
           .shard = {0, {}},
           .sum_grad_over = {Axis::dp, Axis::cp},
           .weight_decay = true,
           .init = {Init::Kind::normal, c.init_std}},
      tp_(tp),
      p_(c.hidden_dropout) {
    if (c.position == PositionKind::learned)
        position = Param{.name = "embedding.position.weight",
                         .full_shape = {c.max_positions, c.hidden},
                         .shard = {},
                         .sum_grad_over = tp.stream_axes(),
                         .weight_decay = true,
                         .init = {Init::Kind::normal, c.init_std}};
}

ops::Dropout Embedding::dropout(const BlockInput& in) const {
    if (!in.dropout || p_ == 0) return {};
    return {p_, {in.seed, 0, static_cast<std::uint32_t>(DropoutPlace::embedding)}, in.B, in.sample, in.stream};
}

ops::TableRows Embedding::rows() const { return {word.value.rows() * tp_.rank(), word.full_shape[0]}; }

Tensor Embedding::lookup(Ctx& ctx, const BlockInput& in, const std::int32_t* tokens) const {
    const std::int64_t T = in.S * in.B;
    if (tp_.size() == 1) {
        return ops::embedding(ctx.keep, word.value, position ? ConstTensor(position->value) : ConstTensor{}, tokens,
                              in.positions, T);
    }
    ArenaScope scope(*ctx.temp.arena);
    const Exec& partial = tp_.sequence_parallel() ? ctx.temp : ctx.keep;  // plain sums are done in place
    Tensor x = tp_.leave(ctx.keep, ops::embedding_part(partial, word.value, rows(), tokens, T));
    if (position) {
        ops::add_to(ctx.temp, x,
                    ops::embedding(ctx.temp, position->value, {}, in.positions + tp_.first_row(T), nullptr, x.rows()));
    }
    return x;
}

Tensor Embedding::forward(Ctx& ctx, const BlockInput& in, const std::int32_t* tokens) const {
    Tensor x = lookup(ctx, in, tokens);
    ops::Dropout d = dropout(in);
    return d.p == 0 ? x : ops::dropout_add(ctx.keep, {}, x, {}, d);
}

void Embedding::backward(const Exec& exec, const BlockInput& in, const std::int32_t* tokens, ConstTensor dx) {
    ConstTensor d = ops::dropout_backward(exec, dx, dropout(in));
    ops::embedding_backward(exec, word.grad, tp_.leave_backward(exec, d), tokens, rows());
    if (position) ops::embedding_backward(exec, position->grad, d, in.positions + tp_.first_row(in.S * in.B));
}

}  // namespace tera
