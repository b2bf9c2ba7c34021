// What a layout of ranks costs: memory of a rank on every stage and what it sends in a step, both counted by dry runs
// of the very code that trains, and how long stages wait for each other.
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
    double bubble = 0;               ///< see pipeline_bubble
    /// About so many bytes of each GPU come on top of a rank's: CUDA's context, the libraries' code, NCCL's buffers.
    std::size_t libraries_about = 0;

    const MemoryPlan& fullest() const;
};

/// `config` is validated and knows its padded vocabulary; micro_batches: of a step on each data-parallel rank. With
/// --device cuda the GPU need not be there.
LayoutPlan plan_layout(const RunConfig& config, std::int64_t true_vocab, std::int64_t micro_batches);

/// ... of some of its stages only.
LayoutPlan plan_stages(const RunConfig& config, std::int64_t true_vocab, std::int64_t micro_batches,
                       const std::vector<int>& stages);

/// Share of a step in which a stage, on the average, has nothing to do while all go at the pace of the slowest:
/// 1 - average/slowest · V·M / (V·M + P-1), for even stages (P-1) / (V·M + P-1). work: of each stage, in any unit.
double pipeline_bubble(const std::vector<double>& work, std::int64_t chunks, std::int64_t micro_batches);
/// ... of a layout. Work is counted in FLOPs, those of the output matrix on the last stage.
double pipeline_bubble(const RunConfig& config, std::int64_t micro_batches);

/// FLOPs of one sample.
struct SampleWork {
    double layer = 0, head = 0;
};
SampleWork work_of_sample(const RunConfig& config);

}  // namespace tera
