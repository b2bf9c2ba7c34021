#include "ops/residual.h"

#include "ops/dispatch.h"

namespace tera::ops {

TERA_BACKENDS(void dropout_add(const Exec& exec, Tensor out, ConstTensor x, ConstTensor y, ConstTensor bias,
                               const Dropout& dropout))

Tensor dropout_add(const Exec& exec, ConstTensor x, ConstTensor y, ConstTensor bias, const Dropout& dropout) {
    TERA_CHECK(!x || x.shape == y.shape, x.shape, " and ", y.shape);
    TERA_CHECK(!bias || bias.numel() == y.cols(), bias.shape, " for ", y.shape);
    TERA_CHECK(dropout.p == 0 || (dropout.sample && dropout.B > 0), "dropout needs sample numbers");
    Tensor out = exec.like(y);
    TERA_DISPATCH(exec, dropout_add(exec, out, x, y, bias, dropout));
    return out;
}

ConstTensor dropout_backward(const Exec& exec, ConstTensor dout, const Dropout& dropout) {
    if (dropout.p == 0) return dout;
    return dropout_add(exec, {}, dout, {}, dropout);
}

}  // namespace tera::ops
