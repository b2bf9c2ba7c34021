// Ranks that are real processes: forked from the test, connected over the loopback interface.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "comm/process_world.h"
#include "core/error.h"

namespace tera::test {

/// A port that was free a moment ago.
inline int free_port() {
    int port = 0;
    const Socket s = listen_on(port);
    return port;
}

/// How a rank ended: its exit code, or minus the signal that killed it; and what it said on standard error.
struct RankEnd {
    int code = 0;
    std::string said;
};

class ProcessRanks {
  public:
    using Body = std::function<void(ProcessWorld&)>;

    /// Starts `size` processes; each opens its world and calls body. An exception is told to the others and printed.
    ProcessRanks(int size, const Body& body, WatchSettings settings = {}) {
        const int port = free_port();
        std::fflush(nullptr);
        for (int r = 0; r < size; ++r) {
            int pipe[2];
            if (::pipe(pipe) != 0) throw Error("pipe");
            const pid_t pid = ::fork();
            if (pid == 0) {
                ::close(pipe[0]);
                ::dup2(pipe[1], 2);
                std::_Exit(run({r, size, r, Launcher::variables, "127.0.0.1", port}, body, settings));
            }
            ::close(pipe[1]);
            pids_.push_back(pid);
            outputs_.push_back(pipe[0]);
        }
    }
    ~ProcessRanks() {
        for (const pid_t pid : pids_) ::kill(pid, SIGKILL), ::waitpid(pid, nullptr, 0);
        for (const int fd : outputs_) ::close(fd);
    }

    pid_t pid(int rank) const { return pids_[static_cast<std::size_t>(rank)]; }

    /// Waits for all to end.
    std::vector<RankEnd> wait() {
        std::vector<RankEnd> ends;
        for (std::size_t r = 0; r < pids_.size(); ++r) {
            RankEnd end;
            char buffer[4096];
            for (ssize_t n; (n = ::read(outputs_[r], buffer, sizeof buffer)) > 0;)
                end.said.append(buffer, static_cast<std::size_t>(n));
            int status = 0;
            ::waitpid(pids_[r], &status, 0);
            end.code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
            ends.push_back(end);
        }
        pids_.clear();
        return ends;
    }

  private:
    static int run(const RankPlace& place, const Body& body, const WatchSettings& settings) {
        try {
            ProcessWorld world(place, settings);
            try {
                body(world);
            } catch (const std::exception& e) {
                std::fprintf(stderr, "%s: %s\n", world.watch().name_of(place.rank).c_str(), e.what());
                world.fail(e.what());
                return 3;
            }
        } catch (const std::exception& e) {
            std::fprintf(stderr, "rank %d: %s\n", place.rank, e.what());
            return 4;
        }
        return ::testing::Test::HasFailure() ? 5 : 0;
    }

    std::vector<pid_t> pids_;
    std::vector<int> outputs_;
};

/// Calls f in `size` processes and expects all to end well.
inline void run_on_processes(int size, const std::function<void(Comm&)>& f) {
    const std::vector<RankEnd> ends = ProcessRanks(size, [&](ProcessWorld& world) { f(world.comm()); }).wait();
    for (std::size_t r = 0; r < ends.size(); ++r) EXPECT_EQ(ends[r].code, 0) << "rank " << r << ": " << ends[r].said;
}

}  // namespace tera::test
