// Ranks that share a GPU and give NCCL calls that do not fit together: found out, named, and all leave.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "comm/nccl_comm.h"
#include "support/process_ranks.h"

namespace tera {
namespace {

using test::ProcessRanks;
using test::RankEnd;

// CUDA must not be open when a process forks, so it cannot be asked.
#define NEED_GPU() \
    if (!std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "no GPU in this machine"

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

std::vector<RankEnd> run(int ranks, const std::function<void(GpuRank&)>& body) {
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

void expect_out_of_step(const std::vector<RankEnd>& ends, const std::vector<std::string>& words) {
    for (const RankEnd& end : ends) EXPECT_EQ(end.code, 1) << end.said;
    EXPECT_NE(ends[0].said.find("leaving: collectives out of step"), std::string::npos) << ends[0].said;
    for (const std::string& word : words)
        EXPECT_NE(ends[0].said.find(word), std::string::npos) << word << "\n" << ends[0].said;
}

TEST(NcclOutOfStep, calls_that_fit_end_well) {
    NEED_GPU();
    const auto ends = run(4, [](GpuRank& rank) {
        const std::unique_ptr<Comm> pair = rank.all->group(rank.number() < 2 ? std::vector{0, 1} : std::vector{2, 3});
        pair->connect();
        for (int i = 0; i < 50; ++i) rank.all_reduce(i % 2 == 0 ? *pair : *rank.all);
        rank.all->barrier();
        if (rank.number() == 2) std::this_thread::sleep_for(std::chrono::seconds(9));  // works; the others wait for it
        rank.all_reduce(*rank.all);
        rank.all->barrier();
    });
    for (const RankEnd& end : ends) EXPECT_EQ(end.code, 0) << end.said;
}

TEST(NcclOutOfStep, another_call) {
    NEED_GPU();
    expect_out_of_step(run(2,
                           [](GpuRank& rank) {
                               if (rank.number() == 1)
                                   rank.all->all_gather(rank.exec, rank.values(500), rank.values(1000));
                               else
                                   rank.all_reduce(*rank.all);
                           }),
                       {"of the 2 ranks", "call 21 of that group", "all_reduce of 1000 f32", "all_gather of 500 f32"});
}

TEST(NcclOutOfStep, another_size) {
    NEED_GPU();
    expect_out_of_step(run(2, [](GpuRank& rank) { rank.all_reduce(*rank.all, 1000 + rank.number()); }),
                       {"call 21 of that group"});
}

TEST(NcclOutOfStep, a_call_left_out) {
    NEED_GPU();
    expect_out_of_step(run(4,
                           [](GpuRank& rank) {
                               if (rank.number() != 2) rank.all_reduce(*rank.all);
                           }),
                       {"rank 2 (", "barrier", "step 3, in all_reduce of 1000 f32 over 4 ranks"});
}

TEST(NcclOutOfStep, groups_in_another_order) {
    NEED_GPU();
    expect_out_of_step(run(4,
                           [](GpuRank& rank) {
                               std::unique_ptr<Comm> pair;
                               if (rank.number() < 2) {
                                   pair = rank.all->group({0, 1});
                                   pair->connect();
                               }
                               if (rank.number() == 1) rank.all_reduce(*pair, 7);
                               rank.all_reduce(*rank.all);
                               if (rank.number() == 0) rank.all_reduce(*pair, 7);
                               rank.all->barrier();
                           }),
                       {"rank 1 (", "in all_reduce of 7 f32 over 2 ranks", "in all_reduce of 1000 f32 over 4 ranks"});
}

/// From rank 0 to rank 1, two on their way.
void connect_mail(GpuRank& rank, std::int64_t count) {
    Comm::Mail mail;
    (rank.number() == 0 ? mail.to : mail.from) = 1 - rank.number();
    mail.on_their_way = 2;
    mail.bytes = static_cast<std::size_t>(count) * sizeof(float);
    rank.all->connect_mail(mail);
}

TEST(NcclOutOfStep, a_message_that_nobody_sends) {
    NEED_GPU();
    const auto ends = run(2, [](GpuRank& rank) {
        connect_mail(rank, 1000);
        for (int i = 0; i < 5; ++i) {
            if (rank.number() == 0) rank.all->send(rank.exec, rank.values(1000), 1);
            if (rank.number() == 1) rank.all->recv(rank.exec, rank.values(1000), 0);
        }
        if (rank.number() == 1) rank.all->recv(rank.exec, rank.values(1000), 0);
    });
    expect_out_of_step(ends, {"in message of 1000 f32 over 2 ranks", "barrier"});
}

TEST(NcclOutOfStep, messages_that_nobody_takes) {
    NEED_GPU();
    constexpr std::int64_t large = 8 << 20;  // small ones fit into NCCL's own buffers
    const auto ends = run(2, [](GpuRank& rank) {
        connect_mail(rank, large);
        const Tensor message = rank.values(large);
        for (int i = 0; i < 5; ++i) {
            if (rank.number() == 0) rank.all->send(rank.exec, message, 1);
        }
    });
    expect_out_of_step(ends, {cat("in message of ", large, " f32 over 2 ranks"), "barrier"});
}

}  // namespace
}  // namespace tera
