// teratron bench step gpt <training flags> [--warmup N] [--steps N] [--json FILE] [--kernels]
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "config/arg_parser.h"
#include "config/fields.h"
#include "config/run_config.h"
#include "core/error.h"
#include "train/bench_report.h"

namespace tera {
namespace {

const char* const bench_help =
    "usage: teratron bench step gpt [training flags] [--warmup N] [--steps N] [--json FILE] [--kernels]\n\n"
    "Runs training steps as pretrain would with the same flags, on random tokens, and prints their speed, MFU by both\n"
    "counts, where the time goes on the GPU, what the device can do at most, and memory by name. Needs neither data\n"
    "nor tokenizer files; the vocabulary is that of --tokenizer-type and --vocab-size, as for plan.\n\n"
    "  --warmup N     steps before the timed ones (default 3)\n"
    "  --steps N      timed steps (default 10)\n"
    "  --json FILE    the same figures as JSON, in full\n"
    "  --kernels      every kernel with its grid, instead of the longest fifteen\n\n"
    "Training flags: teratron pretrain gpt --help\n";

struct BenchArgs {
    bool help = false, kernels = false;
    std::string json;
    BenchOptions options{};
    std::vector<std::string> training;
};

int parse_count(const std::string& text, const std::string& flag) {
    const std::int64_t n = parse_integer(text, flag);
    if (n < 1 || n > 100000) usage_error(flag, " ", text, ": must be from 1 to 100000");
    return static_cast<int>(n);
}

std::string file_of(const std::string& text) {
    if (text.empty()) usage_error("--json needs a file");
    return text;
}

BenchArgs split_arguments(const std::vector<std::string>& args) {
    BenchArgs out;
    for (std::size_t i = 0; i < args.size(); ++i) {
        const auto equals = args[i].find('=');
        const std::string flag = args[i].substr(0, equals);
        const auto value = [&]() -> std::string {
            if (equals != std::string::npos) return args[i].substr(equals + 1);
            if (i + 1 == args.size()) usage_error(flag, " needs a value");
            return args[++i];
        };
        if (flag == "-h" || flag == "--help")
            out.help = true;
        else if (flag == "--kernels")
            out.kernels = true;
        else if (flag == "--warmup")
            out.options.warmup = parse_count(value(), flag);
        else if (flag == "--steps")
            out.options.steps = parse_count(value(), flag);
        else if (flag == "--json")
            out.json = file_of(value());
        else
            out.training.push_back(args[i]);
    }
    return out;
}

/// Before minutes are spent on measuring; what is there stays.
void check_writable(const std::string& path) {
    const bool was_there = std::filesystem::exists(path);
    if (!std::ofstream(path, std::ios::app)) usage_error("--json ", path, ": cannot be written");
    if (!was_there) std::filesystem::remove(path);
}

/// Flags of pretrain that a measurement does without.
void tell_what_is_left_out(const RunConfig& config) {
    for (const char* dest : {"load", "pretrained_checkpoint", "iterations_to_skip", "rampup_batch_size"}) {
        if (config.given.count(dest) == 0) continue;
        for (const Field& field : fields()) {
            if (field.dest == dest)
                std::fprintf(stderr, "bench step: %s is left out: random weights, the whole batch\n",
                             field.flag().c_str());
        }
    }
}

}  // namespace

int cmd_bench(const CommandArgs& args) {
    BenchArgs bench = split_arguments(expand_argument_files(args));
    if (bench.help) {
        std::printf("%s", bench_help);
        return 0;
    }
    if (bench.training.empty() || bench.training[0] != "step") {
        usage_error("what to measure? usage: teratron bench step gpt [training flags] [--steps N] [--json FILE]");
    }
    if (bench.training.size() < 2 || bench.training[1].rfind("-", 0) == 0) {
        usage_error("which model? usage: teratron bench step gpt [training flags] [--steps N] [--json FILE]");
    }
    const ModelKind kind = parse_model_kind(bench.training[1]);
    if (kind != ModelKind::gpt) {
        usage_error("training ", model_kind_name(kind), " is not built yet; `teratron plan ", model_kind_name(kind),
                    "` counts it already");
    }
    const CommandArgs flags(bench.training.begin() + 2, bench.training.end());
    if (!bench.json.empty()) check_writable(bench.json);
    if (isatty(STDERR_FILENO)) {
        bench.options.progress = [](const std::string& what) { std::fprintf(stderr, "bench: %s\n", what.c_str()); };
    }
    const RunConfig config = parse_run_config(kind, flags, Environment::from_process());
    tell_what_is_left_out(config);
    const BenchResult result = bench_step(config, bench.options);
    std::printf("%s", bench_text(result, bench.kernels).c_str());
    if (!bench.json.empty()) {
        std::ofstream json(bench.json);
        json << bench_json(result).dump(1) << "\n";
        json.flush();
        if (!json) usage_error("--json ", bench.json, ": cannot be written");
    }
    return 0;
}

}  // namespace tera
