// The two products around SwiGLU with the activation in them, so that what one writes the other need not read again. On
// Hopper's GPUs and in bf16; they compute what a product and the activation's own kernel would.
#pragma once

#include "core/exec.h"
#include "ops/activation.h"

namespace tera::ops::cuda {

#ifdef TERA_SM90  // built for these GPUs

/// Whether there is one for such an activation of `rows` rows, `half` wide, beside a dimension of `inner`, and it pays.
bool has_gated_products(const Exec& exec, ActivationKind kind, DType dtype, std::int64_t rows, std::int64_t inner,
                        std::int64_t half);
/// h = x Wᵀ, [gate, up] in each row, and a = f(gate) up.
void gated_product(const Exec& exec, Tensor a, Tensor h, ConstTensor x, ConstTensor w);
/// dh, from dy = the gradient of a Wᵀ; and a again, if wanted.
void gated_product_backward(const Exec& exec, Tensor dh, Tensor a, ConstTensor dy, ConstTensor w, ConstTensor h);

#else
inline bool has_gated_products(const Exec&, ActivationKind, DType, std::int64_t, std::int64_t, std::int64_t) {
    return false;
}
inline void gated_product(const Exec&, Tensor, Tensor, ConstTensor, ConstTensor) {}
inline void gated_product_backward(const Exec&, Tensor, Tensor, ConstTensor, ConstTensor, ConstTensor) {}
#endif

}  // namespace tera::ops::cuda
