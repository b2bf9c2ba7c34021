#include "comm/standstill.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace tera {
namespace {

using State = Progress::State;

const Clock::time_point begin{};
Clock::time_point after(int seconds) { return begin + std::chrono::seconds(seconds); }

State waiting(int rank, std::int64_t sent = 0, std::int64_t come = 0) {
    State s;
    s.calls = s.waits = 1;
    s.call = "barrier over 2 ranks";
    s.waiting = true;
    s.waits_for = rank;
    s.sent = sent;
    s.come = come;
    return s;
}

State working() {
    State s = waiting(0);
    s.waits_for = -1;
    return s;
}

State finished() {
    State s = working();
    s.finished = true;
    return s;
}

/// 10 s, looked at every second; the second at which it is found, or -1.
int found_after(const std::vector<State>& ranks, int seconds = 60) {
    Standstill standstill(10);
    for (int t = 0; t < seconds; ++t) {
        if (standstill.found(ranks, after(t))) return t;
    }
    return -1;
}

TEST(Standstill, all_wait_and_nothing_is_on_its_way) {
    EXPECT_EQ(found_after({waiting(1, 5, 3), waiting(0, 3, 5)}), 10);
}

TEST(Standstill, a_rank_that_works_may_take_its_time) {
    EXPECT_EQ(found_after({waiting(1), working()}), -1);
    EXPECT_EQ(found_after({working(), working()}), -1);
}

TEST(Standstill, bytes_on_their_way_may_take_their_time) {
    EXPECT_EQ(found_after({waiting(1, 9, 0), waiting(0, 0, 8)}), -1);
}

TEST(Standstill, what_is_sent_to_a_rank_that_is_done_never_comes) {
    EXPECT_EQ(found_after({waiting(1, 9, 0), finished()}), 20);
    EXPECT_EQ(found_after({finished(), finished()}), -1) << "the end of every run";
}

TEST(Standstill, whoever_moves_ends_it) {
    std::vector<State> ranks{waiting(1), waiting(0)};
    const auto moves = [&](auto change) {
        Standstill standstill(10);
        for (int t = 0; t < 9; ++t) EXPECT_FALSE(standstill.found(ranks, after(t)));
        change(ranks[1]);
        for (int t = 9; t < 19; ++t) EXPECT_FALSE(standstill.found(ranks, after(t)));
        EXPECT_TRUE(standstill.found(ranks, after(19)));
    };
    moves([](State& s) { ++s.waits; });
    moves([](State& s) { ++s.sent, ++s.come; });
    moves([](State& s) { s.waits_for = 1; });
}

TEST(Standstill, what_was_forgotten_does_not_count) {
    const std::vector<State> ranks{waiting(1), waiting(0)};
    Standstill standstill(10);
    EXPECT_FALSE(standstill.found(ranks, after(0)));
    standstill.forget();
    EXPECT_FALSE(standstill.found(ranks, after(10)));
    EXPECT_TRUE(standstill.found(ranks, after(20)));
}

TEST(Standstill, the_few_are_named_first) {
    std::vector<State> ranks(7, waiting(3));
    ranks[3].call = "message of 4 f32 from rank 5";
    ranks[3].waits_for = 5;
    ranks[3].step = 2;
    EXPECT_EQ(where_ranks_are(ranks, [](int rank) { return cat("rank ", rank, " (n", rank, ")"); }),
              "rank 3 (n3): step 2, in message of 4 f32 from rank 5, waiting for rank 5; "
              "rank 0 (n0), rank 1 (n1), rank 2 (n2), rank 4 (n4) and 2 more: before the first step, in barrier over 2 "
              "ranks");
}

}  // namespace
}  // namespace tera
