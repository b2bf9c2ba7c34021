// Watch: which ranks are there, and which are no longer. Every rank keeps one connection to rank 0 and sends a sign of
// life with what it is doing (comm/progress.h); rank 0 sends one back. A thread of its own does this, so it goes on
// whatever the rank computes.
//
//   a rank ends without saying goodbye (killed, its machine lost)   rank 0 tells all: at once
//   a rank gives no sign of life (stopped, its machine hangs)       after silent_s
//   a rank says that it failed                                      at once, with its words
//   ranks wait in a collective and one does not come                named after notice_s, ends the run after timeout_s
//   all wait for each other, out of step (comm/standstill.h)        after standstill_s, devices after twice that
//   devices are given calls that differ (comm/device_calls.h)       with the next signs of life
//   rank 0 itself                                                   the others find out the same way
//
// All remaining ranks then leave: settings.leave is called in each, from the watch's thread, with a text that names the
// rank, its host, its step and its last collective, and the exit code of the rank that failed. A rank that is about to
// fail for a reason of its own gets a moment to say that instead. Ranks of the same machine that are stopped are ended,
// as they cannot leave. A pause of the whole process (a suspended job) is not held against the others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/meeting.h"

namespace tera {

class Watch {
  public:
    /// Returns when all ranks have come. UsageError, naming who is missing, after timeout_s.
    Watch(const RankPlace& place, const WatchSettings& settings);
    /// Says goodbye; rank 0 waits for the others to do the same.
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    const std::vector<Peer>& peers() const;
    Progress& progress();
    /// "rank 3 (node07)".
    std::string name_of(int rank) const;
    /// This rank cannot go on: all others leave.
    void fail(const std::string& why, int exit_code) noexcept;
    /// The connection to a rank broke: the watch knows more, or will within seconds. Does not return if it makes this
    /// rank leave.
    void expect_failure() const;

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace tera
