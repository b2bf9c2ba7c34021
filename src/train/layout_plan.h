// What a layout of ranks costs: memory of a rank on every stage, what it sends in a step, and how long stages wait for
// each other. All of it counted by dry runs of the very code that trains.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "train/memory_plan.h"

namespace tera {

struct LayoutPlan {
    std::vector<MemoryPlan> stages;  ///< of the fullest rank of each
    std::string device;              ///< what it was counted for: "CPU", "NVIDIA H200", "a GPU, on paper"
    /// Share of a step in which a stage has nothing to do: (P-1) / (V·M + P-1).
    double bubble = 0;

    const MemoryPlan& fullest() const;
};

/// `config` is validated and knows its padded vocabulary; micro_batches: of a step on each data-parallel rank. With
/// --device cuda the GPU need not be there.
LayoutPlan plan_layout(const RunConfig& config, std::int64_t true_vocab, std::int64_t micro_batches);

double pipeline_bubble(std::int64_t stages, std::int64_t chunks, std::int64_t micro_batches);

}  // namespace tera
