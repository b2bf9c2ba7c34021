// LayerNorm and RMSNorm over the last dimension, statistics in the accumulation dtype.
//   LayerNorm  y = (x - mean) rstd w + b      rstd = 1/sqrt(var + eps)
//   RMSNorm    y = x rstd w                   rstd = 1/sqrt(mean(x²) + eps)
// one_plus: the stored weight w acts as 1 + w.
#pragma once

#include "core/exec.h"

namespace tera::ops {

struct NormSpec {
    bool rms = false;
    bool one_plus = false;
    double eps = 1e-5;
};

struct NormStats {
    Tensor mean;  ///< [rows], LayerNorm only
    Tensor rstd;  ///< [rows]
};

/// y like x [T,D]. The statistics are allocated in exec too.
Tensor norm(const Exec& exec, const NormSpec& spec, ConstTensor x, ConstTensor w, ConstTensor b, NormStats& stats);

struct NormGrads {
    Tensor dx;  ///< += : the gradient of the residual stream
    Tensor dw;  ///< +=
    Tensor db;  ///< += ; absent without bias
    /// += Σ over rows of dx as it came, if wanted: the gradient of a bias that was added to the stream before.
    Tensor dx_sum = {};
};
void norm_backward(const Exec& exec, const NormSpec& spec, const NormGrads& grads, ConstTensor dy, ConstTensor x,
                   ConstTensor w, const NormStats& stats);

/// Query/key norm: qkv [T,(H+2G)K]; every query head is normed with wq, every key head with wk, values are copied.
struct HeadNormWeights {
    ConstTensor wq, bq, wk, bk;
};
struct HeadCounts {
    std::int64_t heads, kv_heads, head_dim;
};
Tensor head_norm(const Exec& exec, const NormSpec& spec, HeadCounts counts, ConstTensor qkv,
                 const HeadNormWeights& weights, NormStats& stats);

struct HeadNormGrads {
    Tensor dwq, dbq, dwk, dbk;
};
/// dqkv holds the gradient of the normed heads and receives that of the raw ones.
void head_norm_backward(const Exec& exec, const NormSpec& spec, HeadCounts counts, const HeadNormGrads& grads,
                        Tensor dqkv, ConstTensor qkv, const HeadNormWeights& weights, const NormStats& stats);

}  // namespace tera::ops
