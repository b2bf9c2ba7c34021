#include "nn/deferred_grad.h"

#include "ops/linear.h"

namespace tera {

void DeferredGrad::finish(const Exec& exec, Tensor grad) {
    for (const Product& p : products_) ops::linear_wgrad(exec, grad, p.dy, p.x);
    products_.clear();
    put_off_ = 0;
}

}  // namespace tera
