// Frames over MPI, for ranks that mpirun has started on CPUs. MPI is not on every machine, so it is used from a module
// beside the program (src/comm/mpi).
#pragma once

#include "comm/transport.h"

namespace tera {

class MpiTransport : public Transport {
  public:
    /// Rank 0's bytes, to all.
    virtual void broadcast(void* data, std::size_t bytes) = 0;
    /// All ranks are on one machine.
    virtual bool one_machine() const = 0;
    /// From now on ranks may be missing: nothing more is sent, and the end waits for nobody.
    virtual void abandon() = 0;
};

/// UsageError if this installation has no module for MPI, or if it belongs to another MPI than mpirun.
std::unique_ptr<MpiTransport> open_mpi(int expected_size);

/// Why MPI cannot be used here; empty if it can.
std::string mpi_missing();

/// What the module defines.
using OpenMpiFunction = MpiTransport* (*)();
constexpr const char* open_mpi_symbol = "teratron_open_mpi_2";  // the number changes with this header

}  // namespace tera
