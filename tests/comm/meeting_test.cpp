// How ranks find each other, and what they say when that fails.
#include "comm/meeting.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <thread>

#include "support/process_ranks.h"

namespace tera {
namespace {

std::string rank_0 = "127.0.0.1";  // where ranks look for it
std::map<int, std::string> jobs;   // by rank

/// Starts rank `rank` of `size` by hand.
pid_t start(int rank, int size, int port, double timeout_s, int pipe) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    dup2(pipe, 2);
    try {
        WatchSettings s;
        s.timeout_s = timeout_s;
        s.patience_s = 0.3;
        ProcessWorld world({rank, size, rank, Launcher::variables, rank_0, port, -1, jobs[rank]}, s);
    } catch (const UsageError& e) {
        std::fprintf(stderr, "rank %d: %s\n", rank, e.what());
        std::_Exit(2);
    }
    std::_Exit(0);
}

std::string said_by(const std::vector<std::pair<int, int>>& rank_and_size, double timeout_s,
                    int port = test::free_port()) {
    int ends[2];
    if (pipe(ends) != 0) return "";
    std::vector<pid_t> pids;
    for (const auto& [rank, size] : rank_and_size) pids.push_back(start(rank, size, port, timeout_s, ends[1]));
    close(ends[1]);
    std::string said;
    char buffer[4096];
    for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) said.append(buffer, static_cast<std::size_t>(n));
    close(ends[0]);
    for (const pid_t pid : pids) {
        int status = 0;
        waitpid(pid, &status, 0);
        EXPECT_EQ(WEXITSTATUS(status), 2);
    }
    return said;
}

TEST(Meeting, missing_ranks_are_named_by_all_who_came) {
    const std::string said = said_by({{0, 4}, {2, 4}}, 1);
    EXPECT_NE(said.find("rank 0: ranks 1, 3 did not come within 1 s"), std::string::npos) << said;
    EXPECT_NE(said.find("rank 2: ranks 1, 3 did not come within 1 s"), std::string::npos) << said;
}

int times(const std::string& text, const std::string& words) {
    int count = 0;
    for (auto at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++count;
    return count;
}

TEST(Meeting, whoever_has_come_says_who_is_missing_but_not_often) {
    const std::string host = host_name();
    const std::string said = said_by({{0, 4}, {2, 4}}, 1.2);
    EXPECT_EQ(times(said, "rank 0 (" + host + "): waiting since 0 s for ranks 1, 3 to come to 127.0.0.1:"), 1) << said;
    EXPECT_EQ(times(said, "rank 2 (" + host + "): waiting since 0 s for ranks 1, 3 to come to 127.0.0.1:"), 1) << said;
    EXPECT_EQ(times(said, "; 2 of 4 ranks are there"), 2) << said;
}

TEST(Meeting, a_rank_without_rank_0_says_where_it_looked) {
    const std::string said = said_by({{1, 2}}, 1.2);
    EXPECT_EQ(times(said, "): waiting since 0 s for rank 0, and nobody answers at 127.0.0.1:"), 1) << said;
    EXPECT_NE(said.find("found no rank 0 within 1.2 s: nobody answers at 127.0.0.1:"), std::string::npos) << said;
}

// Machines that are still starting get their names later.
TEST(Meeting, a_host_that_is_not_known_yet_is_waited_for) {
    rank_0 = "no-such-host.invalid";
    const std::string said = said_by({{1, 2}}, 1.2), unknown = "the host no-such-host.invalid is not known here (";
    rank_0 = "127.0.0.1";
    EXPECT_EQ(times(said, "): waiting since 0 s for rank 0, and " + unknown), 1) << said;
    EXPECT_NE(said.find("found no rank 0 within 1.2 s: " + unknown), std::string::npos) << said;
}

TEST(Meeting, a_port_that_another_program_has_is_named) {
    int port = 0;
    const Socket other = listen_on(port);
    const std::string said = said_by({{0, 2}}, 1, port);
    EXPECT_NE(said.find("cannot listen on port " + std::to_string(port) + ": Address already in use"), said.npos);
    EXPECT_NE(said.find("MASTER_PORT"), said.npos) << said;
}

TEST(SlowMeeting, a_program_that_answers_in_rank_0s_place_is_seen) {
    int port = 0;
    const Socket other = listen_on(port);  // takes connections and says nothing
    const std::string silent = said_by({{1, 2}}, 1, port), where = "127.0.0.1:" + std::to_string(port);
    EXPECT_EQ(times(silent, "for rank 0; something listens at " + where + " and says nothing"), 1) << silent;
    EXPECT_NE(silent.find("rank 0 at " + where + " said nothing within 1 s; if another program"), silent.npos)
        << silent;
    std::thread answer([&] {
        while (!wait_for(other, false, Clock::now() + std::chrono::seconds(20)))
            ;
        (void)accept_from(other);  // of the rank before, which has left
        if (!wait_for(other, false, Clock::now() + std::chrono::seconds(20))) return;
        const Socket caller = accept_from(other);
        const std::string text = "HTTP/1.1 400 Bad Request";
        (void)caller.write_all(text.data(), text.size(), Clock::now() + std::chrono::seconds(2));
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
    });
    const std::string talks = said_by({{1, 2}}, 10, port);
    answer.join();
    EXPECT_NE(talks.find("what answers at " + where + " is no rank 0 of this program"), talks.npos) << talks;
}

TEST(Meeting, a_rank_of_another_job_is_turned_away) {
    jobs = {{0, "A"}, {1, "B"}, {2, ""}};
    const std::string said = said_by({{0, 4}, {1, 4}, {2, 4}}, 1);
    jobs.clear();
    EXPECT_NE(said.find("rank 1: the rank 0 at 127.0.0.1:"), said.npos) << said;
    EXPECT_NE(said.find(" is of another job, A, and not of B; choose another MASTER_PORT"), said.npos) << said;
    EXPECT_NE(said.find("rank 0: ranks 1, 3 did not come within 1 s"), said.npos) << said;
}

TEST(Meeting, the_same_rank_twice_and_another_size_are_refused) {
    EXPECT_NE(said_by({{0, 3}, {1, 3}, {1, 3}}, 20).find("rank 1 was started twice"), std::string::npos);
    EXPECT_NE(said_by({{0, 3}, {1, 4}}, 20).find("one of 4 ranks, rank 0 as one of 3"), std::string::npos);
}

}  // namespace
}  // namespace tera
