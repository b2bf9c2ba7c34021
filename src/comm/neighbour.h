// Processes of one run on one machine: who is who, and the end of those that cannot end by themselves. A stopped rank
// hears nothing when the others leave; srun, a script or a pod would wait for it for ever.
#pragma once

#include <cstdint>

namespace tera {

/// Tells a process from all others, here or on another machine, and from a later one that has its number.
struct ProcessIdentity {
    std::int64_t pid = 0;
    std::int64_t machine = 0;  ///< what was started when, and which numbers processes have there
    std::int64_t born = 0;     ///< in the machine's time
};

ProcessIdentity own_identity();

/// Kills it if it is on this machine and stopped by a signal, not by a debugger.
bool end_if_stopped(const ProcessIdentity& process);

}  // namespace tera
