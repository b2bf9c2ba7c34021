// Ranks started by mpirun: this program runs itself under it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "comm/process_world.h"
#include "core/error.h"

namespace tera {
namespace {

bool inside_mpirun() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

/// mpirun of 4 ranks of the named test of this program; its exit code. More ranks than cores, also as root. What Open
/// MPI does not give back at its end is not ours to report.
int mpirun(const std::string& test, const std::string& output = "/dev/null", const std::string& more = "") {
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string command =
        "ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 100 mpirun "
        "--oversubscribe "
        "--mca btl_vader_single_copy_mechanism none -np 4 '" +
        program + "' --gtest_brief=1 --gtest_filter=" + test + more + " > " + output + " 2>&1";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool can_use_mpi() { return mpi_missing().empty() && std::system("command -v mpirun > /dev/null") == 0; }

constexpr const char* note_variable = "TERA_TEST_NOTE";

/// What the ranks of the named test noted when they left. mpirun's own exit code says little: that of Debian sometimes
/// crashes at its end.
void expect_leaving(const std::string& test, const std::string& words) {
    const std::string note = (std::filesystem::temp_directory_path() / cat("teratron-mpi-", ::getpid())).string();
    setenv(note_variable, note.c_str(), 1);
    EXPECT_NE(mpirun(test), 0);
    std::ostringstream said;
    said << std::ifstream(note).rdbuf();
    std::filesystem::remove(note);
    EXPECT_NE(said.str().find("out of step"), std::string::npos) << said.str();
    EXPECT_NE(said.str().find(words), std::string::npos) << said.str();
}

TEST(Mpi, collectives_are_exact) {
    if (inside_mpirun()) GTEST_SKIP();
    if (!can_use_mpi()) GTEST_SKIP() << "there is no MPI here: " << mpi_missing();
    EXPECT_EQ(mpirun("InsideMpirun.collectives_are_exact"), 0);
}

TEST(Mpi, a_failure_is_an_exit_code) {
    if (inside_mpirun()) GTEST_SKIP();
    if (!can_use_mpi()) GTEST_SKIP() << "there is no MPI here: " << mpi_missing();
    EXPECT_NE(mpirun("InsideMpirun.rank_2_throws"), 0);
}

TEST(SlowMpi, ranks_that_wait_for_each_other_leave) {
    if (inside_mpirun()) GTEST_SKIP();
    if (!can_use_mpi()) GTEST_SKIP() << "there is no MPI here: " << mpi_missing();
    expect_leaving("InsideMpirun.ranks_out_of_step", "in message of 1 f32 from rank 3, waiting for rank 3");
    expect_leaving("InsideMpirun.one_is_done_early", "before the first step, done with its work");
}

TEST(SlowMpi, a_rank_that_never_comes_to_mpi_is_not_waited_for_for_ever) {
    if (inside_mpirun()) GTEST_SKIP();
    if (!can_use_mpi()) GTEST_SKIP() << "there is no MPI here: " << mpi_missing();
    const std::string output = (std::filesystem::temp_directory_path() / cat("teratron-mpi-", ::getpid())).string();
    EXPECT_NE(mpirun("InsideMpirun.one_never_comes", output, " : -np 1 sleep 60"), 0);
    std::ostringstream said;
    said << std::ifstream(output).rdbuf();
    std::filesystem::remove(output);
    EXPECT_NE(said.str().find("waiting since 1 s in MPI_Init for all 5 ranks"), std::string::npos) << said.str();
    EXPECT_NE(said.str().find("MPI did not begin within 3 s: mpirun started 5 ranks"), std::string::npos) << said.str();
}

TEST(InsideMpirun, one_never_comes) {
    if (!inside_mpirun()) GTEST_SKIP() << "runs within SlowMpi.a_rank_that_never_comes*";
    WatchSettings settings;
    settings.patience_s = 1;
    settings.timeout_s = 3;
    ProcessWorld world(find_rank_place(), settings);
}

/// A standstill is soon found out, and why ranks leave is written down.
WatchSettings noting_why() {
    WatchSettings settings;
    settings.beat_s = 0.1;
    settings.standstill_s = 1;
    settings.leave = [](const std::string& why, int code) {
        std::ofstream(std::getenv(note_variable), std::ios::app) << why << std::endl;
        std::_Exit(code);
    };
    return settings;
}

TEST(InsideMpirun, ranks_out_of_step) {
    if (!inside_mpirun()) GTEST_SKIP() << "runs within SlowMpi.ranks_that_wait_for_each_other_leave";
    ProcessWorld world(find_rank_place(), noting_why());
    Arena arena;
    ThreadPool pool(1);
    const Exec exec{Device::cpu, &arena, &pool};
    Tensor x = exec.zeros(DType::f32, {1});
    if (world.comm().rank() == 2) world.comm().recv(exec, x, 3);  // which sends nothing
    world.comm().barrier();
}

TEST(InsideMpirun, one_is_done_early) {
    if (!inside_mpirun()) GTEST_SKIP() << "runs within SlowMpi.ranks_that_wait_for_each_other_leave";
    ProcessWorld world(find_rank_place(), noting_why());
    world.comm().barrier();
    if (world.comm().rank() != 2) world.comm().barrier();
}

TEST(InsideMpirun, collectives_are_exact) {
    if (!inside_mpirun()) GTEST_SKIP() << "runs within Mpi.collectives_are_exact";
    ProcessWorld world(find_rank_place(), {});
    Comm& comm = world.comm();
    ASSERT_EQ(comm.size(), 4);
    Arena arena;
    ThreadPool pool(1);
    const Exec exec{Device::cpu, &arena, &pool};
    const std::int64_t n = 100000;  // beyond what MPI sends without the receiver
    Tensor x = exec.tensor(DType::f64, {n}), all = exec.tensor(DType::f64, {4, n}),
           part = exec.tensor(DType::f64, {n / 4});
    const auto value = [](int rank, std::int64_t i) { return static_cast<double>(i % 1000 + rank * 7); };
    for (std::int64_t i = 0; i < n; ++i) x.ptr<double>()[i] = value(comm.rank(), i);
    comm.all_gather(exec, x, all);
    comm.reduce_scatter(exec, x, part);
    comm.send(exec, x, (comm.rank() + 1) % 4);
    comm.all_reduce(exec, x, Reduce::sum);
    Tensor got = exec.tensor(DType::f64, {n});
    comm.recv(exec, got, (comm.rank() + 3) % 4);
    comm.barrier();
    for (std::int64_t i = 0; i < n; ++i) {
        for (int r = 0; r < 4; ++r) ASSERT_EQ(all.ptr<double>()[r * n + i], value(r, i));
        ASSERT_EQ(x.ptr<double>()[i], value(0, i) + value(1, i) + value(2, i) + value(3, i));
        ASSERT_EQ(got.ptr<double>()[i], value((comm.rank() + 3) % 4, i));
    }
    for (std::int64_t i = 0; i < n / 4; ++i) {
        const std::int64_t at = comm.rank() * (n / 4) + i;
        ASSERT_EQ(part.ptr<double>()[i], value(0, at) + value(1, at) + value(2, at) + value(3, at));
    }
}

TEST(InsideMpirun, rank_2_throws) {
    if (!inside_mpirun()) GTEST_SKIP() << "runs within Mpi.a_failure_is_an_exit_code";
    ProcessWorld world(find_rank_place(), {});
    if (world.comm().rank() == 2) {
        world.fail("out of paper");
        FAIL() << "as it should";
    }
    for (;;) world.comm().barrier();
}

}  // namespace
}  // namespace tera
