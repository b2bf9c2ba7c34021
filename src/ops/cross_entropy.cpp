#include "ops/cross_entropy.h"

#include "ops/dispatch.h"

namespace tera::ops {

TERA_BACKENDS(void cross_entropy(const Exec& exec, Tensor loss, Tensor logits, const std::int32_t* labels,
                                 const float* mask, double scale))

void cross_entropy(const Exec& exec, Tensor loss, Tensor logits, const std::int32_t* labels, const float* mask,
                   double scale) {
    TERA_CHECK(loss.numel() == logits.rows() && loss.dtype == acc_dtype(logits.dtype), loss.shape, logits.shape);
    TERA_DISPATCH(exec, cross_entropy(exec, loss, logits, labels, mask, scale));
}

}  // namespace tera::ops
