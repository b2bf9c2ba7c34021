// Evaluation: mean loss over the tokens of some batches, dropout off, nothing kept.
#pragma once

#include <cstdint>
#include <functional>

#include "train/pipeline.h"

namespace tera {

struct EvaluationRequest {
    std::int64_t iterations = 0;     ///< --eval-iters
    std::int64_t micro_batches = 1;  ///< of each
    /// Called before iteration i = 1 ... iterations; may be empty.
    std::function<void(std::int64_t)> progress{};
};

/// Σ loss and Σ tokens over everything evaluated, on all ranks.
LossSum evaluate(Pipeline& pipeline, const MicroBatchSource& next, const EvaluationRequest& request);

}  // namespace tera
