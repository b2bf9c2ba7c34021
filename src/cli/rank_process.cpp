#include "cli/rank_process.h"

#include <cstdlib>
#include <map>

#include "config/ranges.h"
#include "core/error.h"

namespace tera {
namespace {

/// The flags that say what a launcher else does, by the names of its variables.
std::map<std::string, std::string> told_by_flags(const RunConfig& config) {
    std::map<std::string, std::string> told;
    const auto tell = [&](const char* dest, const char* variable, const std::string& value) {
        if (config.given.count(dest) != 0) told[variable] = value;
    };
    tell("master_addr", "MASTER_ADDR", config.master_addr);
    tell("master_port", "MASTER_PORT", std::to_string(config.master_port.value_or(0)));
    if (config.given.count("rank") == 0) return told;
    tell("rank", "RANK", std::to_string(config.rank));
    tell("world_size", "WORLD_SIZE", std::to_string(config.world_size));
    tell("local_rank", "LOCAL_RANK", std::to_string(config.local_rank));
    return told;
}

/// Of a process whose flags cannot be read as a whole: by those of them that place it, and the launcher's variables.
RankPlace place_by_words(const CommandArgs& flags) {
    const std::map<std::string, std::string> variables = {{"--rank", "RANK"},
                                                          {"--world-size", "WORLD_SIZE"},
                                                          {"--master-addr", "MASTER_ADDR"},
                                                          {"--master-port", "MASTER_PORT"}};
    std::map<std::string, std::string> told;
    for (std::size_t i = 0; i < flags.size(); ++i) {
        const std::size_t equals = flags[i].find('=');
        const auto at = variables.find(flags[i].substr(0, equals));
        if (at == variables.end()) continue;
        if (equals != std::string::npos)
            told[at->second] = flags[i].substr(equals + 1);
        else if (i + 1 < flags.size())
            told[at->second] = flags[i + 1];
    }
    if (told.count("RANK") == 0) told.erase("WORLD_SIZE");
    try {
        return find_rank_place([&](const char* name) {
            const auto at = told.find(name);
            return at == told.end() ? std::getenv(name) : at->second.c_str();
        });
    } catch (const UsageError&) {
        return {};
    }
}

}  // namespace

RankPlace place_of(RunConfig& config) {
    check_ranges(config);
    const std::map<std::string, std::string> told = told_by_flags(config);
    const auto given = [&](const char* dest) { return config.given.count(dest) != 0; };
    if (given("rank") && !given("world_size") && std::getenv("WORLD_SIZE") == nullptr)
        usage_error("--rank ", config.rank, " of how many? Give --world-size too");
    if (given("rank") && given("world_size") && config.rank >= config.world_size)
        usage_error("--rank ", config.rank, " is not below --world-size ", config.world_size);
    RankPlace place = find_rank_place([&](const char* name) {
        const auto at = told.find(name);
        return at == told.end() ? std::getenv(name) : at->second.c_str();
    });
    if (given("local_rank")) place.local_rank = static_cast<int>(config.local_rank);
    if (place.size > 1 && given("world_size") && config.world_size != place.size)
        usage_error("--world-size ", config.world_size, ", but ", place.size,
                    " ranks were started; leave it out, or start as many");
    config.rank = place.rank;
    config.local_rank = place.local_rank;
    if (!given("world_size")) config.world_size = place.size;
    if (given("rank")) setenv("RANK", std::to_string(place.rank).c_str(), 1);  // what main() calls this process
    return place;
}

void before_meeting(const CommandArgs& flags, const RankPlace& place, const std::function<void()>& work) {
    try {
        work();
    } catch (const std::exception& e) {
        stay_away(place.size > 1 ? place : place_by_words(flags), e.what());
        throw;
    }
}

void with_world(const RunConfig& config, const RankPlace& place, const std::function<void(ProcessWorld&)>& work) {
    // Messages wait for their receivers on streams of their own: with one queue for all streams (as Megatron's
    // launchers ask for) a waiting message would stand in the way of the work its receiver waits for.
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    WatchSettings watching;
    watching.timeout_s = 60 * static_cast<double>(config.distributed_timeout_minutes);
    ProcessWorld world(place, watching);
    try {
        work(world);
    } catch (const UsageError& e) {
        world.fail(e.what(), 2);
        // Launchers may end the other ranks before they can say which one failed: it says so itself.
        throw UsageError(cat(world.watch().name_of(place.rank), ": ", e.what()));
    } catch (const std::exception& e) {
        world.fail(e.what());
        throw;  // main() names the rank with whatever is not the user's to mend
    }
}

}  // namespace tera
