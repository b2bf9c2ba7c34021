// The world of a process that a launcher started: where it stands, the watch over all ranks, and the communicator.
#pragma once

#include "comm/process_comm.h"

namespace tera {

class ProcessWorld {
  public:
    /// Returns when all ranks have come.
    ProcessWorld(const RankPlace& place, WatchSettings settings);
    ~ProcessWorld();

    const RankPlace& place() const { return place_; }
    Watch& watch() { return *watch_; }
    Comm& comm() { return *comm_; }

  private:
    RankPlace place_;
    std::unique_ptr<Watch> watch_;
    std::unique_ptr<Transport> transport_;
    std::unique_ptr<Comm> comm_;
};

}  // namespace tera
