// Our attention on matrix units: bf16 and f16, document masks, dropout, causal or not, GQA, head dimensions that are
// multiples of 8 up to 256. False where it does not apply.
#pragma once

#include "ops/attention.h"

namespace tera::ops::cuda {

bool mma_attention(const Exec& exec, const AttentionSpec& spec, const AttentionOut& out, HeadRows<ConstTensor> q,
                   HeadRows<ConstTensor> k, HeadRows<ConstTensor> v);
bool mma_attention_backward(const Exec& exec, const AttentionSpec& spec, const AttentionGrads& grads, ConstTensor d_o,
                            HeadRows<ConstTensor> q, HeadRows<ConstTensor> k, HeadRows<ConstTensor> v,
                            const AttentionOut& out);

/// delta [B,H,Sq] = Σ_k d_o o, of heads of 16-bit elements: what the gradients of the probabilities are measured from.
void attention_delta(const Exec& exec, const AttentionSpec& spec, Tensor delta, ConstTensor d_o, ConstTensor o);

}  // namespace tera::ops::cuda
