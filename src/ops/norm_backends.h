// Backend interface of norm.h: outputs, inputs, scalars; shapes already checked.
#pragma once

#include "ops/dispatch.h"
#include "ops/norm.h"

namespace tera::ops {

TERA_BACKENDS(void norm(const Exec& exec, const NormSpec& spec, Tensor y, ConstTensor x, ConstTensor w, ConstTensor b,
                        const NormStats& stats))
TERA_BACKENDS(void norm_backward(const Exec& exec, const NormSpec& spec, const NormGrads& grads, ConstTensor dy,
                                 ConstTensor x, ConstTensor w, const NormStats& stats))
TERA_BACKENDS(void head_norm(const Exec& exec, const NormSpec& spec, HeadCounts counts, Tensor out, ConstTensor qkv,
                             const HeadNormWeights& weights, const NormStats& stats))
TERA_BACKENDS(void head_norm_backward(const Exec& exec, const NormSpec& spec, HeadCounts counts,
                                      const HeadNormGrads& grads, Tensor dqkv, ConstTensor qkv,
                                      const HeadNormWeights& weights, const NormStats& stats))

}  // namespace tera::ops
