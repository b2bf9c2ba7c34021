// teratron launch local <flags> -- <command>: starts the ranks of a run.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cli/commands.h"
#include "config/arg_parser.h"
#include "core/engine.h"
#include "core/error.h"
#include "launch/local.h"

namespace tera {
namespace {

/// At least 1. Counted by a child, so that the launcher itself does not hold on to the driver.
int gpus_of_this_machine() {
    const pid_t child = ::fork();
    if (child == 0) std::_Exit(std::clamp(Engine::gpus(), 1, 255));
    int status = 0;
    const bool counted = child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status);
    return counted ? std::max(1, WEXITSTATUS(status)) : 1;
}

int launch_on_this_machine(const CommandArgs& args) {
    const auto dashes = std::find(args.begin(), args.end(), "--");
    ArgParser parser("teratron launch local",
                     "Starts several ranks of a command on this machine: teratron launch local --nproc-per-node 4 -- "
                     "pretrain gpt <flags>. With --nnodes the same is run on every machine.");
    parser.option("nproc-per-node", ArgType::integer).alias("nproc_per_node").help("ranks on this machine").required();
    parser.option("nnodes", ArgType::integer).help("machines").defaults("1");
    parser.option("node-rank", ArgType::integer).alias("node_rank").help("number of this machine").defaults("0");
    parser.option("master-addr", ArgType::text).alias("master_addr").help("host of rank 0").defaults("127.0.0.1");
    parser.option("master-port", ArgType::integer)
        .alias("master_port")
        .help("port at which the ranks meet; 0 takes a free one, several machines need it said")
        .defaults("0");
    parser.flag("share-gpus")
        .help("let several ranks use one GPU: to try a layout, slowly, with fewer GPUs than ranks");
    parser.flag("no-labels").help("do not put the rank before each line");
    const ParsedArgs parsed = parser.parse({args.begin(), dashes});
    if (parsed.help_wanted) return 0;
    LocalLaunch launch;
    const auto nodes = parsed.integer("nnodes"), node = parsed.integer("node_rank"),
               ranks = parsed.integer("nproc_per_node");
    if (ranks < 1 || ranks > 4096) usage_error("--nproc-per-node ", ranks, ": give 1 to 4096");
    if (nodes < 1 || nodes > 65536) usage_error("--nnodes ", nodes, ": give 1 to 65536");
    if (node < 0 || node >= nodes) usage_error("--node-rank ", node, " is not below --nnodes ", nodes);
    const auto port = parsed.integer("master_port");
    if (port < 0 || port > 65535) usage_error("--master-port ", port, ": give 1 to 65535, or 0 for a free one");
    launch.ranks = static_cast<int>(ranks);
    launch.world = static_cast<int>(ranks * nodes);
    launch.first_rank = static_cast<int>(ranks * node);
    launch.address = parsed.text("master_addr");
    launch.port = static_cast<int>(port);
    if (nodes > 1 && (launch.port == 0 || !parsed.given("master_addr")))
        usage_error("--nnodes ", nodes, " needs --master-addr and --master-port, the same on all of them");
    if (parsed.boolean("share_gpus")) launch.share_gpus = gpus_of_this_machine();
    launch.labels = !parsed.boolean("no_labels");
    if (dashes == args.end() || dashes + 1 == args.end())
        usage_error(
            "say what to start after --, such as: teratron launch local --nproc-per-node 2 -- pretrain gpt <flags>");
    launch.command = {std::filesystem::read_symlink("/proc/self/exe").string()};
    launch.command.insert(launch.command.end(), dashes + 1, args.end());
    return launch_local(launch);
}

}  // namespace

int cmd_launch(const CommandArgs& args) {
    if (args.empty()) usage_error("say where: teratron launch local --nproc-per-node N -- pretrain gpt <flags>");
    if (args[0] == "local") return launch_on_this_machine({args.begin() + 1, args.end()});
    if (args[0] == "--help" || args[0] == "-h") return launch_on_this_machine({"--help"});
    if (args[0] == "slurm" || args[0] == "k8s")
        usage_error("'launch ", args[0],
                    "' is not built yet; srun and PyTorchJob start ranks already, one process each");
    usage_error("no place '", args[0], "' to launch on; there is: local");
}

}  // namespace tera
