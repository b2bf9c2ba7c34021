// y = x Wᵀ + b and its transposes. x [T,K], W [N,K], y [T,N], b [N].
//   dx = dy W          dW += or = dyᵀ x          db += Σ_t dy_t
#pragma once

#include <optional>

#include "core/exec.h"
#include "ops/activation.h"
#include "ops/residual.h"

namespace tera::ops {

Tensor linear(const Exec& exec, ConstTensor x, ConstTensor w, ConstTensor bias = {});
Tensor linear_dgrad(const Exec& exec, ConstTensor dy, ConstTensor w);
/// What dw holds before: a sum to add to, or nothing of worth.
enum class Before : std::uint8_t { sum, nothing };
/// db may be absent.
void linear_wgrad(const Exec& exec, Tensor dw, ConstTensor dy, ConstTensor x, Tensor db = {},
                  Before before = Before::sum);
void bias_grad(const Exec& exec, Tensor db, ConstTensor dy);

/// residual.x + dropout(x Wᵀ + b): a GPU adds in the product itself where nothing is dropped.
Tensor linear_residual(const Exec& exec, ConstTensor x, ConstTensor w, ConstTensor bias, const Residual& residual);

/// h = x Wᵀ + b, allocated in `keep`, and a = activation(h), in `temp`; a GPU does it in the product itself
/// where it can.
struct Activated {
    Tensor h, a;
};
Activated linear_activation(const Exec& keep, const Exec& temp, ActivationKind kind, ConstTensor x, ConstTensor w,
                            ConstTensor bias);

/// The gradient by h of activation(h) Wᵀ, from its own, dy; db += its column sums, if it is there; and activation(h)
/// once more, if it is wanted. Absent, and nothing done, where no GPU does it in one product.
struct ActivatedBackward {
    Tensor dh, a;
};
std::optional<ActivatedBackward> linear_dgrad_activation(const Exec& exec, ActivationKind kind, ConstTensor dy,
                                                         ConstTensor w, ConstTensor h, Tensor db, bool rebuild);

/// y (any float dtype, [T,N]) = x Wᵀ into memory the caller owns.
void linear_into(const Exec& exec, Tensor y, ConstTensor x, ConstTensor w);
/// dx = dy W into memory the caller owns.
void linear_dgrad_into(const Exec& exec, Tensor dx, ConstTensor dy, ConstTensor w);

}  // namespace tera::ops
