#include "comm/device_calls.h"

#include <algorithm>
#include <map>

#include "core/rng.h"

namespace tera {
namespace {

constexpr std::size_t most_kept = 4096;  // launches that a device keeps waiting are fewer
constexpr std::int64_t told_before = 8;  // calls before the one that the device is in

std::uint64_t chained(std::uint64_t before, std::string_view text) {
    return (before ^ hash_name(text)) * 0x9e3779b97f4a7c15u + 1;
}

/// The last number that both have a mark of and agree on, and the first at which they do not.
std::optional<Misfit> compare(const DeviceCalls& a, const DeviceCalls& b) {
    Misfit misfit;
    auto other = b.marks.begin();
    for (const CallMark& mark : a.marks) {
        while (other != b.marks.end() && other->number < mark.number) ++other;
        if (other == b.marks.end()) return {};
        if (other->number != mark.number) continue;
        if (other->digest != mark.digest) {
            misfit.upto = mark.number;
            misfit.one_call = a.call;
            misfit.other_call = b.call;
            misfit.members = a.members;
            return misfit;
        }
        misfit.after = mark.number;
    }
    return {};
}

}  // namespace

std::int64_t CallLog::add(std::string call) {
    ++given_;
    digest_ = chained(digest_, call);
    for (std::size_t k = 0; k < marks_.size() && given_ % (std::int64_t{1} << k) == 0; ++k)
        marks_[k] = {CallMark{given_, digest_}, marks_[k][0]};
    latest_.push_back({std::move(call), digest_});
    if (latest_.size() > most_kept) latest_.pop_front();
    return given_;
}

DeviceCalls CallLog::seen(std::int64_t begun, std::int64_t ended) const {
    DeviceCalls calls{key_, members_, given_, begun, ended, ahead_, {}, {}};
    const std::int64_t in = std::min(ended + 1, given_), first = given_ - static_cast<std::int64_t>(latest_.size()) + 1;
    const auto kept = [&](std::int64_t number) -> const Call& {
        return latest_[static_cast<std::size_t>(number - first)];
    };
    if (in >= first && in > 0) calls.call = kept(in).text;
    for (std::int64_t number = std::max(first, in - told_before); number <= in; ++number)
        calls.marks.push_back({number, kept(number).digest});
    for (const auto& pair : marks_) {
        for (const CallMark& mark : pair) {
            if (mark.number > 0) calls.marks.push_back(mark);
        }
    }
    const auto before = [](const CallMark& a, const CallMark& b) { return a.number < b.number; };
    const auto same = [](const CallMark& a, const CallMark& b) { return a.number == b.number; };
    std::sort(calls.marks.begin(), calls.marks.end(), before);
    calls.marks.erase(std::unique(calls.marks.begin(), calls.marks.end(), same), calls.marks.end());
    return calls;
}

std::optional<Misfit> find_misfit(const std::vector<RankCalls>& ranks) {
    std::map<std::uint64_t, std::pair<int, const DeviceCalls*>> first;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        for (const DeviceCalls& calls : ranks[r]) {
            const auto [place, is_new] = first.try_emplace(calls.key, static_cast<int>(r), &calls);
            if (is_new) continue;
            if (std::optional<Misfit> misfit = compare(*place->second.second, calls)) {
                misfit->one = place->second.first;
                misfit->other = static_cast<int>(r);
                return misfit;
            }
        }
    }
    return {};
}

std::vector<bool> held_up(const std::vector<RankCalls>& ranks) {
    struct Members {
        int heard = 0;
        std::int64_t least_begun = 0;
    };
    std::map<std::uint64_t, Members> all;
    for (const RankCalls rank : ranks) {
        for (const DeviceCalls& calls : rank) {
            Members& members = all[calls.key];
            members.least_begun = members.heard == 0 ? calls.begun : std::min(members.least_begun, calls.begun);
            ++members.heard;
        }
    }
    std::vector<bool> held(ranks.size());
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        int open = 0, without_end = 0;
        for (const DeviceCalls& calls : ranks[r]) {
            if (!calls.open()) continue;
            const Members& members = all[calls.key];
            const bool all_came = members.heard >= calls.members &&
                                  members.least_begun >= std::max<std::int64_t>(calls.begun - calls.ahead, 0);
            ++open;
            without_end += !all_came;
        }
        held[r] = open > 0 && without_end == open;
    }
    return held;
}

std::uint64_t communicator_key(const std::vector<int>& members, std::string_view purpose, int number) {
    std::uint64_t key = chained(static_cast<std::uint64_t>(number), purpose);
    for (const int member : members) key = chained(key, std::to_string(member));
    return key;
}

}  // namespace tera
