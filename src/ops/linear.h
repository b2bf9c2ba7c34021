// y = x Wᵀ + b and its transposes. x [T,K], W [N,K], y [T,N], b [N].
//   dx = dy W          dW += dyᵀ x          db += Σ_t dy_t
#pragma once

#include "core/exec.h"

namespace tera::ops {

Tensor linear(const Exec& exec, ConstTensor x, ConstTensor w, ConstTensor bias = {});
Tensor linear_dgrad(const Exec& exec, ConstTensor dy, ConstTensor w);
void linear_wgrad(const Exec& exec, Tensor dw, ConstTensor dy, ConstTensor x);
void bias_grad(const Exec& exec, Tensor db, ConstTensor dy);

/// y (any float dtype, [T,N]) = x Wᵀ into memory the caller owns.
void linear_into(const Exec& exec, Tensor y, ConstTensor x, ConstTensor w);
/// dx = dy W into memory the caller owns.
void linear_dgrad_into(const Exec& exec, Tensor dx, ConstTensor dy, ConstTensor w);

}  // namespace tera::ops
