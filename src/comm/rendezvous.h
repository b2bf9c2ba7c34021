// Where this process stands among the others, from the variables that launchers set. The first of these lines that is
// set decides:
//
//   torchrun, PyTorchJob, own scripts   RANK WORLD_SIZE LOCAL_RANK
//   mpirun of Open MPI                  OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK
//   srun                                SLURM_PROCID SLURM_STEP_NUM_TASKS SLURM_LOCALID
//   mpirun of MPICH, Intel MPI          PMI_RANK PMI_SIZE MPI_LOCALRANKID
//
// srun --mpi=pmi2 sets PMI_RANK too, and mpirun of MPICH within a job starts its own helpers with srun, one per node:
// there are as many ranks as PMI_SIZE then, and not as many tasks.
// Ranks meet at rank 0: MASTER_ADDR and MASTER_PORT; under srun the first host of the step and a port made from the
// job's number, where they are not set; 1000 beside MASTER_PORT under torchrun, which listens there itself
// (TORCHELASTIC_USE_AGENT_STORE). mpirun tells its ranks itself. A launcher that chose the port leaves rank 0 the
// socket, so that nobody takes the port meanwhile: TERATRON_LISTENER is its number. So that ranks of two jobs that meet
// at one port by mistake are told apart, the job has a name: TERATRON_JOB (of launch local), TORCHELASTIC_RUN_ID, or
// the step of Slurm.
#pragma once

#include <functional>
#include <string>

namespace tera {

enum class Launcher { none, variables, open_mpi, mpich, slurm };

struct RankPlace {
    int rank = 0, size = 1, local_rank = 0;
    Launcher launcher = Launcher::none;
    std::string address;  ///< of rank 0; empty where the launcher connects the ranks
    int port = 0;
    int listener = -1;  ///< rank 0: a socket that listens there already (TERATRON_LISTENER); -1: none
    std::string job{};  ///< "": not known
};

/// The value of a variable, or null.
using Variables = std::function<const char*(const char* name)>;

/// UsageError, naming the variable, for what is not a number, does not fit together or is missing.
RankPlace find_rank_place(const Variables& variables);
RankPlace find_rank_place();  ///< of this process

/// The first name in a list of hosts as Slurm writes it: "nid[001003-001006,7],login" is "nid001003".
std::string first_host(const std::string& list);

/// This machine's name.
std::string host_name();

}  // namespace tera
