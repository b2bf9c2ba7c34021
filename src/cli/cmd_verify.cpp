// teratron verify gpt <flags> --world-size N: proves a parallel layout equal to one rank.
#include <cstdio>

#include "cli/commands.h"
#include "cli/rank_process.h"
#include "config/run_config.h"
#include "core/error.h"
#include "train/agreement.h"
#include "train/verify.h"

namespace tera {
namespace {

constexpr std::int64_t most_ranks = 256;  // threads of this process

constexpr const char* help_text =
    "teratron verify gpt <flags of pretrain> --world-size N\n"
    "teratron launch local --nproc-per-node N -- verify gpt <flags of pretrain>   (or torchrun, srun, mpirun)\n"
    "\n"
    "Trains a small model with the flags' kinds of layers on their layout and on one rank, in f64, and compares "
    "losses,\n"
    "norms, every gradient and every weight; names the first that differs. Started alone, the ranks are threads of "
    "this\n"
    "process. Started by a launcher, they are its processes: on GPUs over NCCL, or on CPUs (--device cpu).\n";

void print_plan(const RunConfig& config, const VerifyPlan& plan, const char* ranks) {
    for (const std::string& notice : config.notices) std::printf("%s\n", notice.c_str());
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
    std::printf("> %d steps of Adam, %d micro-batches of %lld sequences of %lld tokens on each of %d data ranks, %s\n",
                plan.training.steps, plan.training.micro_batches / m.dp, static_cast<long long>(plan.training.B),
                static_cast<long long>(plan.training.S), m.dp, ranks);
    if (!plan.smaller.empty()) std::printf("> smaller than the flags say: %s\n", plan.smaller.c_str());
    std::fflush(stdout);
}

void print_report(const VerifyReport& report) {
    for (const std::string& line : report.lines) std::printf("%s\n", line.c_str());
    std::fflush(stdout);
    if (!report.first_difference.empty())
        throw Error(cat("the layout does not compute what one rank does: ", report.first_difference));
    std::printf("the layout computes what one rank does, within 1e-12 of each tensor's largest\n");
}

void verify_on_threads(const RunConfig& config) {
    if (config.device == "cuda") {
        usage_error(
            "--device cuda: threads of one process compute on the CPU; on GPUs start the ranks with `teratron "
            "launch local --nproc-per-node ",
            config.world_size, " -- verify …`, torchrun, srun or mpirun");
    }
    if (config.world_size > most_ranks)
        usage_error("--world-size ", config.world_size, ": verify runs up to ", most_ranks,
                    " ranks as threads; start more with a launcher");
    const VerifyPlan plan = plan_verification(config);
    print_plan(config, plan, "f64, each rank a thread");
    print_report(verify_layout(plan));
}

void verify_on_processes(const RunConfig& config, const RankPlace& place) {
    VerifyPlan plan;
    before_meeting({}, place, [&] { plan = plan_verification(config); });
    with_world(config, place, [&](ProcessWorld& world) {
        const Engine engine(device_named(config.device), Engine::gpu_of_rank(place.local_rank));
        const bool gpu = engine.device() != Device::cpu;
        Arena arena;
        ThreadPool pool(1);
        require_agreement(world.comm(), {Device::cpu, &arena, &pool}, flags_to_share(config));
        if (place.rank == 0)
            print_plan(config, plan, gpu ? "f64, each rank a process with a GPU" : "f64, each rank a process");
        const VerifyReport report = verify_layout(plan, world.comm(), engine, &world.watch().progress());
        if (place.rank == 0) print_report(report);
        world.comm().barrier();
    });
}

}  // namespace

int cmd_verify(const CommandArgs& args) {
    if (asks_for_help(args)) {
        std::printf("%s", help_text);
        return 0;
    }
    if (args.empty() || args[0].rfind("-", 0) == 0)
        usage_error("say what to verify first: teratron verify gpt <flags> --world-size N");
    RunConfig config;
    RankPlace place;
    const CommandArgs flags(args.begin() + 1, args.end());
    before_meeting(flags, place, [&] {
        config = parse_run_config(parse_model_kind(args[0]), flags, {});
        place = place_of(config);
        validate_and_derive(config, config.world_size);
    });
    if (place.size > 1)
        verify_on_processes(config, place);
    else
        verify_on_threads(config);
    return 0;
}

}  // namespace tera
