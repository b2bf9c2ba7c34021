#include "ops/activation.h"

#include "ops/activation_backends.h"

namespace tera::ops {

Tensor activation(const Exec& exec, ActivationKind kind, ConstTensor h) {
    bool gated = is_gated(kind);
    TERA_CHECK(!gated || h.cols() % 2 == 0, h.shape);
    Tensor a = exec.tensor(h.dtype, {h.rows(), gated ? h.cols() / 2 : h.cols()});
    TERA_DISPATCH(exec, activation(exec, kind, a, h));
    return a;
}

namespace {

Tensor backward(const Exec& exec, ActivationKind kind, ConstTensor da, Tensor rebuilt, ConstTensor h, Tensor db) {
    TERA_CHECK(da.rows() == h.rows() && da.cols() * (is_gated(kind) ? 2 : 1) == h.cols(), da.shape, h.shape);
    TERA_CHECK(!db || db.numel() == h.cols(), db.shape, " for ", h.shape);
    Tensor dh = exec.like(h);
    TERA_DISPATCH_WITH_SCRATCH(exec, activation_backward(exec, kind, {dh, rebuilt, db}, da, h));
    return dh;
}

}  // namespace

Tensor activation_backward(const Exec& exec, ActivationKind kind, ConstTensor da, ConstTensor h, Tensor db) {
    return backward(exec, kind, da, {}, h, db);
}

Tensor activation_backward_again(const Exec& exec, ActivationKind kind, Tensor da_then_a, ConstTensor h, Tensor db) {
    return backward(exec, kind, da_then_a, da_then_a, h, db);
}

}  // namespace tera::ops
