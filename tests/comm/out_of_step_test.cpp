// Ranks that are threads and whose calls do not fit together: nothing hangs, and the text says who is where.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "comm/thread_comm.h"
#include "core/error.h"
#include "support/expect_usage_error.h"
#include "support/rank_memory.h"

namespace tera {
namespace {

using test::RankMemory;

std::string failure_of(int ranks, const std::function<void(Comm&)>& f) {
    try {
        run_on_threads(ranks, f);
    } catch (const Error& e) {
        return e.what();
    }
    return "nothing was thrown";
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
    for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
}

TEST(CollectivesOutOfStep, different_sizes_are_named) {
    expect_words(failure_of(3,
                            [](Comm& comm) {
                                const RankMemory m;
                                comm.all_reduce(m.exec, m.zeros(DType::f32, comm.rank() == 1 ? 8 : 9), Reduce::sum);
                            }),
                 {"collectives out of step: rank ", "of 8 f32", "of 9 f32", "over 3 ranks"});
}

TEST(CollectivesOutOfStep, different_number_formats_are_named) {
    expect_words(failure_of(3,
                            [](Comm& comm) {
                                const RankMemory m;
                                if (comm.rank() == 0) return;
                                const auto two = comm.group({2, 1});
                                two->broadcast(m.exec, m.zeros(two->rank() == 0 ? DType::f64 : DType::f32, 4), 0);
                            }),
                 {"broadcast of 4 f32 from rank 2", "broadcast of 4 f64 from rank 2", "over ranks 2, 1"});
}

TEST(CollectivesOutOfStep, different_operations_are_named) {
    expect_words(failure_of(2,
                            [](Comm& comm) {
                                const RankMemory m;
                                if (comm.rank() == 0)
                                    comm.all_reduce(m.exec, m.zeros(DType::f32, 4), Reduce::max);
                                else
                                    comm.broadcast(m.exec, m.zeros(DType::f32, 4), 0);
                            }),
                 {"all_reduce(max)", "broadcast"});
}

TEST(CollectivesOutOfStep, a_message_of_another_format_is_named) {
    expect_words(failure_of(2,
                            [](Comm& comm) {
                                const RankMemory m;
                                if (comm.rank() == 0)
                                    comm.send(m.exec, m.zeros(DType::f32, 4), 1);
                                else
                                    comm.recv(m.exec, m.zeros(DType::f64, 4), 0);
                            }),
                 {"4 f64 from rank 0", "sent were 4 f32"});
}

TEST(CollectivesOutOfStep, a_rank_that_throws_wakes_all) {
    std::atomic<int> reached{0};
    const std::string text = failure_of(4, [&](Comm& comm) {
        const RankMemory m;
        const auto half = comm.group(comm.rank() < 2 ? std::vector<int>{0, 1} : std::vector<int>{2, 3});
        if (comm.rank() == 2) throw Error("out of paper");
        if (comm.rank() == 3) half->recv(m.exec, m.zeros(DType::f32, 4), 0);
        comm.barrier();
        ++reached;
    });
    EXPECT_EQ(text, "rank 2: out of paper");
    EXPECT_EQ(reached, 0);
}

TEST(CollectivesOutOfStep, a_rank_that_ends_is_missed) {
    expect_words(failure_of(3,
                            [](Comm& comm) {
                                if (comm.rank() != 1) comm.barrier();
                            }),
                 {"rank 1 has ended and is missing in barrier"});
    expect_words(failure_of(2,
                            [](Comm& comm) {
                                const RankMemory m;
                                if (comm.rank() == 0) comm.recv(m.exec, m.zeros(DType::f32, 4), 1);
                            }),
                 {"rank 1 has ended and sends nothing"});
}

TEST(CollectivesOutOfStep, usage_errors_stay_usage_errors) {
    expect_usage_error(
        [] {
            run_on_threads(2, [](Comm& comm) {
                if (comm.rank() == 0) usage_error("--tensor-model-parallel-size 3: 2 ranks");
                comm.barrier();
            });
        },
        {"rank 0: --tensor-model-parallel-size 3"});
}

const std::string all_wait = "collectives out of step: all ranks wait for each other; ";

/// The others are in the middle of a collective, each reading and writing the other's memory, when a rank fails.
TEST(CollectivesOutOfStep, a_failure_elsewhere_leaves_no_memory_in_use) {
    for (int round = 0; round < 40; ++round) {
        const std::string said = failure_of(3, [&](Comm& comm) {
            const std::unique_ptr<Comm> pair = comm.rank() < 2 ? comm.group({0, 1}) : nullptr;
            if (comm.rank() == 2) {
                std::this_thread::sleep_for(std::chrono::microseconds(500 + 100 * round));
                throw Error("rank 2 has had enough");
            }
            for (;;) {
                const RankMemory m;  // given back, and touched no more, as soon as the call is over
                pair->broadcast(m.exec, m.zeros(DType::f32, 1 << 20), 0);
            }
        });
        EXPECT_EQ(said, "rank 2: rank 2 has had enough");
    }
}

TEST(ThreadStandstill, a_message_that_nobody_sends) {
    EXPECT_EQ(failure_of(4,
                         [](Comm& comm) {
                             const RankMemory m;
                             comm.barrier();
                             if (comm.rank() == 2) comm.recv(m.exec, m.zeros(DType::f32, 5), 1);
                             comm.barrier();
                         }),
              all_wait +
                  "rank 2: in recv of 5 f32 from rank 1 over 4 ranks; rank 0, rank 1, rank 3: in barrier over 4 "
                  "ranks");
}

TEST(ThreadStandstill, a_message_too_few) {
    EXPECT_EQ(failure_of(2,
                         [](Comm& comm) {
                             const RankMemory m;
                             const int other = 1 - comm.rank();
                             if (comm.rank() == 0) comm.send(m.exec, m.zeros(DType::bf16, 3), other);
                             for (int k = 0; k < 2; ++k) comm.recv(m.exec, m.zeros(DType::bf16, 3), other);
                         }),
              all_wait +
                  "rank 1: in recv of 3 bf16 from rank 0 over 2 ranks; "
                  "rank 0: in recv of 3 bf16 from rank 1 over 2 ranks");
}

TEST(ThreadStandstill, a_message_in_another_group) {
    EXPECT_EQ(failure_of(2,
                         [](Comm& world) {
                             const RankMemory m;
                             const auto turned = world.group({1, 0});
                             if (world.rank() == 0) world.send(m.exec, m.zeros(DType::f32, 3), 1);
                             if (world.rank() == 1) turned->recv(m.exec, m.zeros(DType::f32, 3), 1);
                             world.barrier();
                         }),
              all_wait + "rank 0: in barrier over 2 ranks; rank 1: in recv of 3 f32 from rank 0 over ranks 1, 0");
}

TEST(ThreadStandstill, two_groups_of_the_same_ranks) {
    EXPECT_EQ(failure_of(3,
                         [](Comm& world) {
                             if (world.rank() == 2) return;
                             const RankMemory m;
                             const auto one = world.group({0, 1}), two = world.group({0, 1});
                             Tensor x = m.zeros(DType::f64, 6);
                             if (world.rank() == 0)
                                 one->all_gather(m.exec, x.slice(0, 3), x);
                             else
                                 two->all_gather(m.exec, x.slice(0, 3), x);
                         }),
              all_wait +
                  "rank 2: done with its work; rank 0: in all_gather of 3 f64 over ranks 0, 1; "
                  "rank 1: in all_gather of 3 f64 over ranks 0, 1 (their group 2)");
}

TEST(ThreadStandstill, groups_around_a_ring) {
    EXPECT_EQ(failure_of(3,
                         [](Comm& world) {
                             const RankMemory m;
                             const int rank = world.rank(), next = (rank + 1) % 3, before = (rank + 2) % 3;
                             const auto mine = world.group({rank, next}), others = world.group({before, rank});
                             for (Comm* comm : {mine.get(), others.get()})
                                 comm->all_reduce(m.exec, m.zeros(DType::i32, 7), Reduce::max);
                         }),
              all_wait +
                  "rank 0: in all_reduce(max) of 7 i32 over ranks 0, 1; "
                  "rank 1: in all_reduce(max) of 7 i32 over ranks 1, 2; "
                  "rank 2: in all_reduce(max) of 7 i32 over ranks 2, 0");
}

TEST(ThreadStandstill, a_shift_without_one_rank) {
    EXPECT_EQ(failure_of(3,
                         [](Comm& comm) {
                             const RankMemory m;
                             if (comm.rank() < 2) comm.shift(m.exec, m.zeros(DType::f32, 2), m.zeros(DType::f32, 2));
                             comm.barrier();
                         }),
              all_wait + "rank 0: in recv of 2 f32 from rank 2 over 3 ranks; rank 1, rank 2: in barrier over 3 ranks");
}

TEST(ThreadStandstill, a_rank_that_nobody_waits_for_ends_last) {
    EXPECT_EQ(failure_of(3,
                         [](Comm& comm) {
                             const RankMemory m;
                             // The text is the same whoever comes last.
                             if (comm.rank() == 2) return std::this_thread::sleep_for(std::chrono::milliseconds(20));
                             comm.recv(m.exec, m.zeros(DType::f32, 1), 1 - comm.rank());
                         }),
              all_wait +
                  "rank 2: done with its work; rank 1: in recv of 1 f32 from rank 0 over 3 ranks; "
                  "rank 0: in recv of 1 f32 from rank 1 over 3 ranks");
}

TEST(ThreadStandstill, every_rank_that_waits_throws) {
    std::mutex mutex;
    std::vector<std::string> thrown;
    const std::string text = failure_of(3, [&](Comm& comm) {
        const RankMemory m;
        const auto call = [&] { comm.recv(m.exec, m.zeros(DType::f32, 1), (comm.rank() + 1) % 3); };
        for (int k = 0; k < 2; ++k) {  // whoever goes on all the same gets no further
            try {
                call();
            } catch (const Error& e) {
                const std::lock_guard lock(mutex);
                thrown.push_back(e.what());
            }
        }
    });
    EXPECT_EQ(thrown.size(), 6u);
    for (const std::string& t : thrown) EXPECT_EQ(t.substr(0, text.size()), text);
    EXPECT_EQ(text.substr(0, all_wait.size()), all_wait);
}

/// Calls that fit, in an order that makes ranks wait for each other in many ways.
void keep_in_step(Comm& world, int rounds) {
    const RankMemory m;
    const bool odd = world.rank() % 2 == 1;
    const auto half = world.group(odd ? std::vector<int>{1, 3} : std::vector<int>{0, 2});
    const auto pair = world.group(world.rank() < 2 ? std::vector<int>{0, 1} : std::vector<int>{2, 3});
    const Tensor x = m.zeros(DType::f32, 4), y = m.zeros(DType::f32, 4);
    for (int k = 0; k < rounds; ++k) {
        if (odd) pair->send(m.exec, x, 0);
        if (!odd) pair->recv(m.exec, y, 1);
        half->all_reduce(m.exec, x, Reduce::sum);
        world.shift(m.exec, x, y);
        if (!odd) pair->send(m.exec, x, 1);
        if (odd) pair->recv(m.exec, y, 0);
        pair->barrier();
        world.broadcast(m.exec, x, k % 4);
    }
}

TEST(ThreadStandstill, ranks_in_step_never_stand_still) {
    run_on_threads(4, [](Comm& world) { keep_in_step(world, 500); });
}

TEST(ThreadStandstill, worlds_do_not_count_each_other) {
    run_on_threads(2, [](Comm& outer) {
        if (outer.rank() == 0) {  // the other one waits meanwhile
            run_on_threads(4, [](Comm& world) { keep_in_step(world, 50); });
            EXPECT_EQ(failure_of(2,
                                 [](Comm& inner) {
                                     const RankMemory m;
                                     inner.recv(m.exec, m.zeros(DType::u8, 1), 1 - inner.rank());
                                 }),
                      all_wait +
                          "rank 1: in recv of 1 u8 from rank 0 over 2 ranks; "
                          "rank 0: in recv of 1 u8 from rank 1 over 2 ranks");
        }
        outer.barrier();
    });
}

}  // namespace
}  // namespace tera
