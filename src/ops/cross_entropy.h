// Cross entropy of logits [n,V] (accumulation dtype) with integer labels [n].
//   loss_i = ln Σ_v exp(z_iv) - z_i,label          dz_iv = scale mask_i (softmax(z_i)_v - [v = label_i])
#pragma once

#include "core/exec.h"

namespace tera::ops {

/// Writes loss [n]; with a mask [n], overwrites the logits with the gradient of scale Σ mask_i loss_i.
void cross_entropy(const Exec& exec, Tensor loss, Tensor logits, const std::int32_t* labels, const float* mask,
                   double scale);

}  // namespace tera::ops
