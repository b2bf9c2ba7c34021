// teratron verify gpt <flags> --world-size N: proves a parallel layout equal to one rank.
#include <algorithm>
#include <cstdio>

#include "cli/commands.h"
#include "config/run_config.h"
#include "core/error.h"
#include "train/verify.h"

namespace tera {
namespace {

constexpr std::int64_t most_ranks = 256;  // threads of this process

void print_plan(const VerifyPlan& plan) {
    const MeshShape& m = plan.layout.mesh;
    const ModelConfig& c = plan.training.model;
    std::printf("> layout: %d ranks = tensor %d%s * context %d * pipeline %d%s * data %d%s\n", m.size(), m.tp,
                plan.layout.sequence_parallel ? " (sequence-parallel)" : "", m.cp, m.pp,
                plan.layout.chunks > 1 ? cat(" (", plan.layout.chunks, " chunks)").c_str() : "", m.dp,
                plan.layout.distributed_optimizer ? " (distributed optimizer)" : "");
    std::printf(
        "> model: the flags' kinds of layers, %lld of width %lld, %lld heads, %lld key/value heads, vocabulary %lld\n",
        static_cast<long long>(c.layers), static_cast<long long>(c.hidden), static_cast<long long>(c.heads),
        static_cast<long long>(c.kv_heads), static_cast<long long>(c.vocab));
    std::printf("> %d steps of %d micro-batches of %lld sequences of %lld tokens, f64, each rank a thread\n",
                plan.training.steps, plan.training.micro_batches, static_cast<long long>(plan.training.B),
                static_cast<long long>(plan.training.S));
    std::fflush(stdout);
}

}  // namespace

int cmd_verify(const CommandArgs& args) {
    const bool help = std::any_of(args.begin(), args.end(), [](const auto& w) { return w == "--help" || w == "-h"; });
    if (help) {
        std::printf(
            "teratron verify gpt <flags of pretrain> --world-size N\n\nTrains a small model with the flags' kinds of "
            "layers on their layout and on one rank, in f64 on threads of\nthis process, and compares losses, norms, "
            "every gradient and every weight.\n");
        return 0;
    }
    if (args.empty() || args[0].rfind("-", 0) == 0)
        usage_error("say what to verify first: teratron verify gpt <flags> --world-size N");
    RunConfig config = parse_run_config(parse_model_kind(args[0]), {args.begin() + 1, args.end()}, Environment{});
    validate_and_derive(config, config.world_size);
    if (config.world_size > most_ranks)
        usage_error("--world-size ", config.world_size, ": verify runs up to ", most_ranks, " ranks");
    const VerifyPlan plan = plan_verification(config);
    print_plan(plan);
    const VerifyReport report = verify_layout(plan);
    for (const std::string& line : report.lines) std::printf("%s\n", line.c_str());
    if (!report.first_difference.empty()) {
        std::fflush(stdout);
        throw Error(cat("the layout does not compute what one rank does: ", report.first_difference));
    }
    std::printf("the layout computes what one rank does, within 1e-12 of each tensor's largest\n");
    return 0;
}

}  // namespace tera
