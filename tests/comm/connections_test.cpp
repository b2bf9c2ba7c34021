// How many connections ranks that are processes open, and what they say when they may open no more.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "comm/tcp.h"
#include "support/expect_usage_error.h"
#include "support/process_ranks.h"
#include "support/rank_memory.h"

namespace tera {
namespace {

using test::ProcessRanks;
using test::RankEnd;
using test::RankMemory;

int open_files() {
    int count = 0;
    DIR* const folder = ::opendir("/proc/self/fd");
    while (::readdir(folder) != nullptr) ++count;
    ::closedir(folder);
    return count;
}

void set_soft_limit(rlim_t files) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = files;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/// Not one file more.
void allow_no_more_files() {
    const int next = ::dup(0);
    ::close(next);
    set_soft_limit(static_cast<rlim_t>(next));
}

void call_all_small_ones(Comm& comm) {
    const RankMemory m;
    const std::int64_t n = comm.size();
    comm.barrier();
    comm.all_reduce(m.exec, m.zeros(DType::f64, 8192), Reduce::sum);
    comm.all_reduce(m.exec, m.zeros(DType::i32, 1), Reduce::max);
    comm.all_gather(m.exec, m.zeros(DType::f32, 5), m.zeros(DType::f32, 5 * n));
    comm.reduce_scatter(m.exec, m.zeros(DType::f32, 3 * n), m.zeros(DType::f32, 3));
    comm.broadcast(m.exec, m.zeros(DType::f32, 1 << 20), 0);
    comm.broadcast(m.exec, m.zeros(DType::f32, 1), comm.size() - 1);
}

TEST(Connections, of_small_collectives_grow_like_the_logarithm_of_the_ranks) {
    for (const auto& [ranks, both_ways] : {std::pair{5, 6}, {8, 6}, {16, 8}}) {
        test::run_on_processes(ranks, [most = both_ways](Comm& comm) {
            const int before = open_files();
            call_all_small_ones(comm);
            comm.barrier();  // all have come
            EXPECT_LE(open_files() - before, most);
        });
    }
}

TEST(Connections, small_collectives_need_few_files) {
    const auto body = [](ProcessWorld& world) {
        world.comm().barrier();
        set_soft_limit(26);
        call_all_small_ones(world.comm());
    };
    for (const RankEnd& end : ProcessRanks(8, body).wait()) EXPECT_EQ(end.code, 0) << end.said;
}

TEST(Connections, the_limit_of_open_files_is_raised) {
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    set_soft_limit(100);
    test::run_on_processes(2, [&](Comm&) {
        rlimit now{};
        getrlimit(RLIMIT_NOFILE, &now);
        EXPECT_EQ(now.rlim_cur, before.rlim_max);
    });
    set_soft_limit(before.rlim_cur);
}

TEST(Connections, a_rank_may_have_just_as_many_files_as_it_needs) {
    int port = 0;
    const Socket listener = listen_on(port);
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    allow_no_more_files();
    EXPECT_NO_THROW(EXPECT_FALSE(accept_from(listener))) << "nobody has come";
    set_soft_limit(before.rlim_cur);
}

/// UBSan opens a pipe to look whether an object can be read, and calls it invalid where that fails.
#ifdef __SANITIZE_ADDRESS__
#define NEED_NO_FILES() GTEST_SKIP() << "the sanitizers need files themselves"
#else
#define NEED_NO_FILES()
#endif

TEST(Connections, too_many_open_files_are_said_where_ranks_meet) {
    NEED_NO_FILES();
    int port = 0;
    Socket listener = listen_on(port);
    const Socket caller = connect_to("127.0.0.1", port, Clock::now() + std::chrono::seconds(10));
    ASSERT_TRUE(caller);
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    allow_no_more_files();
    const RankPlace place{0, 2, 0, Launcher::variables, "127.0.0.1", port, listener.release()};
    WatchSettings settings;
    settings.timeout_s = 2;
    expect_usage_error([&] { come_together(place, settings); },
                       {"too many open files: ulimit -n is ", "2 ranks need up to 106"});
    set_soft_limit(before.rlim_cur);
}

TEST(Connections, too_many_open_files_end_the_run_with_the_way_out) {
    NEED_NO_FILES();
    for (const bool sends : {true, false}) {
        const auto body = [=](ProcessWorld& world) {
            const RankMemory m;
            const int rank = world.comm().rank();
            world.comm().barrier();
            if (rank == 2) allow_no_more_files();
            world.comm().barrier();
            if (sends == (rank == 2)) world.comm().send(m.exec, m.zeros(DType::f32, 5), rank == 2 ? 1 : 2);
            world.comm().recv(m.exec, m.zeros(DType::f32, 5), rank == 2 ? 3 : 2);
        };
        WatchSettings settings;
        settings.timeout_s = 5;  // nobody waits so long
        settings.silent_s = 4;
        settings.beat_s = 0.1;
        const auto ends = ProcessRanks(4, body, settings).wait();
        EXPECT_EQ(ends[2].code, 3);
        for (const std::size_t r : {0u, 2u}) {
            EXPECT_NE(ends[r].said.find("too many open files: ulimit -n is "), std::string::npos) << ends[r].said;
            EXPECT_NE(ends[r].said.find("4 ranks need up to "), std::string::npos) << ends[r].said;
        }
    }
}

}  // namespace
}  // namespace tera
