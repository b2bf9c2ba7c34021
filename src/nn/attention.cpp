#include "nn/attention.h"

#include <cmath>

#include "core/profile.h"
#include "ops/convert.h"
#include "ops/linear.h"

namespace tera {
namespace {

std::string layer_name(std::int64_t layer, const char* part) { return cat("layers.", layer, ".attention.", part); }

}  // namespace

Attention::Attention(const ModelConfig& c, std::int64_t layer, bool recompute_core, const Regions& ranks)
    : config_(c),
      tp_(ranks.tp),
      cp_(ranks.cp),
      heads_(c.heads / tp_.size()),
      kv_heads_(std::max<std::int64_t>(1, c.kv_heads / tp_.size())),
      layer_(layer),
      recompute_core_(recompute_core),
      qkv_(layer_name(layer, "qkv"), {c.qkv_rows(), c.hidden},
           {0,
            {{c.heads * c.head_dim, c.heads},
             {c.kv_heads * c.head_dim, c.kv_heads},
             {c.kv_heads * c.head_dim, c.kv_heads}}},
           linear_init(c, c.qkv_rows(), c.hidden, false), c.qkv_bias, tp_),
      proj_(layer_name(layer, "proj"), {c.hidden, c.heads * c.head_dim}, {1, {}},
            linear_init(c, c.hidden, c.heads * c.head_dim, true), c.linear_bias, tp_) {
    TERA_CHECK(c.heads % tp_.size() == 0, c.heads, " heads over ", tp_.size(), " ranks");
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
        qkv = ops::head_norm(exec, norm_spec(c), {heads_, kv_heads_, c.head_dim}, saved.raw, head_norm_weights(),
                             saved.stats);
    }
    if (in.rope) ops::rope(exec, qkv, *in.rope, in.positions, {heads_ + kv_heads_, c.head_dim}, false);
    return qkv;
}

ops::AttentionSpec Attention::core_spec(const BlockInput& in, const SequenceRun& run, std::int64_t keys) const {
    const ModelConfig& c = config_;
    ops::AttentionSpec spec{.B = in.B,
                            .Sq = run.length,
                            .Sk = keys,
                            .H = heads_,
                            .G = kv_heads_,
                            .K = c.head_dim,
                            .scale = 1.0 / std::sqrt(static_cast<double>(c.head_dim))};
    if (in.doc_start) {
        spec.doc_start = in.doc_start + run.first_row * in.B;
        spec.documents = in.documents;
    }
    if (in.dropout) {
        spec.dropout = c.attention_dropout;
        spec.sample = in.sample;
        spec.site = {in.seed, static_cast<std::uint32_t>(layer_), static_cast<std::uint32_t>(DropoutPlace::attention)};
        spec.whole = {heads_ * tp_.rank(), {.first = run.begin}, {}, in.length};
    }
    return spec;
}

RingAttention Attention::ring(const BlockInput& in) const {
    ops::AttentionSpec own = core_spec(in, {0, in.S, 0}, in.S);
    own.whole.query = own.whole.key = zigzag_piece(in.S, cp_.rank(), cp_.size());
    return {cp_, own};
}

ConstTensor Attention::all_keys_and_values(const Exec& exec, ConstTensor qkv) const {
    Tensor kv = exec.tensor(qkv.dtype, {qkv.rows(), 2 * kv_cols()});
    ops::copy_columns(exec, kv, qkv, q_cols());
    return cp_.gather(exec, kv);
}

Attention::Core Attention::core(Ctx& ctx, const Exec& out, const BlockInput& in, ConstTensor qkv) const {
    if (cp_.size() == 1) {
        ops::AttentionOut all = ops::attention(out, core_spec(in, {0, in.S, 0}, in.S), {qkv, 0}, {qkv, q_cols()},
                                               {qkv, q_cols() + kv_cols()});
        return {all.o, {all}};
    }
    if (cp_.kind() == CpComm::ring) {
        const ops::AttentionOut all = ring(in).forward(ctx.temp, out, qkv);
        return {all.o, {all}};
    }
    Core core{out.tensor(qkv.dtype, {qkv.rows(), q_cols()}), {}};
    const Exec& e = ctx.temp;
    ConstTensor kv = all_keys_and_values(e, qkv);
    for (const SequenceRun& run : cp_.runs(in.S)) {  // a query sees no key behind its own run
        const std::int64_t first = run.first_row * in.B, rows = run.length * in.B;
        ops::AttentionOut part =
            ops::attention(e, core_spec(in, run, run.end()), {qkv.slice(first, rows), 0}, {kv, 0}, {kv, kv_cols()});
        Tensor o = core.o.slice(first, rows), lse = out.like(part.lse);
        ops::copy(e, o, part.o);
        ops::copy(e, lse, part.lse);
        core.parts.push_back({o, lse});
    }
    return core;
}

