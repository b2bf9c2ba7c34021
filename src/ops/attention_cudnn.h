// cuDNN's fused attention: bf16 and f16, causal or not, GQA, head dimensions that are multiples of 8 up to 256. False
// where it does not apply (or the build has no cuDNN front end): the caller then uses its own kernel.
#pragma once

#include "ops/attention.h"

namespace tera::ops::cuda {

/// Whether this build has it at all.
bool has_cudnn_attention();
bool cudnn_attention(const Exec& exec, const AttentionSpec& spec, const AttentionOut& out, HeadRows<ConstTensor> q,
                     HeadRows<ConstTensor> k, HeadRows<ConstTensor> v);
bool cudnn_attention_backward(const Exec& exec, const AttentionSpec& spec, const AttentionGrads& grads, ConstTensor d_o,
                              HeadRows<ConstTensor> q, HeadRows<ConstTensor> k, HeadRows<ConstTensor> v,
                              const AttentionOut& out);

}  // namespace tera::ops::cuda
