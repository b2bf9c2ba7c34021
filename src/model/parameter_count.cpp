#include "model/parameter_count.h"

#include <numeric>

#include "core/error.h"

namespace tera {
namespace {

/// Parameters of one piece: those cut over tensor ranks and those every rank holds whole.
struct Pieces {
    std::int64_t cut = 0, whole = 0;

    Pieces operator+(const Pieces& o) const { return {cut + o.cut, whole + o.whole}; }
    Pieces operator*(std::int64_t n) const { return {cut * n, whole * n}; }
    std::int64_t total() const { return cut + whole; }
};

Pieces norm(const ParameterShape& s, std::int64_t width) { return {0, width * (s.norm_bias ? 2 : 1)}; }

Pieces column_linear(std::int64_t in, std::int64_t out, bool bias) { return {in * out + (bias ? out : 0), 0}; }
Pieces row_linear(std::int64_t in, std::int64_t out, bool bias) { return {in * out, bias ? out : 0}; }

Pieces attention(const ParameterShape& s, std::int64_t kv_heads) {
    Pieces p = column_linear(s.hidden, (s.heads + 2 * kv_heads) * s.head_dim, s.qkv_bias) +
               row_linear(s.heads * s.head_dim, s.hidden, s.linear_bias);
    if (s.attention_norm) p = p + norm(s, s.hidden);
    if (s.post_norm) p = p + norm(s, s.hidden);
    if (s.qk_norm) p = p + norm(s, s.head_dim) * 2;
    return p;
}

Pieces mlp(const ParameterShape& s) {
    Pieces p = column_linear(s.hidden, s.gated ? 2 * s.ffn : s.ffn, s.linear_bias) +
               row_linear(s.ffn, s.hidden, s.linear_bias);
    if (s.mlp_norm) p = p + norm(s, s.hidden);
    if (s.post_norm) p = p + norm(s, s.hidden);
    return p + Pieces{0, s.activation_scalars};
}

Pieces layer(const ParameterShape& s) { return attention(s, s.kv_heads) + mlp(s); }

/// What comes before the first layer, the word embedding apart.
Pieces tables(const ParameterShape& s) {
    const std::int64_t token_types = s.kind == ParameterShape::Kind::bert ? 2 : 0;
    const std::int64_t stacks = s.kind == ParameterShape::Kind::t5 ? 2 : 1;
    return {0, (s.positions + token_types) * s.hidden + stacks * s.relative_buckets * s.heads};
}

/// What comes after the last layer, the output matrix apart.
Pieces head(const ParameterShape& s) {
    Pieces p = s.final_norm ? norm(s, s.hidden) : Pieces{};
    if (s.kind == ParameterShape::Kind::t5) p = p * 2 + (s.tied ? Pieces{s.vocab, 0} : Pieces{});
    if (s.kind == ParameterShape::Kind::bert) {
        const Pieces dense = {0, s.hidden * s.hidden + s.hidden};
        p = p + dense + norm(s, s.hidden) + Pieces{s.vocab, 0};
        if (s.binary_head) p = p + dense + Pieces{0, 2 * s.hidden + 2};
    }
    return p;
}

Pieces body(const ParameterShape& s, std::int64_t layers) {
    Pieces p = layer(s) * layers;
    if (s.kind != ParameterShape::Kind::t5) return p;
    // A decoder layer attends twice; cross attention has no grouped heads and no q/k norms of its own.
    ParameterShape cross = s;
    cross.qk_norm = false;
    return p + attention(cross, s.heads) * layers + layer(s) * s.encoder_layers;
}

}  // namespace

ParameterCount count_parameters(const ParameterShape& s, std::int64_t tp,
                                const std::vector<std::int64_t>& layers_per_stage) {
    const std::int64_t planned = std::accumulate(layers_per_stage.begin(), layers_per_stage.end(), std::int64_t{0});
    TERA_CHECK(planned == s.layers, "stages hold ", planned, " of ", s.layers, " layers");
    TERA_CHECK(s.kind != ParameterShape::Kind::t5 || layers_per_stage.size() == 1, "T5 on ", layers_per_stage.size(),
               " stages");
    const Pieces matrix = {s.vocab * s.hidden, 0};
    ParameterCount count;
    const std::size_t last = layers_per_stage.size() - 1;
    for (std::size_t stage = 0; stage <= last; ++stage) {
        Pieces p = body(s, layers_per_stage[stage]);
        if (stage == 0) p = p + matrix + tables(s);
        if (stage == last) p = p + head(s);
        if (stage == last && !s.tied) p = p + matrix;
        count.total += p.total();
        if (stage == last && s.tied && last > 0) p = p + matrix;
        if (s.kv_heads < tp) {  // every rank holds one whole head of keys and values
            const std::int64_t layers = layers_per_stage[stage] + s.encoder_layers;
            const std::int64_t one_head = layers * 2 * s.head_dim * (s.hidden + (s.qkv_bias ? 1 : 0));
            p = p + Pieces{-s.kv_heads * one_head, one_head};
        }
        TERA_CHECK(p.cut % tp == 0, p.cut, " sharded parameters of stage ", stage, " do not divide by ", tp);
        count.per_rank.emplace_back(static_cast<std::size_t>(tp), p.cut / tp + p.whole);
    }
    return count;
}

}  // namespace tera