void Attention::core_backward(const Exec& e, const BlockInput& in, Tensor dqkv, ConstTensor d_o, ConstTensor qkv,
                              const Core& core) const {
    if (cp_.size() == 1) {
        ops::attention_backward(e, core_spec(in, {0, in.S, 0}, in.S),
                                {{dqkv, 0}, {dqkv, q_cols()}, {dqkv, q_cols() + kv_cols()}}, d_o, {qkv, 0},
                                {qkv, q_cols()}, {qkv, q_cols() + kv_cols()}, core.parts[0]);
        return;
    }
    if (cp_.kind() == CpComm::ring) return ring(in).backward(e, dqkv, d_o, qkv, core.parts[0]);
    ConstTensor kv = all_keys_and_values(e, qkv);
    Tensor dkv = e.like(kv);
    ops::fill_zero(e, dkv);
    const std::vector<SequenceRun> runs = cp_.runs(in.S);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const std::int64_t first = runs[i].first_row * in.B, rows = runs[i].length * in.B;
        Tensor part = e.tensor(kv.dtype, {runs[i].end() * in.B, kv.cols()});
        ops::attention_backward(e, core_spec(in, runs[i], runs[i].end()),
                                {{dqkv.slice(first, rows), 0}, {part, 0}, {part, kv_cols()}}, d_o.slice(first, rows),
                                {qkv.slice(first, rows), 0}, {kv, 0}, {kv, kv_cols()}, core.parts[i]);
        ops::add_to(e, dkv.slice(0, part.shape[0]), part);
    }
    ops::put_columns(e, dqkv, q_cols(), cp_.scatter(e, dkv));
}

Tensor Attention::forward(Ctx& ctx, const BlockInput& in, ConstTensor x, const ops::Residual& to, Saved& saved) const {
    const ProfileRange range("attention");
    saved.x = x;
    saved.qkv = project_qkv(ctx.keep, in, tp_.enter(ctx.temp, x), saved);
    Core out = core(ctx, recompute_core_ ? ctx.temp : ctx.keep, in, saved.qkv);
    if (!recompute_core_) saved.core = out;
    return linear_to_stream(ctx, tp_, out.o, proj_, to);
}

Tensor Attention::backward(Ctx& ctx, const BlockInput& in, ConstTensor dy_stream, const Saved& saved) {
    const ProfileRange range("attention");
    const ModelConfig& c = config_;
    const Exec& e = ctx.temp;
    ConstTensor dy = tp_.leave_backward(e, dy_stream);
    Core out = recompute_core_ ? core(ctx, e, in, saved.qkv) : saved.core;
    add_product_grad(e, proj_.weight, dy, out.o);
    Tensor d_o = ops::linear_dgrad(e, dy, proj_.weight.value);

    Tensor dqkv = e.like(saved.qkv);
    core_backward(e, in, dqkv, d_o, saved.qkv, out);
    if (in.rope) ops::rope(e, dqkv, *in.rope, in.positions, {heads_ + kv_heads_, c.head_dim}, true);
    if (q_norm_)
        ops::head_norm_backward(
            e, norm_spec(c), {heads_, kv_heads_, c.head_dim},
            {q_norm_->weight.grad, q_norm_->bias_grad(), k_norm_->weight.grad, k_norm_->bias_grad()}, dqkv, saved.raw,
            head_norm_weights(), saved.stats);
    return linear_from_stream_backward(e, tp_, qkv_, dqkv, saved.x, qkv_.bias_grad());
}

Tensor Attention::infer(Ctx& ctx, const BlockInput& in, ConstTensor x, ConstTensor stream, LayerCache& cache,
                        std::int64_t cached) const {
    Saved unused;
    const Exec& e = ctx.temp;
    Tensor qkv = project_qkv(e, in, x, unused);
    ops::copy_columns(e, cache.k.slice(cached * in.B, qkv.rows()), qkv, q_cols());
    ops::copy_columns(e, cache.v.slice(cached * in.B, qkv.rows()), qkv, q_cols() + kv_cols());
    ops::AttentionOut out = ops::attention(e, core_spec(in, {0, in.S, cached}, cached + in.S), {ConstTensor(qkv), 0},
                                           {ConstTensor(cache.k), 0}, {ConstTensor(cache.v), 0});
    return ops::linear_residual(e, out.o, proj_.weight.value, proj_.bias_value(), {stream});
}

}  // namespace tera
