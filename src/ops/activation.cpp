#include "ops/activation.h"

#include "ops/dispatch.h"

namespace tera::ops {

TERA_BACKENDS(void activation(const Exec& exec, ActivationKind kind, Tensor a, ConstTensor h))
TERA_BACKENDS(void activation_backward(const Exec& exec, ActivationKind kind, Tensor dh, ConstTensor da, ConstTensor h))

Tensor activation(const Exec& exec, ActivationKind kind, ConstTensor h) {
    bool gated = is_gated(kind);
    TERA_CHECK(!gated || h.cols() % 2 == 0, h.shape);
    Tensor a = exec.tensor(h.dtype, {h.rows(), gated ? h.cols() / 2 : h.cols()});
    TERA_DISPATCH(exec, activation(exec, kind, a, h));
    return a;
}

Tensor activation_backward(const Exec& exec, ActivationKind kind, ConstTensor da, ConstTensor h) {
    TERA_CHECK(da.rows() == h.rows(), da.shape, h.shape);
    Tensor dh = exec.like(h);
    TERA_DISPATCH(exec, activation_backward(exec, kind, dh, da, h));
    return dh;
}

}  // namespace tera::ops
