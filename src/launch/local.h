// launch local: several ranks of one command as processes of this machine.
//
//   variables    every rank gets RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT, as from torchrun
//   output       line by line, with the rank before it, as from `srun -l`; for a reader that is slow or away it waits
//                here, and beyond waiting_bytes the ranks do; what several ranks complain of in the same words
//                ("teratron: ...") is there once
//   signals      SIGINT SIGTERM SIGHUP SIGUSR1 SIGUSR2 go to all ranks
//   failures     the first rank that fails is named; the others have grace_s to leave by themselves, then they are
//                killed; its exit code is ours (128 + signal for one that was killed)
// No rank outlives the launcher. A reader that takes nothing delays neither signals nor ends, and loses what is left.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tera {

struct LocalLaunch {
    std::vector<std::string> command;  ///< program and its arguments
    int ranks = 1;                     ///< on this machine
    int first_rank = 0, world = 1;
    std::string address = "127.0.0.1";
    int port = 0;  ///< 0: any free one
    bool labels = true;
    int share_gpus = 0;  ///< > 0: ranks take turns at so many GPUs, and NCCL sees each as a machine of its own
    std::size_t waiting_bytes = std::size_t{64} << 20;  ///< of output that nobody takes: the log of days
    double grace_s = 5;
    double stopped_s = 25;  ///< a rank that a signal has stopped for so long, while others run, ends the run
};

/// Returns when all ranks have ended.
int launch_local(const LocalLaunch& launch);

}  // namespace tera
