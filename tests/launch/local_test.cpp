// The launcher of ranks, with shells in the place of ranks.
#include "launch/local.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "support/temp_folder.h"

namespace tera {
namespace {

/// The launcher in a process of its own, with what it writes.
class Launched {
  public:
    Launched(int ranks, const std::string& script, double grace_s = 5, double stopped_s = 60) {
        LocalLaunch launch;
        launch.command = {"/bin/sh", "-c", script};
        launch.ranks = launch.world = ranks;
        launch.grace_s = grace_s;
        launch.stopped_s = stopped_s;
        launch.waiting_bytes = 1 << 20;
        if (::pipe(out_) != 0 || ::pipe(err_) != 0) std::abort();
        pid_ = ::fork();
        if (pid_ == 0) {
            ::dup2(out_[1], 1);
            ::dup2(err_[1], 2);
            for (const int fd : {out_[0], out_[1], err_[0], err_[1]}) ::close(fd);
            // Libraries have threads that take any signal: the GPU driver's, once it has counted the GPUs.
            std::thread([] { std::this_thread::sleep_for(std::chrono::hours(1)); }).detach();
            std::_Exit(launch_local(launch));
        }
        ::close(out_[1]);
        ::close(err_[1]);
    }

    pid_t pid() const { return pid_; }

