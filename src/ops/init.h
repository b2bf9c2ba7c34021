// Initial values: constants, and random numbers as a function of (seed, stream, index). CPU and GPU give the same bits.
#pragma once

#include "core/exec.h"

namespace tera::ops {

void fill_constant(const Exec& exec, Tensor out, double value);

struct RandomFill {
    bool normal = true;  ///< else uniform in [-scale, scale)
    double scale = 1;    ///< standard deviation, or the bound
    std::uint64_t seed = 0;
    std::uint64_t stream = 0;  ///< hash of the parameter's name
    /// Which elements of the whole tensor these are: runs of `run` neighbours (0: all are one run), the r-th from
    /// first + r stride.
    std::int64_t first = 0, run = 0, stride = 0;
    std::int64_t skip = 0;  ///< so many of them come before the first that is wanted
};
void fill_random(const Exec& exec, Tensor out, const RandomFill& fill);

}  // namespace tera::ops
