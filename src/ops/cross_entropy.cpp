#include "ops/cross_entropy.h"

#include "ops/dispatch.h"

namespace tera::ops {

namespace cpu {
void cross_entropy(const Exec& exec, Tensor loss, Tensor logits, const std::int32_t* labels, const double* weight);
}

void cross_entropy(const Exec& exec, Tensor loss, Tensor logits, const std::int32_t* labels, const double* weight) {
    TERA_CHECK(loss.numel() == logits.rows() && loss.dtype == logits.dtype, loss.shape, logits.shape);
    TERA_DISPATCH(exec, cross_entropy(exec, loss, logits, labels, weight));
}

}  // namespace tera::ops
