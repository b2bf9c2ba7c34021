#include "comm/standstill.h"

#include <algorithm>
#include <map>

#include "core/error.h"

namespace tera {
namespace {

/// Can do nothing as long as the others do nothing.
bool idle(const Progress::State& s, bool device_is_held_up) {
    if (device_is_held_up) return true;
    for (const DeviceCalls& calls : s.device) {
        if (calls.given > calls.ended) return false;  // the device is on its way there
    }
    return s.finished || s.waits_for >= 0;
}

bool same_calls(const DeviceCalls& a, const DeviceCalls& b) {
    return a.key == b.key && a.given == b.given && a.begun == b.begun && a.ended == b.ended;
}

/// Has done nothing since.
bool same(const Progress::State& a, const Progress::State& b) {
    return a.finished == b.finished && a.waits_for == b.waits_for && a.waits == b.waits && a.sent == b.sent &&
           a.come == b.come &&
           std::equal(a.device.begin(), a.device.end(), b.device.begin(), b.device.end(), same_calls);
}

}  // namespace

bool Standstill::found(const std::vector<Progress::State>& ranks, Clock::time_point now) {
    if (!std::equal(ranks.begin(), ranks.end(), before_.begin(), before_.end(), same)) {
        before_ = ranks;
        since_ = now;
    }
    const std::vector<bool> held = held_up(devices_of(ranks));
    std::int64_t on_the_way = 0, finished = 0, with_device = 0;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        const Progress::State& s = ranks[r];
        if (!idle(s, held[r])) return false;
        on_the_way += s.sent - s.come;
        finished += s.finished;
        with_device += held[r];
    }
    if (finished == static_cast<std::int64_t>(ranks.size())) return false;  // the end of a run
    // What is sent to a rank that is done never comes, and says nothing.
    if (finished == 0 && on_the_way != 0) return false;
    const bool sure = finished == 0 && with_device == 0;
    return std::chrono::duration<double>(now - since_).count() >= (sure ? 1 : 2) * seconds_;
}

std::vector<RankCalls> devices_of(const std::vector<Progress::State>& ranks) {
    std::vector<RankCalls> devices;
    for (const Progress::State& s : ranks) devices.emplace_back(s.device);
    return devices;
}

std::string where_ranks_are(const std::vector<std::string>& places,
                            const std::function<std::string(int rank)>& name_of) {
    constexpr std::size_t most_ranks = 4, most_places = 6;
    std::map<std::string, std::vector<int>> ranks;
    for (std::size_t r = 0; r < places.size(); ++r) ranks[places[r]].push_back(static_cast<int>(r));
    std::vector<std::pair<std::string, std::vector<int>>> sorted(ranks.begin(), ranks.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    std::string text;
    for (std::size_t i = 0; i < std::min(most_places, sorted.size()); ++i) {
        const auto& [place, members] = sorted[i];
        for (std::size_t k = 0; k < std::min(most_ranks, members.size()); ++k)
            text += cat(k > 0 ? ", " : i > 0 ? "; " : "", name_of(members[k]));
        if (members.size() > most_ranks) text += cat(" and ", members.size() - most_ranks, " more");
        text += cat(": ", place);
    }
    return sorted.size() > most_places ? cat(text, "; and ", sorted.size() - most_places, " other places") : text;
}

std::string where_ranks_are(const std::vector<Progress::State>& ranks,
                            const std::function<std::string(int rank)>& name_of) {
    std::map<std::string, int> count;
    for (const Progress::State& s : ranks) ++count[s.place()];
    std::vector<std::string> places;
    for (const Progress::State& s : ranks) {
        const bool alone = count[s.place()] == 1 && s.waits_for >= 0;
        places.push_back(alone ? cat(s.place(), ", waiting for rank ", s.waits_for) : s.place());
    }
    return where_ranks_are(places, name_of);
}

}  // namespace tera
