// The world of a process that a launcher started: where it stands, the watch over all ranks, and the communicator.
// Ranks talk over MPI where mpirun connects them, else over sockets.
#pragma once

#include <exception>

#include "comm/mpi_world.h"
#include "comm/process_comm.h"

namespace tera {

class ProcessWorld {
  public:
    /// Returns when all ranks have come; UsageError, or under mpirun exit code 2, after settings.timeout_s.
    ProcessWorld(const RankPlace& place, WatchSettings settings);
    ~ProcessWorld();

    const RankPlace& place() const { return place_; }
    Watch& watch() { return *watch_; }
    Comm& comm() { return *comm_; }
    /// This rank cannot go on: tells all others, which leave with its exit code, and lets the end wait for nobody.
    void fail(const std::string& why, int exit_code = 1) noexcept;

  private:
    RankPlace place_;
    int exceptions_ = std::uncaught_exceptions();
    std::unique_ptr<Watch> watch_;
    std::unique_ptr<Transport> transport_;
    MpiTransport* mpi_ = nullptr;  ///< if transport_ is that
    std::unique_ptr<Comm> comm_;
};

}  // namespace tera
