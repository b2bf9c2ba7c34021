// Ranks that are processes: what the others say and do when one of them fails, dies, stops or is out of step.
#include "comm/watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "support/process_ranks.h"

namespace tera {
namespace {

using test::ProcessRanks;
using test::RankEnd;

/// Found out and left soon, so that the tests are short; but not so soon that a busy machine looks like a stopped rank.
WatchSettings quick() {
    WatchSettings s;
    s.silent_s = 4;
    s.beat_s = 0.1;
    s.notice_s = 0.5;
    s.standstill_s = 1;
    s.timeout_s = 30;
    return s;
}

/// All-reduces for ever.
void train(ProcessWorld& world) {
    Arena arena;
    ThreadPool pool(1);
    const Exec exec{Device::cpu, &arena, &pool};
    Tensor x = exec.zeros(DType::f32, {1000});
    for (std::int64_t step = 1;; ++step) {
        world.watch().progress().begin_step(step);
        world.comm().all_reduce(exec, x, Reduce::sum);
    }
}

void expect_said(const RankEnd& end, const std::vector<std::string>& words) {
    for (const std::string& word : words)
        EXPECT_NE(end.said.find(word), std::string::npos) << word << " in: " << end.said;
}

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

TEST(Watch, all_end_well) {
    const auto ends = ProcessRanks(
                          4,
                          [](ProcessWorld& world) {
                              sleep_ms(50 * world.comm().rank());  // not all at once
                              world.comm().barrier();
                          },
                          quick())
                          .wait();
    for (const RankEnd& end : ends) EXPECT_EQ(end.code, 0) << end.said;
}

TEST(SlowWatch, rank_0_may_be_done_long_before_the_others) {
    WatchSettings s = quick();
    s.silent_s = 2;
    const auto ends = ProcessRanks(
                          3,
                          [](ProcessWorld& world) {
                              if (world.comm().rank() > 0) sleep_ms(3500);
                          },
                          s)
                          .wait();
    for (const RankEnd& end : ends) EXPECT_EQ(end.code, 0) << end.said;
}

TEST(Watch, a_rank_that_throws_is_quoted_and_all_leave) {
    for (const int bad : {0, 2}) {
        const auto ends = ProcessRanks(
                              4,
                              [&](ProcessWorld& world) {
                                  if (world.comm().rank() == bad) {
                                      sleep_ms(100);
                                      throw Error("out of paper");
                                  }
                                  train(world);
                              },
                              quick())
                              .wait();
        for (int r = 0; r < 4; ++r) EXPECT_EQ(ends[static_cast<std::size_t>(r)].code, r == bad ? 3 : 1);
        expect_said(ends[static_cast<std::size_t>(bad)], {"out of paper"});
        if (bad != 0) expect_said(ends[0], {"leaving: rank 2 (", "out of paper"});
    }
}

TEST(Watch, a_rank_whose_output_nobody_reads_leaves_too) {
    const auto body = [](ProcessWorld& world) {
        world.comm().barrier();
        if (world.comm().rank() == 1) throw Error("no more");
        int pipe[2];
        if (::pipe(pipe) != 0) throw Error("pipe");
        ::dup2(pipe[1], STDOUT_FILENO);
        for (;;) std::printf("a line that fills the pipe and then blocks\n");
    };
    const auto ends = ProcessRanks(2, body, quick()).wait();
    EXPECT_EQ(ends[0].code, 1);
    expect_said(ends[0], {"leaving: rank 1 (", "no more"});
}

TEST(Watch, a_killed_rank_is_named_with_its_step_and_collective) {
    for (const int bad : {0, 3}) {
        ProcessRanks ranks(4, &train, quick());
        sleep_ms(500);
        kill(ranks.pid(bad), SIGKILL);
        const auto ends = ranks.wait();
        for (int r = 0; r < 4; ++r) EXPECT_EQ(ends[static_cast<std::size_t>(r)].code, r == bad ? -SIGKILL : 1);
        expect_said(ends[bad == 0 ? 1 : 0],
                    {"leaving: rank " + std::to_string(bad) + " (", "killed", "step ", "all_reduce(sum) of 1000 f32"});
    }
}

TEST(SlowWatch, a_stopped_rank_is_named_and_ended) {
    for (const int bad : {0, 1}) {
        ProcessRanks ranks(3, &train, quick());
        sleep_ms(500);
        kill(ranks.pid(bad), SIGSTOP);
        const auto ends = ranks.wait();
        for (int r = 0; r < 3; ++r) EXPECT_EQ(ends[static_cast<std::size_t>(r)].code, r == bad ? -SIGKILL : 1);
        expect_said(ends[bad == 0 ? 1 : 0],
                    {"leaving: rank " + std::to_string(bad) + " (", "no sign of life", "stopped", "step "});
    }
}

TEST(SlowWatch, a_pause_of_all_ranks_is_no_failure) {
    ProcessRanks ranks(
        3,
        [](ProcessWorld& world) {
            for (int i = 0; i < 20; ++i) {
                sleep_ms(100);
                world.comm().barrier();
            }
        },
        quick());
    sleep_ms(500);
    for (int r = 0; r < 3; ++r) kill(ranks.pid(r), SIGSTOP);
    sleep_ms(5500);
    for (int r = 0; r < 3; ++r) kill(ranks.pid(r), SIGCONT);
    for (const RankEnd& end : ranks.wait()) EXPECT_EQ(end.code, 0) << end.said;
}

TEST(SlowWatch, a_rank_that_hangs_is_named_and_ends_the_run_at_the_timeout) {
    WatchSettings s = quick();
    s.timeout_s = 3;
    ProcessRanks ranks(
        3,
        [](ProcessWorld& world) {
            if (world.comm().rank() == 2) sleep_ms(60000);
            world.comm().barrier();
        },
        s);
    const auto ends = ranks.wait();
    for (const RankEnd& end : ends) EXPECT_EQ(end.code, 1);
    expect_said(ends[0], {"ranks wait since 0 s for rank 2 (", "--distributed-timeout-minutes is over"});
}

TEST(Watch, ranks_out_of_step_are_named) {
    const auto ends = ProcessRanks(
                          3,
                          [](ProcessWorld& world) {
                              Arena arena;
                              ThreadPool pool(1);
                              const Exec exec{Device::cpu, &arena, &pool};
                              Tensor x = exec.zeros(DType::f32, {world.comm().rank() == 1 ? 8 : 9});
                              world.comm().all_reduce(exec, x, Reduce::sum);
                              world.comm().barrier();
                          },
                          quick())
                          .wait();
    std::string said;
    for (const RankEnd& end : ends) {
        EXPECT_NE(end.code, 0);
        said += end.said;
    }
    EXPECT_NE(said.find("out of step"), std::string::npos) << said;
    EXPECT_NE(said.find("of 8 f32"), std::string::npos) << said;
    EXPECT_NE(said.find("of 9 f32"), std::string::npos) << said;
}

/// All ranks leave, and rank 0 names everybody's call, long before the timeout.
void expect_standstill(int size, const ProcessRanks::Body& body, const std::vector<std::string>& words) {
    const auto ends = ProcessRanks(size, body, quick()).wait();
    for (const RankEnd& end : ends) EXPECT_EQ(end.code, 1) << end.said;
    expect_said(ends[0], {"leaving: collectives out of step: all ranks wait for each other"});
    expect_said(ends[0], words);
}

TEST(Watch, ranks_that_wait_for_each_other_are_named_with_their_calls) {
    const auto body = [](ProcessWorld& world) {
        world.watch().progress().begin_step(7);
        world.comm().barrier();
        Arena arena;
        ThreadPool pool(1);
        const Exec exec{Device::cpu, &arena, &pool};
        Tensor x = exec.zeros(DType::f32, {5});
        if (world.comm().rank() == 2) world.comm().recv(exec, x, 1);  // which sends nothing
        world.comm().barrier();
    };
    expect_standstill(
        4, body,
        {"; rank 2 (" + host_name() + "): step 7, in message of 5 f32 from rank 1, waiting for rank 1; rank",
         "rank 0 (" + host_name() + "), rank 1 (" + host_name() + "), rank 3 (" + host_name() +
             "): step 7, in barrier over 4 ranks"});
}

TEST(Watch, a_collective_too_many_on_one_group_is_named) {
    const auto body = [](ProcessWorld& world) {
        Arena arena;
        ThreadPool pool(1);
        const Exec exec{Device::cpu, &arena, &pool};
        Tensor x = exec.zeros(DType::f32, {5});
        Comm& comm = world.comm();
        const std::unique_ptr<Comm> pair = comm.group(comm.rank() < 2 ? std::vector{0, 1} : std::vector{2, 3});
        pair->all_reduce(exec, x, Reduce::sum);
        if (comm.rank() == 1) pair->all_reduce(exec, x, Reduce::sum);
        comm.all_reduce(exec, x, Reduce::sum);
    };
    expect_standstill(4, body,
                      {"rank 1 (" + host_name() +
                           "): before the first step, in all_reduce(sum) of 5 f32 over ranks 0, 1, waiting for rank 0",
                       "in all_reduce(sum) of 5 f32 over 4 ranks"});
}

/// A device on paper that was given these calls of a communicator of all, and has come so far.
void pretend_device(ProcessWorld& world, const std::vector<std::string>& calls, std::int64_t begun,
                    std::int64_t ended) {
    CallLog log(1, world.comm().size(), 0);
    for (const std::string& call : calls) {
        log.add(call);
        world.watch().progress().enqueue_call(call);
    }
    world.watch().progress().watch_device([=] { return std::vector<DeviceCalls>{log.seen(begun, ended)}; });
}

TEST(Watch, calls_of_devices_that_differ_are_named) {
    const auto body = [](ProcessWorld& world) {
        const bool other = world.comm().rank() == 2;
        pretend_device(world, {"broadcast of 5 f32", other ? "all_gather of 5 f32" : "all_reduce of 5 f32"}, 2, 1);
        sleep_ms(20000);
    };
    const auto ends = ProcessRanks(3, body, quick()).wait();
    for (const RankEnd& end : ends) EXPECT_EQ(end.code, 1) << end.said;
    expect_said(ends[0],
                {"collectives out of step: two of the 3 ranks of a group gave their devices different ones, call 2",
                 "rank 0 (" + host_name() + ") is at all_reduce of 5 f32, rank 2 (" + host_name() +
                     ") at all_gather of 5 f32"});
}

TEST(Watch, devices_that_wait_for_each_other_are_named) {
    const auto body = [](ProcessWorld& world) {
        const bool left_out = world.comm().rank() == 2;
        pretend_device(world, {"broadcast of 5 f32", "all_reduce of 5 f32"}, left_out ? 1 : 2, 1);
        if (!left_out) sleep_ms(20000);
        world.watch().progress().watch_device({});
        world.comm().barrier();
    };
    const auto ends = ProcessRanks(3, body, quick()).wait();
    for (const RankEnd& end : ends) EXPECT_EQ(end.code, 1) << end.said;
    expect_said(ends[0],
                {"out of step: all ranks wait for each other", "in all_reduce of 5 f32", "in barrier over 3 ranks"});
}

TEST(Watch, a_rank_that_is_done_too_early_is_named) {
    const auto body = [](ProcessWorld& world) {
        if (world.comm().rank() == 2) return;  // nobody has a connection to it that breaks
        Arena arena;
        ThreadPool pool(1);
        const Exec exec{Device::cpu, &arena, &pool};
        Tensor x = exec.zeros(DType::f32, {5});
        world.comm().recv(exec, x, 2);
    };
    const auto ends = ProcessRanks(3, body, quick()).wait();
    EXPECT_EQ(ends[0].code, 1);
    EXPECT_EQ(ends[1].code, 1);
    expect_said(ends[0], {"out of step", "rank 2 (" + host_name() + "): before the first step, done with its work"});
}

TEST(SlowWatch, a_rank_that_works_is_waited_for) {
    const auto ends = ProcessRanks(
                          3,
                          [](ProcessWorld& world) {
                              world.comm().barrier();
                              if (world.comm().rank() == 1) sleep_ms(4000);
                              world.comm().barrier();
                          },
                          quick())
                          .wait();
    for (const RankEnd& end : ends) EXPECT_EQ(end.code, 0) << end.said;
    expect_said(ends[0], {"for rank 1 ("});
}

}  // namespace
}  // namespace tera