    int wait() {
        out = read_all(out_[0]);
        err = read_all(err_[0]);
        return wait_unread();
    }
    /// Without reading what it still writes.
    int wait_unread() {
        int status = 0;
        ::waitpid(pid_, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }

    std::string out, err;

  private:
    static std::string read_all(int fd) {
        std::string text;
        char buffer[4096];
        for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
        ::close(fd);
        return text;
    }

    pid_t pid_;
    int out_[2], err_[2];
};

std::vector<std::string> sorted_lines(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    std::sort(lines.begin(), lines.end());
    return lines;
}

bool wait_for_file(const std::filesystem::path& path) {
    for (int i = 0; i < 1000; ++i) {
        if (std::filesystem::exists(path)) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

TEST(LaunchLocal, ranks_know_their_place_and_lines_carry_it) {
    Launched run(3,
                 "echo $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE; test -n \"$MASTER_PORT\" && echo at "
                 "$MASTER_ADDR >&2");
    EXPECT_EQ(run.wait(), 0);
    EXPECT_EQ(sorted_lines(run.out),
              (std::vector<std::string>{"0: 0 of 3, 0 of 3", "1: 1 of 3, 1 of 3", "2: 2 of 3, 2 of 3"}));
    EXPECT_EQ(sorted_lines(run.err),
              (std::vector<std::string>{"0: at 127.0.0.1", "1: at 127.0.0.1", "2: at 127.0.0.1"}));
}

TEST(LaunchLocal, an_mpirun_around_it_has_no_say) {
    ::setenv("OMPI_COMM_WORLD_SIZE", "8", 1);
    Launched run(2, "echo $WORLD_SIZE ${OMPI_COMM_WORLD_SIZE:-none}");
    ::unsetenv("OMPI_COMM_WORLD_SIZE");
    EXPECT_EQ(run.wait(), 0);
    EXPECT_EQ(sorted_lines(run.out), (std::vector<std::string>{"0: 2 none", "1: 2 none"}));
}

TEST(LaunchLocal, rank_0_has_the_socket_of_the_port_that_was_chosen) {
    Launched run(2, "echo \"$RANK $(readlink /proc/$$/fd/${TERATRON_LISTENER:-none} | cut -d: -f1)\"");
    EXPECT_EQ(run.wait(), 0) << run.err;
    EXPECT_NE(run.out.find("0: 0 socket\n"), std::string::npos) << run.out;
    EXPECT_NE(run.out.find("1: 1 \n"), std::string::npos) << run.out;
}

TEST(LaunchLocal, labels_are_as_wide_as_the_largest_rank) {
    Launched run(11, "test $RANK = 3 -o $RANK = 10 && echo here; true");
    EXPECT_EQ(run.wait(), 0);
    EXPECT_EQ(sorted_lines(run.out), (std::vector<std::string>{" 3: here", "10: here"}));
}

TEST(LaunchLocal, lines_of_ranks_are_never_mixed_and_nothing_is_lost) {
    Launched run(4, "i=0; while [ $i -lt 300 ]; do echo line $i of rank $RANK; i=$((i+1)); done; printf end");
    EXPECT_EQ(run.wait(), 0);
    std::vector<int> next(4);
    std::istringstream in(run.out);
    for (std::string line; std::getline(in, line);) {
        const int rank = line[0] - '0';
        ASSERT_TRUE(rank >= 0 && rank < 4) << line;
        int& n = next[static_cast<std::size_t>(rank)];
        EXPECT_EQ(line.substr(1),
                  n == 300 ? ": end" : ": line " + std::to_string(n) + " of rank " + std::to_string(rank));
        ++n;
    }
    EXPECT_EQ(next, std::vector<int>(4, 301));
}

TEST(LaunchLocal, what_ranks_complain_of_in_the_same_words_is_there_once) {
    Launched run(3,
                 "echo teratron: no such flag >&2; echo \"teratron: rank $RANK (host): no such file\" >&2; "
                 "echo teratron: rank $RANK fails >&2; echo a note >&2; echo teratron: on stdout");
    EXPECT_EQ(run.wait(), 0);
    std::vector<std::string> lines;
    std::size_t missing = 0;
    for (const std::string& line : sorted_lines(run.err)) {
        const bool file = line.find("(host): no such file") != line.npos;
        missing += file;
        if (!file) lines.push_back(line.substr(3));
    }
    EXPECT_EQ(missing, 1u) << run.err;
    std::sort(lines.begin(), lines.end());
    EXPECT_EQ(lines,
              (std::vector<std::string>{"a note", "a note", "a note", "teratron: no such flag",
                                        "teratron: rank 0 fails", "teratron: rank 1 fails", "teratron: rank 2 fails"}));
    EXPECT_EQ(sorted_lines(run.out).size(), 3u) << run.out;
    Launched again(1, "echo teratron: still waiting >&2; echo teratron: still waiting >&2");
    EXPECT_EQ(again.wait(), 0);
    EXPECT_EQ(sorted_lines(again.err).size(), 2u) << again.err;
}

TEST(LaunchLocal, the_first_failure_ends_all_and_gives_the_exit_code) {
    Launched run(3, "if [ $RANK = 1 ]; then exit 7; fi; exec sleep 100", 0.1);
    EXPECT_EQ(run.wait(), 7);
    EXPECT_NE(run.err.find("launch: rank 1 ended with exit code 7\n"), std::string::npos) << run.err;
    EXPECT_NE(run.err.find("launch: killing what is left: rank 0, 2\n"), std::string::npos) << run.err;
}

TEST(LaunchLocal, a_stopped_rank_is_named_with_the_one_that_gives_up) {
    Launched run(3, "if [ $RANK = 1 ]; then kill -STOP $$; fi; sleep 0.3; exit 7", 0.1);
    EXPECT_EQ(run.wait(), 7);
    EXPECT_NE(run.err.find(" ended with exit code 7; stopped by a signal: rank 1\n"), std::string::npos) << run.err;
    EXPECT_NE(run.err.find("launch: killing what is left: "), std::string::npos) << run.err;
}

TEST(LaunchLocal, a_rank_that_goes_on_again_is_not_called_stopped) {
    Launched run(
        2, "if [ $RANK = 1 ]; then (sleep 0.2; kill -CONT $$) & kill -STOP $$; exec sleep 100; fi; sleep 0.6; exit 7",
        0.1);
    EXPECT_EQ(run.wait(), 7);
    EXPECT_NE(run.err.find("launch: rank 0 ended with exit code 7\n"), std::string::npos) << run.err;
}

TEST(LaunchLocal, a_rank_that_stays_stopped_ends_the_run) {
    Launched run(3, "if [ $RANK = 1 ]; then kill -STOP $$; fi; exec sleep 100", 5, 0.3);
    EXPECT_EQ(run.wait(), 1);
    EXPECT_NE(run.err.find("launch: rank 1 is stopped by a signal since 0.3 s"), std::string::npos) << run.err;
    EXPECT_NE(run.err.find("launch: killing what is left: rank 0, 1, 2\n"), std::string::npos) << run.err;
}

TEST(LaunchLocal, a_pause_of_all_ranks_is_none_of_its_business) {
    Launched run(2, "(sleep 1; kill -CONT $$) & kill -STOP $$; echo on", 5, 0.3);
    EXPECT_EQ(run.wait(), 0) << run.err;
    EXPECT_EQ(sorted_lines(run.out), (std::vector<std::string>{"0: on", "1: on"}));
}

TEST(LaunchLocal, ranks_of_one_job_know_its_name) {
    Launched run(2, "echo \"$TERATRON_JOB\"");
    EXPECT_EQ(run.wait(), 0);
    const auto lines = sorted_lines(run.out);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0].substr(3), lines[1].substr(3));
    EXPECT_GT(lines[0].size(), 10u);
}

TEST(LaunchLocal, others_may_leave_by_themselves) {
    Launched run(2, "if [ $RANK = 1 ]; then exit 7; fi; sleep 0.2; echo saved");
    EXPECT_EQ(run.wait(), 7);
    EXPECT_EQ(run.out, "0: saved\n");
    EXPECT_EQ(run.err, "launch: rank 1 ended with exit code 7\n");
}

TEST(LaunchLocal, a_killed_rank_is_named_with_its_signal) {
    Launched run(2, "if [ $RANK = 0 ]; then kill -9 $$; fi; exec sleep 100", 0.1);
    EXPECT_EQ(run.wait(), 128 + SIGKILL);
    EXPECT_NE(run.err.find("launch: rank 0 was killed by signal 9"), std::string::npos) << run.err;
}

TEST(LaunchLocal, a_stopped_rank_does_not_stay_behind) {
    Launched run(2, "if [ $RANK = 0 ]; then kill -STOP $$; fi; sleep 0.2; exit 1", 0.1);
    EXPECT_EQ(run.wait(), 1);
}

TEST(LaunchLocal, signals_go_to_all_ranks) {
    const TempFolder folder;
    Launched run(2,
                 "trap 'echo got it; exit 0' USR2; touch " + folder.path() + "/$RANK; while true; do sleep 0.02; done");
    ASSERT_TRUE(wait_for_file(folder.path() + "/0") && wait_for_file(folder.path() + "/1"));
    ::kill(run.pid(), SIGUSR2);
    EXPECT_EQ(run.wait(), 0);
    EXPECT_EQ(sorted_lines(run.out), (std::vector<std::string>{"0: got it", "1: got it"}));
}

const std::string chatter = "yes 'a line that nobody reads, of a rank that has much to say' | head -100000; ";

TEST(LaunchLocal, a_reader_that_stalls_does_not_hold_up_the_end) {
    const TempFolder folder;
    Launched run(2, "touch " + folder.path() + "/$RANK; " + chatter + "exec sleep 100");
    ASSERT_TRUE(wait_for_file(folder.path() + "/0") && wait_for_file(folder.path() + "/1"));
    ::kill(run.pid(), SIGTERM);
    EXPECT_EQ(run.wait_unread(), 128 + SIGTERM);
}

TEST(LaunchLocal, a_reader_that_stalls_does_not_hide_a_failure) {
    Launched run(2, "if [ $RANK = 1 ]; then sleep 0.2; exit 7; fi; " + chatter + "exec sleep 100", 0.1);
    EXPECT_EQ(run.wait_unread(), 7);
}

TEST(LaunchLocal, ranks_that_are_told_to_stop_can_finish_while_the_reader_stalls) {
    const TempFolder folder;
    Launched run(1, "trap 'told=1' TERM; touch " + folder.path() + "/0; until [ $told ]; do sleep 0.02; done; " +
                        chatter + "touch " + folder.path() + "/saved");
    ASSERT_TRUE(wait_for_file(folder.path() + "/0"));
    ::kill(run.pid(), SIGTERM);
    EXPECT_EQ(run.wait_unread(), 0);
    EXPECT_TRUE(std::filesystem::exists(folder.path() + "/saved"));
}

TEST(LaunchLocal, a_slow_reader_gets_every_line) {
    Launched run(2, chatter);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // all buffers are full by now
    EXPECT_EQ(run.wait(), 0);
    EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 200000);
}

TEST(LaunchLocal, ranks_go_on_while_the_reader_is_away) {
    const TempFolder folder;
    LocalLaunch by_default;
    EXPECT_GT(by_default.waiting_bytes, std::size_t{10} << 20);
    Launched run(2, "head -c 400000 /dev/zero | tr '\\0' x; touch " + folder.path() + "/$RANK");  // 1 MiB may wait
    EXPECT_TRUE(wait_for_file(folder.path() + "/0") && wait_for_file(folder.path() + "/1"));
    EXPECT_EQ(run.wait(), 0);
}

TEST(LaunchLocal, no_rank_outlives_the_launcher) {
    const TempFolder folder;
    Launched run(2, "echo $$ > " + folder.path() + "/$RANK.tmp; mv " + folder.path() + "/$RANK.tmp " + folder.path() +
                        "/$RANK; exec sleep 100");
    ASSERT_TRUE(wait_for_file(folder.path() + "/0") && wait_for_file(folder.path() + "/1"));
    ::kill(run.pid(), SIGKILL);
    EXPECT_EQ(run.wait(), -SIGKILL);
    for (const char* rank : {"/0", "/1"}) {
        pid_t pid = 0;
        std::ifstream(folder.path() + rank) >> pid;
        int tries = 0;
        while (::kill(pid, 0) == 0 && ++tries < 500) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        EXPECT_LT(tries, 500) << "rank " << rank << " is still there";
    }
}

TEST(LaunchLocal, a_command_that_is_not_there) {
    LocalLaunch launch;
    launch.command = {"/no/such/program"};
    launch.ranks = launch.world = 2;
    launch.grace_s = 0.1;
    EXPECT_EQ(launch_local(launch), 127);
}

}  // namespace
}  // namespace tera
