#include "nn/embedding.h"

#include "ops/embedding.h"

namespace tera {

Embedding::Embedding(const ModelConfig& c)
    : word{.name = "embedding.word.weight",
           .full_shape = {c.vocab, c.hidden},
           .shard = {0, {}},
           .sum_grad_over = {Axis::dp, Axis::cp},
           .weight_decay = true,
           .init = {Init::Kind::normal, c.init_std}},
      p_(c.hidden_dropout) {
    if (c.position == PositionKind::learned)
        position = Param{.name = "embedding.position.weight",
                         .full_shape = {c.max_positions, c.hidden},
                         .shard = {},
                         .sum_grad_over = {Axis::dp, Axis::cp},
                         .weight_decay = true,
                         .init = {Init::Kind::normal, c.init_std}};
}

ops::Dropout Embedding::dropout(const BlockInput& in) const {
    if (!in.dropout || p_ == 0) return {};
    return {p_, {in.seed, 0, static_cast<std::uint32_t>(DropoutPlace::embedding)}, in.B, in.sample};
}

Tensor Embedding::forward(const Exec& exec, const BlockInput& in, const std::int32_t* tokens) const {
    Tensor x = ops::embedding(exec, word.value, position ? ConstTensor(position->value) : ConstTensor{}, tokens,
                              in.positions, in.S * in.B);
    ops::Dropout d = dropout(in);
    return d.p == 0 ? x : ops::dropout_add(exec, {}, x, {}, d);
}

void Embedding::backward(const Exec& exec, const BlockInput& in, const std::int32_t* tokens, ConstTensor dx) {
    ConstTensor d = ops::dropout_backward(exec, dx, dropout(in));
    ops::embedding_backward(exec, word.grad, d, tokens);
    if (position) ops::embedding_backward(exec, position->grad, d, in.positions);
}

}  // namespace tera
