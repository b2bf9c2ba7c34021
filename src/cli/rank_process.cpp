#include "cli/rank_process.h"

#include <cstdlib>

#include "core/error.h"

namespace tera {

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
