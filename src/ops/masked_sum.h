// Sums of the losses of a micro-batch: Σ mask_t loss_t and Σ mask_t, in double, in a fixed order. A loss under a mask
// of 0 does not count even if it is infinite.
#pragma once

#include "core/exec.h"

namespace tera::ops {

struct MaskedSum {
    double loss = 0, weight = 0;
};

/// Waits for the result.
MaskedSum masked_sum(const Exec& exec, ConstTensor loss, const float* mask);

}  // namespace tera::ops
