// Standstill: ranks that wait for each other for ever, because their calls do not fit together. All of them wait for a
// message (or are done with their work), none has moved for a while, and every byte that was sent has come: nothing can
// ever happen again. A rank that computes, reads or writes is not waiting, so no run is taken for stuck because it is
// slow. A rank with a device is waiting if the device is in calls of which none can end, because another member has not
// come to it (comm/device_calls.h). As long as ranks give their devices calls in one common order somebody is not: the
// one for whom the first of the open calls waits.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/progress.h"

namespace tera {

class Standstill {
  public:
    explicit Standstill(double seconds) : seconds_(seconds) {}

    /// With what all ranks were last heard to do. True once it is certain.
    bool found(const std::vector<Progress::State>& ranks, Clock::time_point now);
    /// What was heard so far counts for nothing.
    void forget() { before_.clear(); }

  private:
    double seconds_;
    std::vector<Progress::State> before_;
    Clock::time_point since_{};
};

/// They are looked at where they are.
std::vector<RankCalls> devices_of(const std::vector<Progress::State>& ranks);

/// Who is at which place (in which call, say), the fewest first: they are the ones to look at.
std::string where_ranks_are(const std::vector<std::string>& places,
                            const std::function<std::string(int rank)>& name_of);
std::string where_ranks_are(const std::vector<Progress::State>& ranks,
                            const std::function<std::string(int rank)>& name_of);

}  // namespace tera
