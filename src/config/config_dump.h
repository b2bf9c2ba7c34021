// The configuration as text: Megatron's argument block, the record kept in a checkpoint, and what changed at resume.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "config/run_config.h"

namespace tera {

/// Every argument and derived value as (dest, str(value) of Python), sorted case-insensitively by name.
std::vector<std::pair<std::string, std::string>> argument_list(const RunConfig& config);

/// The lines from "---- arguments ----" to "---- end of arguments ----", each ended by a newline:
///   two spaces, name, space, dots up to column 48, space, value.
std::string arguments_block(const RunConfig& config);

/// Every argument by dest with its JSON value (null, bool, number, string, array), for training_state/state.json.
nlohmann::json config_to_json(const RunConfig& config);

/// One argument whose value in a checkpoint differs from the one now asked for.
struct ConfigChange {
    std::string name;
    std::string old_value, new_value;  // as Python prints them
    bool refused = false;              // the checkpoint cannot be continued with the new value
    std::string reason;                // why refused, or what the change means
};

/// Differences between a checkpoint's record and `config`, in name order. Arguments that only say where or how to run
/// (paths, intervals, logging) are listed as accepted; those that change the shape of the model are refused.
std::vector<ConfigChange> diff_configs(const nlohmann::json& checkpoint, const RunConfig& config);

/// --use-checkpoint-args: takes the model's shape, tokenizer, sequence length and dropouts from a checkpoint's record,
/// except what the user gave. A notice for each value that this changes.
void take_model_arguments(const nlohmann::json& checkpoint, RunConfig& config);

}  // namespace tera
