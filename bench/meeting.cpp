// How long ranks take to come together: processes of this machine meet at rank 0, make the communicators of all axes
// (tensor 8, pipeline 4, data the rest), pass a barrier, and agree on a number as they do before training.
//
//   meeting [ranks ..., default 32 128 512]
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "comm/mesh.h"
#include "comm/process_world.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

/// One rank; rank 0 tells how long it was from the first fork to each point.
void run_rank(int rank, int ranks, int port, Clock::time_point begin) {
    const double started = seconds_since(begin);
    tera::ProcessWorld world({rank, ranks, rank, tera::Launcher::variables, "127.0.0.1", port}, {});
    const double met = seconds_since(begin);
    const tera::Mesh mesh({.tp = 8, .dp = ranks / 32, .pp = 4}, world.comm());
    const double grouped = seconds_since(begin);
    world.comm().barrier();
    const double together = seconds_since(begin);
    tera::Arena arena;
    tera::ThreadPool pool(1);
    const tera::Exec exec{tera::Device::cpu, &arena, &pool};
    world.comm().all_reduce(exec, exec.zeros(tera::DType::f64, {1}), tera::Reduce::max);
    if (rank == ranks - 1)
        std::printf(
            "%5d ranks: the last was started after %.2f s, all had met after %.2f s, groups %.4f s more, first "
            "barrier %.2f s more, all_reduce %.2f s more\n",
            ranks, started, met, grouped - met, together - grouped, seconds_since(begin) - together);
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<int> sizes = {32, 128, 512};
    if (argc > 1) sizes.clear();
    for (int i = 1; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
    for (const int ranks : sizes) {
        if (ranks < 32 || ranks % 32 != 0) {
            std::fprintf(stderr, "meeting: give multiples of 32, not %d\n", ranks);
            return 2;
        }
        int port = 0;
        (void)tera::listen_on(port);
        const auto begin = Clock::now();
        for (int r = 0; r < ranks; ++r) {
            if (fork() != 0) continue;
            run_rank(r, ranks, port, begin);
            std::_Exit(0);
        }
        int failed = 0;
        for (int r = 0, status = 0; r < ranks; ++r) failed += wait(&status) > 0 && status != 0;
        if (failed > 0) {
            std::fprintf(stderr, "meeting: %d of %d ranks failed\n", failed, ranks);
            return 1;
        }
    }
}
