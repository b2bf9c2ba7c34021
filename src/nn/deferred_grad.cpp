#include "nn/deferred_grad.h"

namespace tera {

void DeferredGrad::finish(const Exec& exec, Param& weight) {
    for (const Product& p : products_) add_product_grad(exec, weight, p.dy, p.x);
    products_.clear();
    put_off_ = 0;
}

}  // namespace tera
