// What a run will be, worked out without building anything: sizes on every rank, batches, iterations, operations.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "model/flops.h"
#include "model/parameter_count.h"
#include "parallel/layer_plan.h"
#include "train/layout_plan.h"
#include "train/vocab_size.h"

namespace tera {

/// The shape of the model in the words of model/parameter_count.h and model/flops.h. Validated configuration.
ParameterShape parameter_shape(const RunConfig& config, std::int64_t padded_vocab);
FlopsShape flops_shape(const RunConfig& config, std::int64_t padded_vocab);
LayerPlanRequest layer_plan_request(const RunConfig& config);

struct RateAtIteration {
    std::int64_t iteration = 0;
    double learning_rate = 0;  // after that iteration, as its log line shows it
};

struct RunPlan {
    VocabSize vocab;
    std::int64_t padded_vocab_size = 0;
    ParameterCount parameters;
    LayerPlan layers;
    std::vector<std::int64_t> layers_per_stage;  // T5: encoder and decoder together
    std::int64_t num_micro_batches = 0;          // at the full batch size
    std::optional<std::int64_t> train_iters;
    double flops_per_iteration = 0;  // at the full batch size, by the formula of the log format
    std::vector<RateAtIteration> learning_rate;
    std::optional<LayoutPlan> layout;  // memory and communication; not for what cannot be built
    std::string layout_missing;        // why it could not be counted, where it should be
    std::string not_runnable;          // why training refuses it in this version; "" if it does not
};

/// Why what a rank holds cannot be counted: the first flag that asks for what is not built; empty if there is none.
/// What is logged and which tokens count in the loss change no memory, and layouts are checked elsewhere.
std::string uncounted_flag(const RunConfig& config);

/// UsageError for anything in the configuration that cannot be.
RunPlan make_plan(const RunConfig& config, const std::vector<std::int64_t>& at_iterations);

std::string plan_text(const RunConfig& config, const RunPlan& plan);
nlohmann::json plan_json(const RunConfig& config, const RunPlan& plan);

}  // namespace tera
