// Which layout to take for a number of GPUs and their memory: tries those that make sense, keeps what fits, and orders
// it by an estimate of the tokens trained in a second. (Without --global-batch-size layouts have batches of their own,
// so the time of a step alone says nothing.)
//
//   compute    model FLOPs / (GPUs · sustained), a third more with full recompute
//   tensor     bytes sent / link within a node, where all of its group are; all waited for
//   context    the same, half of it hidden behind computing
//   data       bytes sent / link between nodes (within one if all GPUs are in it), half of it hidden
//   pipeline   bytes sent / link between nodes, plus the bubble, in which nothing is computed
// Bytes, memory and bubble are those of the plan; speeds are assumptions, printed with the result. Only the order is
// meant.
#pragma once

#include <string>
#include <vector>

#include "config/run_config.h"
#include "train/layout_plan.h"

namespace tera {

struct SearchRequest {
    std::int64_t gpus = 1, gpus_per_node = 8;
    double memory_gib = 80;                            ///< of one GPU
    double reserve_gib = 2;                            ///< for the driver and libraries
    double sustained = 450e12;                         ///< FLOP/s of one GPU
    double within_node = 300e9, between_nodes = 40e9;  ///< bytes/s of one GPU
    std::size_t most = 5;
};

struct LayoutChoice {
    RunConfig config;                           ///< validated, with the layout
    std::int64_t batch = 0, micro_batches = 0;  ///< of a step: samples in all, micro-batches of a rank
    LayoutPlan plan;
    double seconds = 0;  ///< of a step, estimated
    double tokens_per_second_per_gpu = 0;
    std::string flags;     ///< what to add to the command
    std::string replaced;  ///< what to take out of it
};

/// The configuration without the flags that a search chooses itself. Parsed, not validated.
RunConfig without_layout(RunConfig config);

/// The best first; empty if nothing fits, UsageError if nothing can be. `config` is parsed, not validated; its layout
/// flags are not looked at.
std::vector<LayoutChoice> search_layouts(const RunConfig& config, const SearchRequest& request);

std::string layouts_text(const SearchRequest& request, const std::vector<LayoutChoice>& choices);

}  // namespace tera
