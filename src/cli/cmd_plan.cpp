// teratron plan gpt|bert|t5 <training flags> --world-size N [--json] [--at-iterations N ...]
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "config/arg_parser.h"
#include "config/run_config.h"
#include "core/error.h"
#include "train/plan.h"

namespace tera {
namespace {

const char* const plan_help =
    "usage: teratron plan gpt|bert|t5 [training flags] --world-size N [--json] [--at-iterations N ...]\n\n"
    "Validates a run and prints what it will be: parameters on every rank, layers of each stage, padded vocabulary,\n"
    "micro-batches, iterations, FLOPs per iteration. Needs no data, no tokenizer files and no GPUs.\n\n"
    "  --json                one JSON object instead of text\n"
    "  --at-iterations N ... learning rate at these iterations\n"
    "  --world-size N        ranks in all (default: WORLD_SIZE, else 1)\n\n"
    "Training flags: teratron pretrain gpt --help\n";

/// The flags of this command alone, taken out of the words; the rest are training flags.
struct PlanArgs {
    bool json = false, help = false;
    std::vector<std::int64_t> at_iterations;
    std::vector<std::string> training;
};

PlanArgs split_arguments(const std::vector<std::string>& args) {
    PlanArgs out;
    const std::string at_flag = "--at-iterations";
    for (size_t i = 0; i < args.size(); ++i) {
        if (args[i] == "--json") {
            out.json = true;
        } else if (args[i] == "-h" || args[i] == "--help") {
            out.help = true;
        } else if (args[i].rfind(at_flag + "=", 0) == 0) {
            out.at_iterations.push_back(parse_integer(args[i].substr(at_flag.size() + 1), at_flag));
        } else if (args[i] == at_flag) {
            const size_t before = out.at_iterations.size();
            while (i + 1 < args.size() && args[i + 1].rfind("--", 0) != 0)
                out.at_iterations.push_back(parse_integer(args[++i], at_flag));
            if (out.at_iterations.size() == before) usage_error(at_flag, " needs at least one iteration");
        } else {
            out.training.push_back(args[i]);
        }
    }
    return out;
}

}  // namespace

int cmd_plan(const CommandArgs& args) {
    PlanArgs plan_args = split_arguments(expand_argument_files(args));
    if (plan_args.help) {
        std::cout << plan_help;
        return 0;
    }
    if (plan_args.training.empty() || plan_args.training[0].rfind("-", 0) == 0) {
        usage_error("which model? usage: teratron plan gpt|bert|t5 [training flags] --world-size N [--json]");
    }
    const ModelKind kind = parse_model_kind(plan_args.training[0]);
    plan_args.training.erase(plan_args.training.begin());
    RunConfig config = parse_run_config(kind, plan_args.training, Environment::from_process());
    validate_and_derive(config, config.world_size);
    const RunPlan plan = make_plan(config, plan_args.at_iterations);
    if (plan_args.json) {
        std::cout << plan_json(config, plan).dump(2) << "\n";
    } else {
        std::cout << plan_text(config, plan);
    }
    return 0;
}

}  // namespace tera
