// One reading of a list of tensors: sum of squares, zeros, and where the first inf or NaN is.
//
// Elements are squared and summed in double: a square of a finite float never overflows there, so a sum is finite
// exactly when every element is, and no second look for inf and NaN is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/exec.h"
#include "optim/main_weights.h"

namespace tera {

struct Measured {
    double sum_squares = 0;        ///< in an order that does not depend on the number of threads
    std::int64_t zeros = 0;        ///< elements equal to 0
    std::int64_t not_finite = -1;  ///< index of the first tensor that has an inf or a NaN; -1: none
};

/// What one rank has found, and the sums over all ranks that agree.
struct RanksMeasured {
    struct Sums {
        double squares = 0, zeros = 0;
        double not_finite = 0;  ///< ranks that have found an inf or a NaN
    };
    Measured here;
    Sums all;

    RanksMeasured() = default;
    /// Of one rank alone.
    explicit RanksMeasured(const Measured& m)
        : here(m), all{m.sum_squares, static_cast<double>(m.zeros), m.not_finite >= 0 ? 1.0 : 0.0} {}

    /// `all` of one that lies at `at`, as what ranks add up: [3].
    static Tensor sums(std::byte* at, Device device) {
        static_assert(sizeof(Sums) == 3 * sizeof(double));
        return Tensor(at + offsetof(RanksMeasured, all), DType::f64, device, {3});
    }
};

/// Waits for the result.
Measured measure_tensors(const Exec& exec, const std::vector<SplitTensor>& tensors);

}  // namespace tera
