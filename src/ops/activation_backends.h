// Backend interface of activation.h; shapes already checked.
#pragma once

#include "ops/activation.h"
#include "ops/dispatch.h"

namespace tera::ops {

TERA_BACKENDS(void activation(const Exec& exec, ActivationKind kind, Tensor a, ConstTensor h))

/// rebuilt is da itself where the output is written over it; it and db may be absent.
struct ActivationGrads {
    Tensor dh, rebuilt, db;
};
TERA_BACKENDS(void activation_backward(const Exec& exec, ActivationKind kind, const ActivationGrads& to, ConstTensor da,
                                       ConstTensor h))

}  // namespace tera::ops
