// A stopped process of this machine is ended, and no other.
#include "comm/neighbour.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tera {
namespace {

/// A process that sleeps, and what it says of itself.
class Sleeper {
  public:
    Sleeper() {
        int ends[2];
        if (pipe(ends) != 0) return;
        pid_ = fork();
        if (pid_ == 0) {
            const ProcessIdentity me = own_identity();
            (void)!write(ends[1], &me, sizeof me);
            for (;;) pause();
        }
        (void)!read(ends[0], &identity_, sizeof identity_);
        close(ends[0]), close(ends[1]);
    }
    ~Sleeper() {
        if (pid_ > 0) kill(pid_, SIGKILL), waitpid(pid_, nullptr, 0);
    }
    const ProcessIdentity& identity() const { return identity_; }
    void stop() const {
        kill(pid_, SIGSTOP);
        waitpid(pid_, nullptr, WUNTRACED);
    }
    /// Of its end; 0 while it lives.
    int signal_of_end() {
        int status = 0;
        if (waitpid(pid_, &status, 0) == pid_ && WIFSIGNALED(status)) return pid_ = 0, WTERMSIG(status);
        return 0;
    }

  private:
    pid_t pid_ = 0;
    ProcessIdentity identity_;
};

TEST(Neighbour, one_that_is_stopped_is_ended) {
    Sleeper sleeper;
    EXPECT_FALSE(end_if_stopped(sleeper.identity()));
    sleeper.stop();
    EXPECT_TRUE(end_if_stopped(sleeper.identity()));
    EXPECT_EQ(sleeper.signal_of_end(), SIGKILL);
    EXPECT_FALSE(end_if_stopped(sleeper.identity()));
}

TEST(Neighbour, one_that_only_has_its_number_is_not) {
    const Sleeper sleeper;
    sleeper.stop();
    ProcessIdentity later = sleeper.identity(), elsewhere = later, nobody;
    ++later.born;
    ++elsewhere.machine;
    EXPECT_FALSE(end_if_stopped(later));
    EXPECT_FALSE(end_if_stopped(elsewhere));
    EXPECT_FALSE(end_if_stopped(nobody));
    EXPECT_EQ(kill(static_cast<pid_t>(sleeper.identity().pid), 0), 0);
}

}  // namespace
}  // namespace tera
