// Sums of the losses of a micro-batch, in double, in a fixed order:
//   sums[0] += Σ mask_t loss_t          sums[1] += Σ mask_t
// A loss under a mask of 0 does not count even if it is infinite.
#pragma once

#include "core/exec.h"

namespace tera::ops {

/// sums [2] f64. On a GPU it is only enqueued.
void add_masked_sum(const Exec& exec, Tensor sums, ConstTensor loss, const float* mask);

}  // namespace tera::ops
