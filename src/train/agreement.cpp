#include "train/agreement.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "config/config_dump.h"
#include "core/error.h"

namespace tera {
namespace {

/// FNV-1a, as many bits as a double holds exactly.
double digest(const std::string& text) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return static_cast<double>(hash >> 12);
}

constexpr std::array free_to_differ = {
    "rank",        "master_addr",  "master_port",  "local_rank",       "threads",
    "num_workers", "trigger_path", "metrics_file", "profile_timeline", "num_dataset_builder_threads"};

/// A place on a machine: a file, a folder, or a list of such.
bool names_a_place(const std::string& name) {
    constexpr std::array parts = {"path", "dir", "file", "load", "save", "model", "checkpoint", "cache"};
    return std::any_of(parts.begin(), parts.end(),
                       [&](const char* part) { return name.find(part) != std::string::npos; });
}

}  // namespace

void require_agreement(Comm& world, const Exec& exec, const std::vector<Fact>& facts) {
    if (world.size() == 1) return;
    const std::size_t count = facts.size();
    std::vector<double> first(count);
    for (std::size_t i = 0; i < count; ++i) first[i] = digest(facts[i].value);
    const std::vector<double> mine = first;
    const auto length = static_cast<std::int64_t>(count);
    world.broadcast(exec, tensor_over(first.data(), {length}), 0);
    const auto differs =
        static_cast<std::size_t>(std::mismatch(mine.begin(), mine.end(), first.begin()).first - mine.begin());
    // The lowest rank that differs, and in what: one number, the largest of all ranks.
    double worst = differs == count ? 0
                                    : static_cast<double>(world.size() - world.rank()) * static_cast<double>(count) +
                                          static_cast<double>(count - 1 - differs);
    world.all_reduce(exec, tensor_over(&worst, {1}), Reduce::max);
    if (worst == 0) return;
    if (differs < count)
        usage_error(facts[differs].what, " is ", facts[differs].value,
                    " on this rank, and something else on rank 0; every rank needs the same");
    const auto code = static_cast<std::int64_t>(worst);
    usage_error(facts[static_cast<std::size_t>(length - 1 - code % length)].what, " is not the same on rank ",
                world.size() - code / length, " as on rank 0, which has ",
                facts[static_cast<std::size_t>(length - 1 - code % length)].value, "; every rank needs the same");
}

std::vector<Fact> flags_to_share(const RunConfig& config) {
    std::vector<Fact> facts;
    const nlohmann::json all = config_to_json(config);
    for (const auto& [name, value] : all.items()) {
        if (std::find(free_to_differ.begin(), free_to_differ.end(), name) != free_to_differ.end()) continue;
        std::string flag = "--" + name;
        std::replace(flag.begin(), flag.end(), '_', '-');
        const bool text = value.is_string() || (value.is_array() && !value.empty() && value[0].is_string());
        const bool nothing = value.empty() || (value.is_string() && value.get_ref<const std::string&>().empty());
        if (names_a_place(name) && (text || nothing))
            facts.push_back({flag, nothing ? "not given" : "given"});
        else
            facts.push_back({flag, value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)});
    }
    return facts;
}

}  // namespace tera
