#include "comm/mpi_world.h"

#include "core/error.h"
#include "core/module_file.h"

namespace tera {
namespace {

const LoadedSymbol& the_module() {
    static const LoadedSymbol module = load_symbol("teratron_mpi.so", open_mpi_symbol, true);
    return module;
}

}  // namespace

std::string mpi_missing() {
    const std::string& problem = the_module().problem;
    if (problem.empty()) return "";
    return cat("MPI cannot be used here: ", problem,
               "; install libopenmpi-dev and build again, or start with teratron launch local");
}

std::unique_ptr<MpiTransport> open_mpi(int expected_size) {
    if (the_module().address == nullptr) throw UsageError(mpi_missing());
    std::unique_ptr<MpiTransport> mpi(reinterpret_cast<OpenMpiFunction>(the_module().address)());
    if (mpi->size() != expected_size)
        usage_error("mpirun started ", expected_size, " ranks, and MPI knows of ", mpi->size(),
                    "; teratron_mpi.so was built with another MPI than this mpirun belongs to");
    return mpi;
}

}  // namespace tera
