#include "comm/device_calls.h"

#include <gtest/gtest.h>

#include "comm/standstill.h"
#include "core/error.h"

namespace tera {
namespace {

using Ranks = std::vector<std::vector<DeviceCalls>>;

std::vector<RankCalls> heard(const Ranks& ranks) { return {ranks.begin(), ranks.end()}; }
std::optional<Misfit> misfit_of(const Ranks& ranks) { return find_misfit(heard(ranks)); }
std::vector<bool> held_up_of(const Ranks& ranks) { return held_up(heard(ranks)); }

CallLog log_of(int calls, const std::string& text = "all_reduce of 4 f32 over 2 ranks", int members = 2) {
    CallLog log(7, members, 0);
    for (int i = 0; i < calls; ++i) log.add(text);
    return log;
}

TEST(DeviceCalls, the_call_that_the_device_is_in_has_a_name) {
    CallLog log(7, 2, 0);
    EXPECT_EQ(log.seen(0, 0).call, "");
    for (const char* call : {"first", "second", "third"}) log.add(call);
    EXPECT_EQ(log.seen(0, 0).call, "first");
    EXPECT_EQ(log.seen(2, 1).call, "second");
    EXPECT_EQ(log.seen(3, 3).call, "third") << "the last, when all are done";
    EXPECT_TRUE(log.seen(2, 1).open());
    EXPECT_FALSE(log.seen(2, 2).open());
    EXPECT_EQ(log.seen(2, 1).given, 3);
}

TEST(DeviceCalls, names_are_kept_as_long_as_a_device_can_be_behind) {
    CallLog log(7, 2, 0);
    for (int i = 1; i <= 10000; ++i) log.add(cat("call ", i));
    EXPECT_EQ(log.seen(9001, 9000).call, "call 9001");
    EXPECT_EQ(log.seen(2, 1).call, "");
}

TEST(DeviceCalls, ranks_compare_wherever_they_are) {
    for (const int a : {1, 2, 3, 63, 64, 65, 1000, 4097}) {
        for (const int b : {1, 2, 3, 63, 64, 65, 1000, 4097}) {
            EXPECT_FALSE(misfit_of({{log_of(a).seen(0, 0)}, {log_of(b).seen(0, 0)}})) << a << " and " << b;
            // They differ in the first call: seen if they have a number in common that is at or behind it.
            const auto misfit = misfit_of({{log_of(a).seen(0, 0)}, {log_of(b, "other").seen(0, 0)}});
            EXPECT_TRUE(misfit || 2 * std::abs(a - b) > std::min(a, b)) << a << " and " << b;
        }
    }
}

TEST(DeviceCalls, the_call_at_which_ranks_differ_is_numbered) {
    CallLog a = log_of(8), b = log_of(8);
    a.add("all_gather of 4 f32 over 2 ranks");
    b.add("all_gather of 5 f32 over 2 ranks");
    const auto misfit = misfit_of({{}, {a.seen(9, 8)}, {log_of(3).seen(0, 0)}, {b.seen(9, 8)}});
    ASSERT_TRUE(misfit);
    EXPECT_EQ(misfit->one, 1);
    EXPECT_EQ(misfit->other, 3);
    EXPECT_EQ(misfit->after, 8);
    EXPECT_EQ(misfit->upto, 9);
    EXPECT_EQ(misfit->one_call, "all_gather of 4 f32 over 2 ranks");
    EXPECT_EQ(misfit->other_call, "all_gather of 5 f32 over 2 ranks");
}

TEST(DeviceCalls, a_call_that_one_rank_left_out_shows_at_the_next_that_differs) {
    CallLog a(7, 2, 0), b(7, 2, 0);
    for (const char* call : {"x", "x", "y", "z"}) a.add(call);
    for (const char* call : {"x", "y", "z"}) b.add(call);
    const auto misfit = misfit_of({{a.seen(0, 0)}, {b.seen(0, 0)}});
    ASSERT_TRUE(misfit);
    EXPECT_LE(misfit->after, 1);
    EXPECT_EQ(misfit->upto, 2);
}

TEST(DeviceCalls, devices_that_hang_in_different_calls_are_found_however_far_the_hosts_are) {
    for (int same = 100; same < 1100; same += 7) {
        for (const int further : {0, 1, 2, 3, 8, 64, 1000}) {
            CallLog a = log_of(same), b = log_of(same);
            a.add("all_gather");
            b.add("all_reduce");
            for (int i = 0; i < further; ++i) b.add("more");
            const auto misfit = misfit_of({{a.seen(same + 1, same)}, {b.seen(same + 1, same)}});
            ASSERT_TRUE(misfit) << same << " and " << further;
            EXPECT_EQ(misfit->after, same);
            EXPECT_EQ(misfit->upto, same + 1);
            EXPECT_EQ(misfit->one_call, "all_gather");
            EXPECT_EQ(misfit->other_call, "all_reduce");
            // One of them may have come through it, as calls of other sizes do.
            const std::int64_t through = further > 0 ? same + 1 : same;
            ASSERT_TRUE(misfit_of({{a.seen(same + 1, same)}, {b.seen(through + 1, through)}})) << same;
        }
    }
}

TEST(DeviceCalls, communicators_are_told_apart) {
    const std::uint64_t key = communicator_key({0, 1}, "collectives", 0);
    EXPECT_EQ(key, communicator_key({0, 1}, "collectives", 0));
    EXPECT_NE(key, communicator_key({1, 0}, "collectives", 0));
    EXPECT_NE(key, communicator_key({0, 1}, "collectives", 1));
    EXPECT_NE(key, communicator_key({0, 1}, "messages", 0));
    EXPECT_NE(communicator_key({1, 11}, "m", 0), communicator_key({11, 1}, "m", 0));
}

// ranks that wait for each other

DeviceCalls at(std::uint64_t key, std::int64_t begun, std::int64_t ended, int members = 2, std::int64_t ahead = 0) {
    DeviceCalls calls;
    calls.key = key;
    calls.members = members;
    calls.given = std::max(begun, std::int64_t{5});
    calls.begun = begun;
    calls.ended = ended;
    calls.ahead = ahead;
    return calls;
}

TEST(HeldUp, a_device_waits_for_a_member_that_has_not_come) {
    using Held = std::vector<bool>;
    EXPECT_EQ(held_up_of({{at(1, 3, 2)}, {at(1, 2, 2)}}), Held({true, false}));
    EXPECT_EQ(held_up_of({{at(1, 3, 2)}, {at(1, 3, 2)}}), Held({false, false})) << "both are there: bytes are moving";
    EXPECT_EQ(held_up_of({{at(1, 3, 2)}, {at(1, 4, 3)}}), Held({false, true})) << "the other is further";
    EXPECT_EQ(held_up_of({{at(1, 3, 2)}, {}}), Held({true, false})) << "the other is not heard to have it";
}

TEST(HeldUp, a_device_that_can_go_on_elsewhere_is_not) {
    // Rank 0 is in calls of two communicators: one waits, the other is under way.
    EXPECT_FALSE(held_up_of({{at(1, 3, 2), at(2, 7, 6)}, {at(1, 2, 2), at(2, 7, 6)}})[0]);
    EXPECT_TRUE(held_up_of({{at(1, 3, 2), at(2, 7, 6)}, {at(1, 2, 2), at(2, 6, 6)}})[0]);
}

TEST(HeldUp, a_sender_waits_for_a_place_only) {
    EXPECT_FALSE(held_up_of({{at(1, 3, 2, 2, 4)}, {at(1, 0, 0)}})[0]);
    EXPECT_FALSE(held_up_of({{at(1, 6, 5, 2, 4)}, {at(1, 2, 1)}})[0])
        << "message 2 is being received, its place is next";
    EXPECT_TRUE(held_up_of({{at(1, 6, 5, 2, 4)}, {at(1, 1, 1)}})[0]);
}

Progress::State with(std::vector<DeviceCalls> device, int waits_for = -1) {
    Progress::State s;
    s.device = std::move(device);
    s.waits_for = waits_for;
    return s;
}

int found_after(const std::vector<Progress::State>& ranks) {
    Standstill standstill(10);
    for (int t = 0; t < 60; ++t) {
        if (standstill.found(ranks, Clock::time_point{} + std::chrono::seconds(t))) return t;
    }
    return -1;
}

TEST(StandstillOfDevices, ranks_that_wait_for_each_other_in_two_communicators) {
    EXPECT_EQ(found_after({with({at(1, 3, 2), at(2, 6, 6)}), with({at(1, 2, 2), at(2, 7, 6)})}), 20);
}

TEST(StandstillOfDevices, a_device_and_a_host_that_wait_for_each_other) {
    DeviceCalls done = at(1, 5, 5);
    EXPECT_EQ(found_after({with({at(1, 6, 5)}), with({done}, 0)}), 20);
    done.given = 6;
    EXPECT_EQ(found_after({with({at(1, 6, 5)}), with({done}, 0)}), -1) << "its device is on the way to that call";
}

TEST(StandstillOfDevices, a_device_that_computes_may_take_its_time) {
    EXPECT_EQ(found_after({with({at(1, 3, 2)}), with({at(1, 2, 2)})}), -1);
    EXPECT_EQ(found_after({with({at(1, 3, 2)}), with({at(1, 3, 2)})}), -1) << "a large call";
}

TEST(StandstillOfDevices, a_device_that_moves_ends_it) {
    std::vector<Progress::State> ranks{with({at(1, 3, 2), at(2, 6, 6)}), with({at(1, 2, 2), at(2, 7, 6)})};
    Standstill standstill(10);
    const auto second = [](int t) { return Clock::time_point{} + std::chrono::seconds(t); };
    for (int t = 0; t < 19; ++t) EXPECT_FALSE(standstill.found(ranks, second(t)));
    ++ranks[1].device[1].begun;
    ++ranks[1].device[1].ended;
    for (int t = 19; t < 39; ++t) EXPECT_FALSE(standstill.found(ranks, second(t)));
    EXPECT_TRUE(standstill.found(ranks, second(39)));
}

}  // namespace
}  // namespace tera
