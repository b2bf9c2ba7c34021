#include "ops/activation.h"

#include "ops/dispatch.h"

namespace tera::ops {

TERA_BACKENDS(void activation(const Exec& exec, ActivationKind kind, Tensor a, ConstTensor h))
TERA_BACKENDS(void activation_backward(const Exec& exec, ActivationKind kind, Tensor dh, ConstTensor da, ConstTensor h))
TERA_BACKENDS(void activation_backward_again(const Exec& exec, ActivationKind kind, Tensor dh, Tensor da_then_a,
                                             ConstTensor h, Tensor db))

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

Tensor activation_backward_again(const Exec& exec, ActivationKind kind, Tensor da_then_a, ConstTensor h, Tensor db) {
    TERA_CHECK(da_then_a.rows() == h.rows() && da_then_a.cols() * (is_gated(kind) ? 2 : 1) == h.cols(), da_then_a.shape,
               h.shape);
    TERA_CHECK(!db || db.numel() == h.cols(), db.shape, " for ", h.shape);
    Tensor dh = exec.like(h);
    TERA_DISPATCH_WITH_SCRATCH(exec, activation_backward_again(exec, kind, dh, da_then_a, h, db));
    return dh;
}

}  // namespace tera::ops
