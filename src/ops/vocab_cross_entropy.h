// Cross entropy of logits whose vocabulary is cut over ranks: each holds columns [first, first + V) of z [n, whole V].
// The rows' numbers are made in two steps, each followed by a reduction over the ranks:
//   top_i     max over v of z_iv                                                   maximum over the ranks
//   sums_0i   Σ over v of exp(z_iv - top_i);  sums_1i  z_i,label - top_i, if here   sum over the ranks
// and then
//   loss_i = ln sums_0i - sums_1i          dz_iv = scale mask_i (exp(z_iv - top_i) / sums_0i - [v = label_i])
#pragma once

#include "core/exec.h"

namespace tera::ops {

/// Labels count over the whole vocabulary.
struct LocalLabels {
    const std::int32_t* label;  ///< [n]
    std::int64_t first;         ///< column 0 of the logits here
};

struct VocabStats {
    Tensor top;   ///< [n], accumulation dtype
    Tensor sums;  ///< [2,n]
};

void vocab_max(const Exec& exec, Tensor top, ConstTensor logits);
void vocab_sums(const Exec& exec, const VocabStats& stats, ConstTensor logits, LocalLabels labels);
/// Writes loss [n]; with a mask [n], overwrites the logits with the gradient of scale Σ mask_i loss_i.
struct LossWeight {
    const float* mask = nullptr;
    double scale = 0;
};
void vocab_cross_entropy(const Exec& exec, Tensor loss, Tensor logits, const VocabStats& stats, LocalLabels labels,
                         LossWeight weight);

}  // namespace tera::ops
