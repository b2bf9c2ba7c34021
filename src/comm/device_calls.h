// What a rank has given the communicators of its device, and how far the device has come: what is needed to see that
// ranks are out of step where the host does not wait and the device says nothing.
//
// Members of a communicator must give it the same calls in the same order. Every call goes into a digest of all before
// it, and two kinds of digests are told to the others. Those of the two latest multiples of every power of two: so two
// ranks always have a number in common, no further back than twice the distance between them, and can compare wherever
// their hosts are. And those of the call that the device is in and some before it: devices that hang in calls which
// differ are there together, however far their hosts went on.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tera {

/// Digest of the calls of a communicator up to this one; the first call is number 1.
struct CallMark {
    std::int64_t number = 0;
    std::uint64_t digest = 0;
};

/// The calls of one communicator, as one rank sees them.
struct DeviceCalls {
    std::uint64_t key = 0;              ///< the communicator's, the same for all members
    int members = 0;                    ///< how many
    std::int64_t given = 0;             ///< calls the device was given
    std::int64_t begun = 0, ended = 0;  ///< of these
    std::int64_t ahead = 0;             ///< a call can end when the others have begun the one so many before it
    std::string call;                   ///< the one the device is in, or comes to next, or the last
    std::vector<CallMark> marks;        ///< by number

    bool open() const { return begun > ended; }
};

/// Keeps them.
class CallLog {
  public:
    CallLog(std::uint64_t key, int members, std::int64_t ahead) : key_(key), members_(members), ahead_(ahead) {}

    /// Its number.
    std::int64_t add(std::string call);
    DeviceCalls seen(std::int64_t begun, std::int64_t ended) const;

  private:
    std::uint64_t key_;
    int members_;
    std::int64_t ahead_;
    std::int64_t given_ = 0;
    std::uint64_t digest_ = 0;
    struct Call {
        std::string text;
        std::uint64_t digest;
    };
    std::deque<Call> latest_;  ///< no more than the device can be behind
    std::array<std::array<CallMark, 2>, 48> marks_{};
};

/// Two members of a communicator that gave it different calls.
struct Misfit {
    int one = 0, other = 0;            ///< ranks
    std::int64_t after = 0, upto = 0;  ///< equal up to the first, different at the second
    std::string one_call, other_call;  ///< where they are
    int members = 0;
};

/// Of the communicators of a rank's device, as it was last heard.
using RankCalls = std::span<const DeviceCalls>;

std::optional<Misfit> find_misfit(const std::vector<RankCalls>& ranks);

/// By rank: its device is in calls of which none can end, because another member has not come to it.
std::vector<bool> held_up(const std::vector<RankCalls>& ranks);

/// Of a communicator of these ranks of the world; `purpose` and `number` tell those of the same ranks apart.
std::uint64_t communicator_key(const std::vector<int>& members, std::string_view purpose, int number);

}  // namespace tera
