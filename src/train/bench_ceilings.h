// What this device can do at most, measured in the same run as the step: a large square product, the model's own
// products each way, and a copy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nn/param.h"
#include "train/workspace.h"

namespace tera {

/// y [rows, out] = x [rows, in] W^T, its dx = dy W and its dW += dy^T x, in TFLOP/s; 0: no memory was left to measure.
struct GemmRates {
    std::string name;
    std::int64_t rows = 0, out = 0, in = 0;
    double forward = 0, dgrad = 0, wgrad = 0;
};

struct Ceilings {
    std::int64_t square = 0;  ///< n of the n^3 product
    std::string square_dtype;
    double square_tflops = 0;
    std::vector<GemmRates> gemms;
    std::int64_t copy_bytes = 0;
    double copy_bytes_per_second = 0;  ///< read plus written
};

/// params: of the model, whose weights and gradients serve as operands (so the gradients are not zero afterwards).
/// Memory comes from the workspace, which must be reset; it is reset again at the end.
Ceilings measure_ceilings(Workspace& workspace, const std::vector<Param*>& params, std::int64_t tokens);

}  // namespace tera
