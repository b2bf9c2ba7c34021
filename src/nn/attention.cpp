#include "nn/attention.h"

#include <cmath>

#include "core/profile.h"
#include "ops/convert.h"
#include "ops/linear.h"

namespace tera {
namespace {

std::string layer_name(std::int64_t layer, const char* part) { return cat("layers.", layer, ".attention.", part); }

}  // namespace

Attention::Attention(const ModelConfig& c, std::int64_t layer, bool recompute_core)
    : config_(c),
      layer_(layer),
      recompute_core_(recompute_core),
      qkv_(layer_name(layer, "qkv"), {c.qkv_rows(), c.hidden},
           {0, {c.heads * c.head_dim, c.kv_heads * c.head_dim, c.kv_heads * c.head_dim}},
           linear_init(c, c.qkv_rows(), c.hidden, false), c.qkv_bias),
      proj_(layer_name(layer, "proj"), {c.hidden, c.heads * c.head_dim}, {1, {}},
            linear_init(c, c.hidden, c.heads * c.head_dim, true), c.linear_bias) {
    if (c.qk_norm) {  // every rank norms its own heads with the same weights, so the gradients are partial sums over tp
        AxisSet axes{Axis::dp, Axis::cp, Axis::tp};
        q_norm_.emplace(c, layer_name(layer, "q_norm"), c.head_dim, axes);
        k_norm_.emplace(c, layer_name(layer, "k_norm"), c.head_dim, axes);
    }
}

ops::HeadNormWeights Attention::head_norm_weights() const {
    return {q_norm_->weight.value, q_norm_->bias_value(), k_norm_->weight.value, k_norm_->bias_value()};
}

Tensor Attention::project_qkv(const Exec& exec, const BlockInput& in, ConstTensor x, Saved& saved) const {
    const ModelConfig& c = config_;
    Tensor qkv = ops::linear(exec, x, qkv_.weight.value, qkv_.bias_value());
    if (q_norm_) {
        saved.raw = qkv;
        qkv = ops::head_norm(exec, norm_spec(c), {c.heads, c.kv_heads, c.head_dim}, saved.raw, head_norm_weights(),
                             saved.stats);
    }
    if (in.rope) ops::rope(exec, qkv, *in.rope, in.positions, {c.heads + c.kv_heads, c.head_dim}, false);
    return qkv;
}

ops::AttentionSpec Attention::core_spec(const BlockInput& in, std::int64_t keys) const {
    const ModelConfig& c = config_;
    ops::AttentionSpec spec{.B = in.B,
                            .Sq = in.S,
                            .Sk = keys,
                            .H = c.heads,
                            .G = c.kv_heads,
                            .K = c.head_dim,
                            .scale = 1.0 / std::sqrt(static_cast<double>(c.head_dim))};
    spec.doc_start = in.doc_start;
    if (in.dropout) {
        spec.dropout = c.attention_dropout;
        spec.sample = in.sample;
        spec.site = {in.seed, static_cast<std::uint32_t>(layer_), static_cast<std::uint32_t>(DropoutPlace::attention)};
    }
    return spec;
}

ops::AttentionOut Attention::core(const Exec& exec, const BlockInput& in, ConstTensor qkv) const {
    std::int64_t q_cols = config_.heads * config_.head_dim, kv_cols = config_.kv_heads * config_.head_dim;
    return ops::attention(exec, core_spec(in, in.S), {qkv, 0}, {qkv, q_cols}, {qkv, q_cols + kv_cols});
}

Tensor Attention::forward(Ctx& ctx, const BlockInput& in, ConstTensor x, const ops::Residual& to, Saved& saved) const {
    const ProfileRange range("attention");
    saved.x = x;
    saved.qkv = project_qkv(ctx.keep, in, x, saved);
    ops::AttentionOut out = core(recompute_core_ ? ctx.temp : ctx.keep, in, saved.qkv);
    if (!recompute_core_) saved.out = out;
    return ops::linear_residual(ctx.keep, out.o, proj_.weight.value, proj_.bias_value(), to);
}

Tensor Attention::backward(Ctx& ctx, const BlockInput& in, ConstTensor dy, const Saved& saved) {
    const ProfileRange range("attention");
    const ModelConfig& c = config_;
    const Exec& e = ctx.temp;
    ops::AttentionOut out = recompute_core_ ? core(e, in, saved.qkv) : saved.out;
    ops::linear_wgrad(e, proj_.weight.grad, dy, out.o);
    Tensor d_o = ops::linear_dgrad(e, dy, proj_.weight.value);

    std::int64_t q_cols = c.heads * c.head_dim, kv_cols = c.kv_heads * c.head_dim;
    Tensor dqkv = e.like(saved.qkv);
    ConstTensor qkv = saved.qkv;
    ops::attention_backward(e, core_spec(in, in.S), {{dqkv, 0}, {dqkv, q_cols}, {dqkv, q_cols + kv_cols}}, d_o,
                            {qkv, 0}, {qkv, q_cols}, {qkv, q_cols + kv_cols}, out);
    if (in.rope) ops::rope(e, dqkv, *in.rope, in.positions, {c.heads + c.kv_heads, c.head_dim}, true);
    if (q_norm_)
        ops::head_norm_backward(
            e, norm_spec(c), {c.heads, c.kv_heads, c.head_dim},
            {q_norm_->weight.grad, q_norm_->bias_grad(), k_norm_->weight.grad, k_norm_->bias_grad()}, dqkv, saved.raw,
            head_norm_weights(), saved.stats);
    ops::linear_wgrad(e, qkv_.weight.grad, dqkv, saved.x, qkv_.bias_grad());
    return ops::linear_dgrad(e, dqkv, qkv_.weight.value);
}

Tensor Attention::infer(Ctx& ctx, const BlockInput& in, ConstTensor x, ConstTensor stream, LayerCache& cache,
                        std::int64_t cached) const {
    Saved unused;
    const Exec& e = ctx.temp;
    Tensor qkv = project_qkv(e, in, x, unused);
    std::int64_t q_cols = config_.heads * config_.head_dim, kv_cols = config_.kv_heads * config_.head_dim;
    ops::copy_columns(e, cache.k.slice(cached * in.B, qkv.rows()), qkv, q_cols);
    ops::copy_columns(e, cache.v.slice(cached * in.B, qkv.rows()), qkv, q_cols + kv_cols);
    ops::AttentionOut out = ops::attention(e, core_spec(in, cached + in.S), {ConstTensor(qkv), 0},
                                           {ConstTensor(cache.k), 0}, {ConstTensor(cache.v), 0});
    return ops::linear_residual(e, out.o, proj_.weight.value, proj_.bias_value(), {stream});
}

}  // namespace tera
