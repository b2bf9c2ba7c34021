#include "config/config_dump.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "config/fields.h"
#include "core/error.h"

namespace tera {
namespace {

using nlohmann::json;

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

std::string python_integer(const std::optional<int64_t>& value) { return value ? std::to_string(*value) : "None"; }

/// Values that follow from others or come from the launcher, so they are not in the list of flags.
std::vector<std::pair<std::string, std::string>> derived_values(const RunConfig& config) {
    std::vector<std::pair<std::string, std::string>> out = {
        {"consumed_train_samples", std::to_string(config.consumed_train_samples)},
        {"consumed_valid_samples", std::to_string(config.consumed_valid_samples)},
        {"data_parallel_size", std::to_string(config.data_parallel_size)},
        {"params_dtype", "torch." + config.params_dtype},
        {"transformer_pipeline_model_parallel_size", std::to_string(config.pipeline_model_parallel_size)},
        {"variable_seq_lengths", "False"},
        {"virtual_pipeline_model_parallel_size", python_integer(config.virtual_pipeline_model_parallel_size)},
    };
    if (config.padded_vocab_size > 0) out.emplace_back("padded_vocab_size", std::to_string(config.padded_vocab_size));
    return out;
}

/// A value printed by Python back as JSON. Lists of texts stay text: only values without a member come here.
json json_of_text(const std::string& text) {
    if (text == "None") return nullptr;
    if (text == "True" || text == "False") return text == "True";
    const json parsed = json::parse(text, nullptr, false);
    return parsed.is_number() ? parsed : json(text);
}

json json_of_field(const RunConfig& config, const Field& field) {
    return std::visit(
        [&](auto member) -> json {
            using M = decltype(member);
            if constexpr (std::is_same_v<M, std::monostate>) {
                return json_of_text(python_text(config, field));
            } else if constexpr (std::is_same_v<M, std::optional<int64_t> RunConfig::*> ||
                                 std::is_same_v<M, std::optional<double> RunConfig::*>) {
                return config.*member ? json(*(config.*member)) : json(nullptr);
            } else if constexpr (std::is_same_v<M, bool RunConfig::*> || std::is_same_v<M, double RunConfig::*>) {
                return config.*member;
            } else {
                return python_text(config, field) == "None" ? json(nullptr) : json(config.*member);
            }
        },
        field.member);
}

std::string python_of_json(const json& value) {
    if (value.is_null()) return "None";
    if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
    if (value.is_number_float()) return python_real(value.get<double>());
    if (value.is_string()) return value.get<std::string>();
    if (!value.is_array()) return value.dump();
    std::string out = "[";
    for (size_t i = 0; i < value.size(); ++i) {
        out += (i ? ", " : "") +
               (value[i].is_string() ? "'" + value[i].get<std::string>() + "'" : python_of_json(value[i]));
    }
    return out + "]";
}

/// The length of the run enters the schedule only where no decay length is given.
bool only_lengthens(const Field& field, const RunConfig& config) {
    if (field.dest != "train_iters" && field.dest != "train_samples") return false;
    const bool decay_given = config.given.count("lr_decay_iters") != 0 || config.given.count("lr_decay_samples") != 0;
    const bool lr_independent =
        decay_given || config.lr_decay_style == "constant" || config.lr_decay_style == "inverse-square-root";
    return lr_independent && config.weight_decay_incr_style == "constant";
}

/// Judges one changed value for a run that continues.
void judge(const Field& field, const RunConfig& config, ConfigChange& change) {
    switch (field.resume) {
        case ResumeRule::free:
            return;
        case ResumeRule::shape:
            change.refused = true;
            change.reason =
                cat("the checkpoint's weights belong to another model; ",
                    config.use_checkpoint_args ? "leave the flag out, and --use-checkpoint-args takes the old value"
                                               : "give the old value or --use-checkpoint-args");
            return;
        case ResumeRule::schedule:
            if (only_lengthens(field, config)) {
                change.reason = "the learning-rate schedule does not depend on it";
            } else if (config.finetune || config.override_opt_param_scheduler) {
                change.reason = "the schedule of the command line is used";
            } else if (config.use_checkpoint_opt_param_scheduler) {
                change.reason = "the schedule of the checkpoint is used";
            } else {
                change.refused = true;
                change.reason =
                    "choose --override-opt_param-scheduler (new value) or --use-checkpoint-opt_param-scheduler (old "
                    "value)";
            }
            return;
        case ResumeRule::training:
            change.reason = field.dest == "initial_loss_scale" && !config.no_load_optim
                                ? "the loss scale goes on as the checkpoint has it"
                                : "training goes on with the new value";
            return;
        case ResumeRule::data:
            change.reason = "the order of samples changes from here on";
            return;
    }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> argument_list(const RunConfig& config) {
    std::vector<std::pair<std::string, std::string>> list = derived_values(config);
    for (const Field& field : fields()) {
        // Flags of other versions are shown only when the user named them.
        const bool shown = !field.untyped && (!field.secondary || config.given.count(field.dest) != 0 ||
                                              !std::holds_alternative<std::monostate>(field.member));
        if (!shown) continue;
        // Megatron leaves this one at its default where it is not used; here it always holds the true number.
        const bool unused_groups = field.dest == "num_query_groups" && !config.group_query_attention;
        list.emplace_back(field.dest, unused_groups ? "1" : python_text(config, field));
    }
    std::stable_sort(list.begin(), list.end(),
                     [](const auto& a, const auto& b) { return lower(a.first) < lower(b.first); });
    return list;
}

std::string arguments_block(const RunConfig& config) {
    std::string out = "------------------------ arguments ------------------------\n";
    for (const auto& [name, value] : argument_list(config)) {
        out += "  " + name + " " + std::string(name.size() < 48 ? 48 - name.size() : 0, '.') + " " + value + "\n";
    }
    return out + "-------------------- end of arguments ---------------------\n";
}

json config_to_json(const RunConfig& config) {
    json out = json::object();
    for (const Field& field : fields()) {
        const bool kept = !std::holds_alternative<std::monostate>(field.member) || config.given.count(field.dest) != 0;
        if (kept) out[field.dest] = json_of_field(config, field);
    }
    out["model_kind"] = model_kind_name(config.kind);
    out["params_dtype"] = config.params_dtype;
    out["padded_vocab_size"] = config.padded_vocab_size;
    out["data_parallel_size"] = config.data_parallel_size;
    return out;
}

std::vector<ConfigChange> diff_configs(const json& checkpoint, const RunConfig& config) {
    const json now = config_to_json(config);
    std::vector<ConfigChange> changes;
    const auto changed = [&](const std::string& name) {
        return checkpoint.contains(name) && now.contains(name) && checkpoint.at(name) != now.at(name);
    };
    for (const Field& field : fields()) {
        if (!changed(field.dest)) continue;
        const auto shown = [&](const json& value) {
            return python_of_json(field.opposite() && value.is_boolean() ? json(!value.get<bool>()) : value);
        };
        ConfigChange change{field.flag(), shown(checkpoint.at(field.dest)), shown(now.at(field.dest)), false, ""};
        judge(field, config, change);
        changes.push_back(change);
    }
    // The padded vocabulary may differ: padding follows the layout and is never stored.
    if (changed("model_kind")) {
        changes.push_back({"model", checkpoint.at("model_kind"), now.at("model_kind"), true,
                           "the checkpoint holds another kind of model"});
    }
    std::stable_sort(changes.begin(), changes.end(),
                     [](const auto& a, const auto& b) { return lower(a.name) < lower(b.name); });
    return changes;
}

void take_model_arguments(const json& checkpoint, RunConfig& config) {
    const std::set<std::string> taken_too = {"seq_length", "attention_dropout", "hidden_dropout"};  // as Megatron does
    for (const Field& field : fields()) {
        const bool taken =
            field.resume == ResumeRule::shape || field.group == "tokenizer" || taken_too.count(field.dest) != 0;
        if (!taken || !checkpoint.contains(field.dest)) continue;
        if (std::holds_alternative<std::monostate>(field.member) || config.given.count(field.dest) != 0) continue;
        const json& value = checkpoint.at(field.dest);
        if (value.is_null()) continue;
        std::vector<std::string> texts;
        const auto text_of = [](const json& item) { return item.is_string() ? item.get<std::string>() : item.dump(); };
        if (value.is_array()) {
            for (const json& item : value) texts.push_back(text_of(item));
        } else {
            texts.push_back(text_of(value));
        }
        const std::string before = python_text(config, field);
        assign_field(config, field, texts);
        config.given.erase(field.dest);
        const std::string now = python_text(config, field);
        if (now != before) config.notices.push_back(cat("Setting ", field.dest, " to ", now, " from checkpoint"));
    }
}

}  // namespace tera
