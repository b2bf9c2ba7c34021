// Backend interface of linear.h: outputs, inputs, scalars; shapes already checked. The fused ones build on other ops.
#pragma once

#include "ops/activation_backends.h"
#include "ops/linear.h"
#include "ops/residual.h"

namespace tera::ops {

TERA_BACKENDS(void linear(const Exec& exec, Tensor y, ConstTensor x, ConstTensor w, ConstTensor bias))
TERA_BACKENDS(void linear_dgrad(const Exec& exec, Tensor dx, ConstTensor dy, ConstTensor w))
TERA_BACKENDS(void linear_wgrad(const Exec& exec, Tensor dw, ConstTensor dy, ConstTensor x, Tensor db, Before before))
TERA_BACKENDS(void linear_residual(const Exec& exec, Tensor out, ConstTensor x, ConstTensor w, ConstTensor bias,
                                   const Residual& residual))
TERA_BACKENDS(void linear_activation(const Exec& exec, ActivationKind kind, Tensor a, Tensor h, ConstTensor x,
                                     ConstTensor w, ConstTensor bias))

TERA_BACKENDS(void dropout_add(const Exec& exec, Tensor out, ConstTensor x, ConstTensor y, ConstTensor bias,
                               const Dropout& dropout))

}  // namespace tera::ops
