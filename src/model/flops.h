// Floating-point operations of one training step, as the reference versions count them for their throughput figures.
// B samples of s tokens; h hidden, f MLP width, q = K·H, L layers, H heads, G key/value heads, V padded vocabulary;
// k = 1.5 for a gated MLP, else 1.
//
//   core_0_12   B·s·[12·L·h·f·k + 12·L·h·q·(1 + G/H + s/(2h)) + 6·h·V]
//   core_0_7    12·B·s·L·h²·[(1 + G/H + s/h)·q/h + (f/h)·k + V/(2·L·h)]       (0.7 to 0.11, Swiss AI)
//   core_0_6    the same without the factor q/h
//   core_0_5    60·B·s·L·h²·[1 + G/(5H) + s/(5h) + V/(10·L·h)]                whatever f and the activation
//   jsc         c·r·B·s·L·h²·(1 + s/(6h) + V/(16·L·h)),  c = 24 (gated 32), r = 4 with recompute, else 3
//
// Mixture of experts, multi-token prediction, multi-latent attention and hybrid stacks: see MoeFlops and below.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tera {

enum class FlopsFormula : std::uint8_t { core_0_12, core_0_7, core_0_6, core_0_5, jsc };

/// The formula behind the throughput field of a log format (--log-format).
FlopsFormula flops_formula_of(const std::string& log_format);

/// Experts: layer i is a mixture where layer_is_moe[i]; `shared` is the width of the always-on expert.
struct MoeFlops {
    std::vector<bool> layer_is_moe;
    std::int64_t top_k = 1, expert_ffn = 0, shared = 0;
};

/// Multi-latent attention (core_0_12 only). q_rank 0: no low-rank query.
struct LatentFlops {
    std::int64_t q_rank = 0, kv_rank = 0, qk_dim = 0, rope_dim = 0, v_dim = 0;
};

struct FlopsShape {
    std::int64_t layers = 0, hidden = 0, ffn = 0, heads = 0, kv_heads = 0, head_dim = 0;
    std::int64_t vocab = 0;  // padded
    std::int64_t sequence = 0;
    bool gated = false;
    bool recompute = false;             // jsc only
    std::int64_t predicted_ahead = 0;   // multi-token prediction layers (core_0_12 only)
    std::optional<MoeFlops> moe;        // core_0_12 and core_0_7
    std::optional<LatentFlops> latent;  // core_0_12 only
};

double flops_per_step(FlopsFormula formula, const FlopsShape& shape, std::int64_t batch);

/// Stack of attention (*), MLP (-) and Mamba (M) layers:
///   3·B·s·[n*·4q(h + h·G/H + s/2) + n-·4·h·f·k + nM·(2h(2d + 2·groups·state + d//head_dim) + 7·d·state + 2·d·h) +
///   2·h·V]
/// with d = 2h.
struct HybridFlops {
    std::int64_t attention_layers = 0, mlp_layers = 0, mamba_layers = 0;
    std::int64_t state = 128, head_dim = 64, groups = 8;
};
double hybrid_flops_per_step(const FlopsShape& shape, const HybridFlops& hybrid, std::int64_t batch);

/// Layer counts of a hybrid stack from its pattern of *, - and M; UsageError for another symbol.
HybridFlops hybrid_from_pattern(const std::string& pattern);
/// ... and from the shares of attention and MLP layers, each rounded half to even, the rest Mamba.
HybridFlops hybrid_from_ratios(std::int64_t layers, double attention_ratio, double mlp_ratio);

/// TFLOP/s per GPU.
double throughput_tflops(double flops, double seconds, std::int64_t world_size);

}  // namespace tera
