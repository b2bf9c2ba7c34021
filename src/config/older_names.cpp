#include "config/older_names.h"

#include "core/error.h"

namespace tera {
namespace {

bool switched_on(const RunConfig& config, const std::string& dest) {
    const auto it = config.inert.find(dest);
    return it != config.inert.end() && it->second == "True";
}

/// Sets `value` unless the user asked for another one under the newer name.
void imply(const RunConfig& config, const char* old_flag, const char* dest, std::string& value, const char* implied) {
    if (config.given.count(dest) != 0 && value != implied) {
        usage_error(old_flag, " means ", implied, ", but ", dest, " is given as ", value, "; leave one of them out");
    }
    value = implied;
}

}  // namespace

void apply_older_names(RunConfig& config) {
    if (switched_on(config, "use_rotary_position_embeddings")) {
        imply(config, "--use-rotary-position-embeddings", "position_embedding_type", config.position_embedding_type,
              "rope");
    }
    if (switched_on(config, "recompute_activations")) {
        imply(config, "--recompute-activations", "recompute_granularity", config.recompute_granularity, "selective");
    }
    if (switched_on(config, "checkpoint_activations")) {
        imply(config, "--checkpoint-activations", "recompute_granularity", config.recompute_granularity, "full");
        if (config.recompute_method.empty()) config.recompute_method = "uniform";
        if (config.recompute_num_layers == 0) config.recompute_num_layers = 1;
    }
    if (config.lr_wsd_decay_style == "1-sqrt") config.lr_wsd_decay_style = "minus_sqrt";
}

}  // namespace tera
