// What `plan` can count and training cannot do yet, read off the list of flags, and what a training run must be given.
#include "config/fields.h"
#include "config/run_config.h"
#include "core/error.h"

namespace tera {

void require_runnable(const RunConfig& config) {
    if (config.kind != ModelKind::gpt) {
        usage_error("training ", model_kind_name(config.kind), " is not built yet; `teratron plan ",
                    model_kind_name(config.kind), "` counts it already");
    }
    for (const Field& field : fields()) {
        const std::string flag = "--" + field.names[0];
        if (field.status == FlagStatus::later && !is_default(config, field)) {
            const std::string value = field.type == ArgType::boolean ? "" : " " + python_text(config, field);
            usage_error(flag, value, " is not built yet: ", field.reason);
        }
        const std::string value = field.later_choices.empty() ? "" : python_text(config, field);
        for (const std::string& choice : field.later_choices) {
            if (value == choice) usage_error(flag, " ", value, " is not built yet: ", field.reason);
        }
    }
    for (const std::string& module : config.recompute_modules) {
        if (module != "core_attn") usage_error("--recompute-modules ", module, " is not built yet; use core_attn");
    }
    if (!config.train_iters && !config.train_samples && !config.skip_train)
        usage_error("give the length of the run with --train-iters or --train-samples");
    if (!config.lr && !config.skip_train) usage_error("--lr is required");
    const bool by_split =
        !config.train_data_path.empty() || !config.valid_data_path.empty() || !config.test_data_path.empty();
    const bool any_data = config.mock_data || !config.data_path.empty() || !config.data_args_path.empty() || by_split ||
                          !config.per_split_data_args_path.empty();
    if (!any_data) usage_error("give the data with --data-path, or --mock-data for synthetic samples");
}

}  // namespace tera
