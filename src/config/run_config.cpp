// From words to a RunConfig: flags, YAML, older names.
#include "config/run_config.h"

#include <cstdlib>
#include <map>

#include "config/fields.h"
#include "config/older_names.h"
#include "config/yaml_arguments.h"
#include "core/error.h"

namespace tera {
namespace {

int64_t environment_integer(const char* name, int64_t fallback) {
    const char* text = std::getenv(name);
    return text == nullptr || *text == 0 ? fallback : parse_integer(text, cat("environment variable ", name));
}

std::string help_of(const Field& field) {
    std::string text = field.help;
    if (field.status != FlagStatus::implemented || text.empty()) {
        const char* label[] = {"", "no effect: ", "not yet: ", "refused: "};
        text += (text.empty() ? "" : "; ") + (label[static_cast<int>(field.status)] + field.reason);
    }
    return text;
}

ArgParser make_parser(ModelKind kind) {
    ArgParser parser(cat("teratron pretrain ", model_kind_name(kind)),
                     "Trains a model. Flags are those of Megatron-LM.");
    static const RunConfig untouched;
    for (const Field& field : fields()) {
        ArgSpec spec;
        spec.names = field.names;
        spec.dest = field.dest;
        spec.type = field.type;
        spec.count = field.count;
        spec.switch_value = field.switch_value;
        spec.choices_ = field.choices;
        spec.help_ = help_of(field);
        spec.group_ = field.group;
        spec.secondary_ = field.secondary;
        const std::string preset = python_text(untouched, field);
        if (field.type != ArgType::boolean && preset != "None") spec.default_ = preset;
        parser.add(spec);
    }
    return parser;
}

/// Applies given values, in the order of the list, to the configuration.
void assign_all(RunConfig& config, const std::map<std::string, std::vector<std::string>>& values) {
    for (const Field& field : fields()) {
        const auto it = values.find(field.dest);
        if (it != values.end()) assign_field(config, field, it->second);
    }
}

/// Refuses what is refused and says what has no effect.
void judge_given_flags(RunConfig& config) {
    for (const Field& field : fields()) {
        if (config.given.count(field.dest) == 0 || is_default(config, field)) continue;
        const std::string flag = "--" + field.names[0];
        if (field.status == FlagStatus::refused) {
            const bool bare = field.type == ArgType::boolean || field.untyped;
            usage_error(flag, bare ? "" : " " + python_text(config, field), " is refused: ", field.reason);
        }
        if (field.status == FlagStatus::inert) {
            config.notices.push_back(cat(flag, " is accepted and changes nothing here: ", field.reason));
        }
    }
}

}  // namespace

const char* model_kind_name(ModelKind kind) {
    constexpr const char* names[] = {"gpt", "bert", "t5"};
    return names[static_cast<int>(kind)];
}

ModelKind parse_model_kind(const std::string& name) {
    for (const ModelKind kind : {ModelKind::gpt, ModelKind::bert, ModelKind::t5}) {
        if (name == model_kind_name(kind)) return kind;
    }
    usage_error("unknown model '", name, "': it must be gpt, bert or t5");
}

Environment Environment::from_process() {
    Environment env;
    env.rank = environment_integer("RANK", 0);
    env.world_size = environment_integer("WORLD_SIZE", 1);
    env.local_rank = environment_integer("LOCAL_RANK", 0);
    if (env.world_size < 1 || env.rank < 0 || env.rank >= env.world_size) {
        usage_error("environment: RANK ", env.rank, " is not a rank of WORLD_SIZE ", env.world_size);
    }
    return env;
}

RunConfig parse_run_config(ModelKind kind, const std::vector<std::string>& args, const Environment& env) {
    const ParsedArgs parsed = make_parser(kind).parse(args);
    RunConfig config;
    config.kind = kind;
    config.rank = env.rank;
    config.world_size = env.world_size;
    config.local_rank = env.local_rank;
    config.help_wanted = parsed.help_wanted;
    if (parsed.help_wanted) return config;
    if (parsed.given("config")) assign_all(config, read_yaml_arguments(parsed.text("config")));
    assign_all(config, parsed.all_given());
    apply_older_names(config);
    judge_given_flags(config);
    return config;
}

std::string run_config_help(ModelKind kind) { return make_parser(kind).help(); }

int64_t pad_vocab_size(int64_t vocab_size, int64_t divisible_by, int64_t tensor_model_parallel_size) {
    const int64_t multiple = divisible_by * tensor_model_parallel_size;
    return (vocab_size + multiple - 1) / multiple * multiple;
}

}  // namespace tera
