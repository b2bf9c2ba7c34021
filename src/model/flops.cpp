#include "model/flops.h"

#include <cmath>

#include "core/error.h"

namespace tera {
namespace {

// Exact sums: a step of a large model has more than 2^53 operations, and the figure should not depend on the order of
// additions. GCC's 128-bit integer is an extension, hence the marker.
__extension__ using Wide = __int128;

double core_0_12(const FlopsShape& x, std::int64_t batch) {
    const Wide h = x.hidden, s = x.sequence, q = Wide{x.head_dim} * x.heads;
    const Wide gate = x.gated ? 3 : 2;  // 2k
    const std::int64_t extra = x.predicted_ahead;
    Wide width = Wide{x.ffn} * (x.layers + extra);  // sum of MLP widths over layers
    if (x.moe) {
        TERA_CHECK(static_cast<std::int64_t>(x.moe->layer_is_moe.size()) == x.layers, "one entry per layer");
        const Wide expert = Wide{x.moe->top_k} * x.moe->expert_ffn + x.moe->shared;
        width = 0;
        for (const bool is_moe : x.moe->layer_is_moe) width += is_moe ? expert : Wide{x.ffn};
        width += extra * (x.moe->layer_is_moe.back() ? expert : Wide{x.ffn});
    }
    const Wide layers = x.layers + extra;
    Wide attention = layers * (12 * h * q + 12 * h * x.head_dim * x.kv_heads + 6 * q * s);
    if (x.latent) {
        const LatentFlops& m = *x.latent;
        const Wide heads = x.heads, qk = m.qk_dim + m.rope_dim;
        const Wide query = m.q_rank == 0 ? h * heads * qk : m.q_rank * (h + heads * qk + 1);
        const Wide twice =
            2 * (query + m.kv_rank * (h + heads * (m.qk_dim + m.v_dim) + 1) + h * m.rope_dim + heads * m.v_dim * h) +
            s * heads * qk + s * heads * m.v_dim;
        attention = 3 * layers * twice;
    }
    const Wide prediction = 6 * Wide{extra} * (3 * h + 2 * h * h);
    const Wide per_token = 6 * h * gate * width + attention + 6 * h * x.vocab * (extra + 1) + prediction;
    return static_cast<double>(Wide{batch} * s * per_token);
}

double core_0_7(const FlopsShape& x, std::int64_t batch, bool with_head_factor) {
    const double h = static_cast<double>(x.hidden), s = static_cast<double>(x.sequence),
                 layers = static_cast<double>(x.layers);
    const double heads = static_cast<double>(x.heads), q = static_cast<double>(x.head_dim * x.heads);
    const double gate = x.gated ? 1.5 : 1.0;
    const double top_k = x.moe ? static_cast<double>(x.moe->top_k) : 1.0;
    const double shared = x.moe ? static_cast<double>(x.moe->shared) : 0.0;
    const double attention = (1 + static_cast<double>(x.kv_heads) / heads + s / h) * (with_head_factor ? q / h : 1.0);
    const double mlp = static_cast<double>(x.ffn) / h * top_k * gate + gate * shared / h;
    const double logits = static_cast<double>(x.vocab) / (2 * layers * h);
    return 12 * static_cast<double>(batch) * s * layers * h * h * (attention + mlp + logits);
}

double core_0_5(const FlopsShape& x, std::int64_t batch) {
    const double h = static_cast<double>(x.hidden), s = static_cast<double>(x.sequence),
                 layers = static_cast<double>(x.layers);
    const double groups = static_cast<double>(x.kv_heads) / (5.0 * static_cast<double>(x.heads));
    return 60 * static_cast<double>(batch) * s * layers * h * h *
           (1 + groups + s / (5 * h) + static_cast<double>(x.vocab) / (10 * layers * h));
}

double jsc(const FlopsShape& x, std::int64_t batch) {
    const double h = static_cast<double>(x.hidden), s = static_cast<double>(x.sequence),
                 layers = static_cast<double>(x.layers);
    const double coefficient = (x.gated ? 32.0 : 24.0) * (x.recompute ? 4.0 : 3.0);
    return coefficient * static_cast<double>(batch) * s * layers * h * h *
           (1 + s / (6 * h) + static_cast<double>(x.vocab) / (16 * layers * h));
}

/// Python's round(): halves go to the even neighbour (the default rounding mode of nearbyint).
std::int64_t round_half_even(double x) { return static_cast<std::int64_t>(std::nearbyint(x)); }

}  // namespace

FlopsFormula flops_formula_of(const std::string& log_format) {
    if (log_format == "core-0.12" || log_format == "core-head") return FlopsFormula::core_0_12;
    if (log_format == "swiss") return FlopsFormula::core_0_7;
    if (log_format == "jsc") return FlopsFormula::jsc;
    return FlopsFormula::core_0_5;  // the first version that printed a throughput
}

double flops_per_step(FlopsFormula formula, const FlopsShape& shape, std::int64_t batch) {
    switch (formula) {
        case FlopsFormula::core_0_12:
            return core_0_12(shape, batch);
        case FlopsFormula::core_0_7:
            return core_0_7(shape, batch, true);
        case FlopsFormula::core_0_6:
            return core_0_7(shape, batch, false);
        case FlopsFormula::core_0_5:
            return core_0_5(shape, batch);
        case FlopsFormula::jsc:
            return jsc(shape, batch);
    }
    return 0;
}

double hybrid_flops_per_step(const FlopsShape& x, const HybridFlops& hybrid, std::int64_t batch) {
    const Wide h = x.hidden, s = x.sequence, q = Wide{x.head_dim} * x.heads, d = 2 * h;
    const Wide attention =
        4 * q * h + 4 * h * x.head_dim * x.kv_heads + 2 * q * s;  // 4q(h + h·G/H·(K·H/q) + s/2), q = K·H
    const Wide mlp = 2 * h * x.ffn * (x.gated ? 3 : 2);
    const Wide mamba = 2 * h * (2 * d + 2 * Wide{hybrid.groups} * hybrid.state + d / hybrid.head_dim) +
                       7 * d * hybrid.state + 2 * d * h;
    const Wide per_token =
        hybrid.attention_layers * attention + hybrid.mlp_layers * mlp + hybrid.mamba_layers * mamba + 2 * h * x.vocab;
    return static_cast<double>(3 * Wide{batch} * s * per_token);
}

HybridFlops hybrid_from_pattern(const std::string& pattern) {
    HybridFlops hybrid;
    for (const char symbol : pattern) {
        if (symbol == '*')
            ++hybrid.attention_layers;
        else if (symbol == '-')
            ++hybrid.mlp_layers;
        else if (symbol == 'M')
            ++hybrid.mamba_layers;
        else
            usage_error("--hybrid-override-pattern: '", symbol, "' is not one of * - M");
    }
    return hybrid;
}

HybridFlops hybrid_from_ratios(std::int64_t layers, double attention_ratio, double mlp_ratio) {
    HybridFlops hybrid;
    hybrid.attention_layers = round_half_even(static_cast<double>(layers) * attention_ratio);
    hybrid.mlp_layers = round_half_even(static_cast<double>(layers) * mlp_ratio);
    hybrid.mamba_layers = layers - hybrid.attention_layers - hybrid.mlp_layers;
    return hybrid;
}

double throughput_tflops(double flops, double seconds, std::int64_t world_size) {
    return flops / (seconds * 1e12 * static_cast<double>(world_size));
}

}  // namespace tera
