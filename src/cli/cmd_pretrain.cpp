// teratron pretrain gpt <flags>: trains a model.
#include <chrono>
#include <cstdio>

#include "cli/commands.h"
#include "config/config_dump.h"
#include "config/run_config.h"
#include "core/error.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

namespace tera {
namespace {

const char* const usage =
    "usage: teratron pretrain gpt [flags]\n\nTrains a model. Flags are Megatron-LM's own names; --config FILE.yaml and "
    "@FILE take the same.\n\n";

/// --use-checkpoint-args: the model's shape comes from the checkpoint before anything is checked.
void take_arguments_from_checkpoint(RunConfig& config) {
    if (!config.use_checkpoint_args) return;
    if (config.load.empty()) usage_error("--use-checkpoint-args needs --load");
    const auto where = find_checkpoint(config.load, config.ckpt_step);
    if (!where || !where->has_state) {
        config.notices.push_back("--use-checkpoint-args: " + config.load + " holds no arguments; those given are used");
        return;
    }
    take_model_arguments(read_checkpoint_state(*where).arguments, config);
}

}  // namespace

int cmd_pretrain(const CommandArgs& args) {
    const auto start = std::chrono::steady_clock::now();
    if (args.empty()) usage_error("say what to train: teratron pretrain gpt <flags>");
    if (args[0] == "--help" || args[0] == "-h") {
        std::printf("%s%s", usage, run_config_help(ModelKind::gpt).c_str());
        return 0;
    }
    const ModelKind kind = parse_model_kind(args[0]);
    const CommandArgs flags(args.begin() + 1, args.end());
    for (const std::string& flag : flags) {
        if (flag != "--help" && flag != "-h") continue;
        std::printf("%s%s", usage, run_config_help(kind).c_str());
        return 0;
    }
    const Environment environment = Environment::from_process();
    RunConfig config = parse_run_config(kind, flags, environment);
    take_arguments_from_checkpoint(config);
    validate_and_derive(config, environment.world_size);
    Trainer(std::move(config), {.print = {}, .process_start = start}).run();
    return 0;
}

}  // namespace tera
