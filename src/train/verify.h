// verify: proves that the layout of a run's flags computes what one rank does. Both train a model with the flags' kinds
// of layers, numbers of layers and ranks, but small, for a few steps in f64; losses, norms, every gradient and every
// weight are compared.
#pragma once

#include <string>
#include <vector>

#include "comm/progress.h"
#include "config/run_config.h"
#include "core/engine.h"
#include "train/parity.h"

namespace tera {

/// What the flags are verified with.
struct VerifyPlan {
    ParityTraining training;
    ParityLayout layout;
    std::string smaller;  ///< "width 4096 to 16, ..."; what is not named is as the flags say
};
/// `config` is validated for the layout's world size.
VerifyPlan plan_verification(const RunConfig& config);

struct VerifyReport {
    std::vector<std::string> lines;
    std::string first_difference;  ///< empty: there is none
};
/// Differences up to `bound` of a tensor's largest element are none, nor are those of a tensor that is zero but for
/// rounding. The ranks are threads of this process.
VerifyReport verify_layout(const VerifyPlan& plan, double bound = 1e-12);
/// This process is one of the ranks, with the engine's device: over NCCL if that is a GPU, else over `world` itself.
/// Rank 0 has the report, those of the others are empty.
VerifyReport verify_layout(const VerifyPlan& plan, Comm& world, const Engine& engine, Progress* progress,
                           double bound = 1e-12);

}  // namespace tera
