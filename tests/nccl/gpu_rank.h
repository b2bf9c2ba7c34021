// Ranks that share one GPU and talk over NCCL, each a process.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "comm/nccl_comm.h"
#include "core/engine.h"
#include "support/process_ranks.h"

// CUDA must not be open when a process forks, so it cannot be asked.
#define NEED_GPU() \
    if (!std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "no GPU in this machine"

namespace tera::test {

/// A rank with the GPU, and what the tests do with it.
struct GpuRank {
    explicit GpuRank(ProcessWorld& world)
        : process(world), engine(Device::cuda), all(make_nccl_comm(world.comm(), engine, &world.watch().progress())) {
        all->connect();
    }
    Tensor values(std::int64_t count) { return exec.tensor(DType::f32, {count}); }
    void all_reduce(Comm& comm, std::int64_t count = 1000) { comm.all_reduce(exec, values(count), Reduce::sum); }
    int number() const { return all->rank(); }

    ProcessWorld& process;
    Engine engine;
    ThreadPool pool{1};
    Arena arena{Arena::Kind::real, engine.memory()};
    Exec exec = engine.exec(arena, pool);
    std::unique_ptr<Comm> all;
};

inline std::vector<RankEnd> run_on_gpu(int ranks, const std::function<void(GpuRank&)>& body) {
    WatchSettings settings;
    settings.standstill_s = 3;
    const auto with_gpu = [&](ProcessWorld& world) {
        setenv("NCCL_HOSTID", std::to_string(world.comm().rank()).c_str(), 1);  // or NCCL refuses to share a GPU
        setenv("NCCL_SOCKET_IFNAME", "lo", 1);
        GpuRank rank(world);
        for (int i = 0; i < 20; ++i) rank.all_reduce(*rank.all);
        rank.process.watch().progress().begin_step(3);
        body(rank);
        rank.all->barrier();
    };
    return ProcessRanks(ranks, with_gpu, settings).wait();
}

/// From rank 0 to rank 1, two on their way.
inline void connect_mail(GpuRank& rank, std::int64_t count, bool ahead = false) {
    Comm::Mail mail;
    (rank.number() == 0 ? mail.to : mail.from) = 1 - rank.number();
    mail.on_their_way = 2;
    mail.bytes = static_cast<std::size_t>(count) * sizeof(float);
    mail.ahead = ahead;
    rank.all->connect_mail(mail);
}

}  // namespace tera::test
