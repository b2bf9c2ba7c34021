// What is to be known about the gradients before a step, and the factor that clips them.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/param.h"
#include "optim/measure.h"

namespace tera {

/// Over all elements of all gradients, as they lie in memory (loss scale included).
struct GradStats {
    double sum_squares = 0;
    std::int64_t zeros = 0;             ///< elements equal to 0
    const Param* not_finite = nullptr;  ///< the first parameter here whose gradient has an inf or a NaN; null: none
    bool finite_elsewhere = true;       ///< on the other ranks

    bool finite() const { return not_finite == nullptr && finite_elsewhere; }
    double norm() const;  ///< sqrt(sum_squares)
};

GradStats measure_grads(const Exec& exec, const std::vector<ParamSlice>& slices);
/// `measured`: of the gradients of these, in their order.
GradStats grad_stats(const RanksMeasured& measured, const std::vector<ParamSlice>& slices);
std::vector<SplitTensor> grads_of(const std::vector<ParamSlice>& slices);

/// min(1, max_norm / (norm + 1e-6)); 1 when max_norm is 0 (clipping off).
double clip_factor(double norm, double max_norm);

/// sqrt(Σ w²) over the given tensors (main weights), summed as the gradients are.
double norm_of(const Exec& exec, const std::vector<SplitTensor>& tensors);

}  // namespace tera
