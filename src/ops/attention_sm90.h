// Our attention on Hopper's GPUs: bf16 and f16, document masks, dropout, causal or not, GQA, heads of 64, 96 and 128
// elements. False where it does not apply.
#pragma once

#include "ops/attention.h"

namespace tera::ops::cuda {

#ifdef TERA_SM90  // built for these GPUs
bool sm90_attention(const Exec& exec, const AttentionSpec& spec, const AttentionOut& out, HeadRows<ConstTensor> q,
                    HeadRows<ConstTensor> k, HeadRows<ConstTensor> v);
bool sm90_attention_backward(const Exec& exec, const AttentionSpec& spec, const AttentionGrads& grads, ConstTensor d_o,
                             HeadRows<ConstTensor> q, HeadRows<ConstTensor> k, HeadRows<ConstTensor> v,
                             const AttentionOut& out);
#else
inline bool sm90_attention(const Exec&, const AttentionSpec&, const AttentionOut&, HeadRows<ConstTensor>,
                           HeadRows<ConstTensor>, HeadRows<ConstTensor>) {
    return false;
}
inline bool sm90_attention_backward(const Exec&, const AttentionSpec&, const AttentionGrads&, ConstTensor,
                                    HeadRows<ConstTensor>, HeadRows<ConstTensor>, HeadRows<ConstTensor>,
                                    const AttentionOut&) {
    return false;
}
#endif

}  // namespace tera::ops::cuda
