// teratron plan gpt|bert|t5 <training flags> --world-size N [--json] [--at-iterations N ...]
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.h"
#include "config/arg_parser.h"
#include "config/run_config.h"
#include "core/error.h"
#include "train/layout_search.h"
#include "train/plan.h"

namespace tera {
namespace {

const char* const plan_help =
    "usage: teratron plan gpt|bert|t5 [training flags] --world-size N [--json] [--at-iterations N ...]\n\n"
    "Validates a run and prints what it will be: parameters on every rank, layers of each stage, padded vocabulary,\n"
    "micro-batches, iterations, FLOPs per iteration, memory of a rank and what it sends. Needs no data, no tokenizer\n"
    "files and no GPUs: with --device cuda memory is counted for a GPU, whether or not there is one here.\n\n"
    "  --json                one JSON object instead of text\n"
    "  --at-iterations N ... learning rate at these iterations\n"
    "  --world-size N        ranks in all (default: WORLD_SIZE, else 1)\n"
    "  --gpu-memory GIB      memory of one GPU: looks for the layouts that fit it best, whatever layout flags say\n"
    "  --gpus-per-node N     with it: GPUs of one machine (default 8)\n\n"
    "Training flags: teratron pretrain gpt --help\n";

/// The flags of this command alone, taken out of the words; the rest are training flags.
struct PlanArgs {
    bool json = false, help = false;
    std::vector<std::int64_t> at_iterations;
    std::optional<double> gpu_memory;
    std::int64_t gpus_per_node = 8;
    std::vector<std::string> training;
};

/// The value of --name VALUE or --name=VALUE at words[i], which moves on to the last word taken; nothing if it is
/// another flag.
std::optional<std::string> value_of(const std::string& name, const std::vector<std::string>& words, size_t& i) {
    if (words[i].rfind(name + "=", 0) == 0) return words[i].substr(name.size() + 1);
    if (words[i] != name) return {};
    if (i + 1 == words.size()) usage_error(name, " needs a value");
    return words[++i];
}

PlanArgs split_arguments(const std::vector<std::string>& args) {
    PlanArgs out;
    const std::string at_flag = "--at-iterations";
    for (size_t i = 0; i < args.size(); ++i) {
        if (args[i] == "--json") {
            out.json = true;
        } else if (args[i] == "-h" || args[i] == "--help") {
            out.help = true;
        } else if (const auto memory = value_of("--gpu-memory", args, i)) {
            out.gpu_memory = parse_real(*memory, "--gpu-memory");
        } else if (const auto gpus = value_of("--gpus-per-node", args, i)) {
            out.gpus_per_node = parse_integer(*gpus, "--gpus-per-node");
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

int print_layouts(const RunConfig& config, const PlanArgs& args) {
    if (config.kind != ModelKind::gpt) usage_error("--gpu-memory: layouts are looked for with gpt models only");
    if (!(*args.gpu_memory > 0) || std::isinf(*args.gpu_memory))
        usage_error("--gpu-memory ", *args.gpu_memory, " must be a number of GiB above 0");
    if (args.gpus_per_node < 1) usage_error("--gpus-per-node ", args.gpus_per_node, " must be above 0");
    RunConfig on_one = without_layout(config);  // says what is wrong with the other flags
    validate_and_derive(on_one, 1);
    const SearchRequest request{
        .gpus = config.world_size, .gpus_per_node = args.gpus_per_node, .memory_gib = *args.gpu_memory};
    const std::vector<LayoutChoice> choices = search_layouts(config, request);
    if (choices.empty())
        usage_error("no layout of ", request.gpus, " GPUs fits into ", request.memory_gib, " GiB less ",
                    request.reserve_gib, " for the driver and libraries: take more GPUs, or GPUs with more memory");
    if (args.json) {
        nlohmann::json all = nlohmann::json::array();
        for (const LayoutChoice& c : choices)
            all.push_back({{"flags", c.flags},
                           {"in_place_of", c.replaced},
                           {"global_batch_size", c.batch},
                           {"memory", c.plan.fullest().total()},
                           {"pipeline_bubble", c.plan.bubble},
                           {"estimated_seconds", c.seconds},
                           {"estimated_tokens_per_second_per_gpu", c.tokens_per_second_per_gpu}});
        std::cout << nlohmann::json{{"layouts", all}}.dump(2) << "\n";
    } else {
        std::cout << layouts_text(request, choices);
    }
    return 0;
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
    if (plan_args.gpu_memory) return print_layouts(config, plan_args);
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
