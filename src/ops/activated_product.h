// The two products around an MLP's activation with the activation in them, so that what one writes the other need not
// read again. On Hopper's GPUs and in bf16. Forward they give what a product and the activation's own kernel would, bit
// for bit; backward the product is not rounded before the slope.
#pragma once

#include "core/exec.h"
#include "ops/activation.h"

namespace tera::ops::cuda {

/// An activation of `rows` rows, `width` wide (its result), beside a dimension of `inner`.
struct ActivatedSizes {
    std::int64_t rows, inner, width;
};
/// What the backward product gives: dh; the activation's result again, if wanted; db += the column sums of dh, if
/// wanted.
struct ActivatedGrads {
    Tensor dh, a, db;
};

#ifdef TERA_SM90  // built for these GPUs

/// Whether there is one, and it pays.
bool has_gated_products(const Exec& exec, ActivationKind kind, DType dtype, const ActivatedSizes& sizes);
/// h = x Wᵀ, [gate, up] in each row, and a = f(gate) up.
void gated_product(const Exec& exec, Tensor a, Tensor h, ConstTensor x, ConstTensor w);
/// From dy = the gradient of a Wᵀ; there is no db.
void gated_product_backward(const Exec& exec, const ActivatedGrads& to, ConstTensor dy, ConstTensor w, ConstTensor h);

/// The same for activations without a gate.
bool has_plain_products(const Exec& exec, ActivationKind kind, DType dtype, const ActivatedSizes& sizes);
/// h = x Wᵀ + bias, if there is one, and a = f(h).
void plain_product(const Exec& exec, ActivationKind kind, Tensor a, Tensor h, ConstTensor x, ConstTensor w,
                   ConstTensor bias);
void plain_product_backward(const Exec& exec, ActivationKind kind, const ActivatedGrads& to, ConstTensor dy,
                            ConstTensor w, ConstTensor h);

#else
inline bool has_gated_products(const Exec&, ActivationKind, DType, const ActivatedSizes&) { return false; }
inline void gated_product(const Exec&, Tensor, Tensor, ConstTensor, ConstTensor) {}
inline void gated_product_backward(const Exec&, const ActivatedGrads&, ConstTensor, ConstTensor, ConstTensor) {}
inline bool has_plain_products(const Exec&, ActivationKind, DType, const ActivatedSizes&) { return false; }
inline void plain_product(const Exec&, ActivationKind, Tensor, Tensor, ConstTensor, ConstTensor, ConstTensor) {}
inline void plain_product_backward(const Exec&, ActivationKind, const ActivatedGrads&, ConstTensor, ConstTensor,
                                   ConstTensor) {}
#endif

}  // namespace tera::ops::cuda
