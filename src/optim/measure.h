// One reading of a list of tensors: sum of squares, zeros, and where the first inf or NaN is.
//
// Elements are squared and summed in double: a square of a finite float never overflows there, so a sum is finite
// exactly when every element is, and no second look for inf and NaN is needed.
#pragma once

#include <cstdint>
#include <vector>

#include "core/exec.h"

namespace tera {

struct Measured {
    double sum_squares = 0;        ///< in an order that does not depend on the number of threads
    std::int64_t zeros = 0;        ///< elements equal to 0
    std::int64_t not_finite = -1;  ///< index of the first tensor that has an inf or a NaN; -1: none
};

/// Waits for the result.
Measured measure_tensors(const Exec& exec, const std::vector<Tensor>& tensors);

}  // namespace tera
