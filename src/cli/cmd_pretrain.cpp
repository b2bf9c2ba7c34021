// teratron pretrain gpt <flags>: trains a model.
#include <chrono>
#include <cstdio>

#include "cli/commands.h"
#include "cli/rank_process.h"
#include "config/config_dump.h"
#include "config/run_config.h"
#include "core/error.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

namespace tera {
namespace {

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

void run(RunConfig config, const RankPlace& place, std::chrono::steady_clock::time_point start) {
    TrainerOptions options{.process_start = start};
    if (place.size == 1) {
        Trainer(std::move(config), std::move(options)).run();
        return;
    }
    with_world(config, place, [&](ProcessWorld& world) {
        options.world = &world.comm();
        options.progress = &world.watch().progress();
        options.begin_step = [&](std::int64_t step) { world.watch().progress().begin_step(step); };
        Trainer(std::move(config), std::move(options)).run();
    });
}

}  // namespace

int cmd_pretrain(const CommandArgs& args) {
    const auto start = std::chrono::steady_clock::now();
    if (args.empty()) usage_error("say what to train: teratron pretrain gpt <flags>");
    const bool named = args[0].rfind("-", 0) != 0;
    if (!named && !asks_for_help(args)) usage_error("say what to train first: teratron pretrain gpt <flags>");
    const ModelKind kind = named ? parse_model_kind(args[0]) : ModelKind::gpt;
    if (asks_for_help(args)) {
        std::printf("%s", run_config_help(kind).c_str());
        return 0;
    }
    if (kind != ModelKind::gpt) {
        usage_error("training ", model_kind_name(kind), " is not built yet; `teratron plan ", model_kind_name(kind),
                    "` counts it already");
    }
    const CommandArgs flags(args.begin() + 1, args.end());
    RunConfig config;
    RankPlace place;
    before_meeting(flags, place, [&] {
        config = parse_run_config(kind, flags, {});
        place = place_of(config);
        take_arguments_from_checkpoint(config);
        validate_and_derive(config, config.world_size);
    });
    run(std::move(config), place, start);
    return 0;
}

}  // namespace tera
