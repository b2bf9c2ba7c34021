#include "soft_gpu/races.h"

namespace soft_gpu {

void Clock::join(const Clock& other) {
    for (std::size_t i = 0; i < seen.size(); ++i) {
        seen[i] = std::max(seen[i], other.seen[i]);
        fenced[i] = std::max(fenced[i], other.fenced[i]);
    }
}

void Clock::clear() {
    std::fill(seen.begin(), seen.end(), 0);
    std::fill(fenced.begin(), fenced.end(), 0);
}

void RaceWatch::begin() {
    std::fill(pieces_.begin(), pieces_.end(), Cell{});
    std::fill(is_split_.begin(), is_split_.end(), 0);
    more_reads_.clear();
}

RaceWatch::Race RaceWatch::touch(std::size_t offset, std::size_t bytes, Access access, const Toucher& who) {
    const std::size_t end = offset + bytes;
    for (std::size_t p = offset / piece_bytes; p * piece_bytes < end; ++p) {
        const std::size_t begins = p * piece_bytes;
        const std::size_t from = std::max(offset, begins), to = std::min(end, begins + piece_bytes);
        const bool whole = to - from == piece_bytes;
        if (!is_split_[p] && whole) {
            if (Race race = touch_cell(pieces_[p], begins, access, who); race.found) return race;
            continue;
        }
        if (!is_split_[p]) split(p);
        for (std::size_t at = from; at < to; ++at)
            if (Race race = touch_cell((*split_[p])[at - begins], at, access, who); race.found) return race;
        if (whole && access == Access::write) {  // all of it has one writer again, and no readers
            is_split_[p] = 0;
            pieces_[p] = split_[p]->front();
        }
    }
    return {};
}

void RaceWatch::split(std::size_t p) {
    is_split_[p] = 1;
    if (!split_[p]) split_[p] = std::make_unique<Split>();
    split_[p]->fill(pieces_[p]);
    if (const auto more = more_reads_.extract(&pieces_[p]); !more.empty())
        for (const Cell& cell : *split_[p]) more_reads_[&cell] = more.mapped();
}

bool RaceWatch::comes_after(const Event& e, const Toucher& who) {
    if (e.agent == who.warp)
        return e.time < who.met || e.lane == who.lane || e.lane == Toucher::nobody || who.lane == Toucher::nobody;
    Time seen = who.knows.seen[e.agent];
    if (who.lane_knows) seen = std::max(seen, who.lane_knows->seen[e.agent]);
    if (e.agent == who.warp + static_cast<unsigned>(Engine::copies) && e.lane == who.lane)
        seen = std::max(seen, who.own_copies);
    return seen >= e.time;
}

/// What threads read or wrote is over for the copy engine only behind a fence, whoever made it.
bool RaceWatch::lacks_fence(const Event& e, const Toucher& who) {
    if (!who.copy_engine || (e.kind & by_engine)) return false;
    const Time of_lane = who.lane_knows ? who.lane_knows->fenced[e.agent] : Time{0};
    return std::max(who.knows.fenced[e.agent], of_lane) < e.time;
}

RaceWatch::Race RaceWatch::touch_cell(Cell& cell, std::size_t offset, Access access, const Toucher& who) {
    const auto race = [&](const Event& other, const char* what) {
        return Race{true, offset, what, other.agent, other.lane};
    };
    if (cell.write.there()) {
        const bool both_atomic = access == Access::atomic && (cell.write.kind & by_atomic);
        if (!both_atomic && !comes_after(cell.write, who))
            return race(cell.write, access == Access::read ? "read of what is being written" : "write over a write");
        if (access != Access::atomic && !(cell.write.kind & by_atomic) && lacks_fence(cell.write, who))
            return race(cell.write, "the copy engine is where something was written without a fence for it");
    }
    const int kind = (access == Access::atomic ? by_atomic : 0) | (who.copy_engine ? by_engine : 0);
    const Event mine{who.time, static_cast<std::uint16_t>(who.agent), static_cast<std::int8_t>(who.lane),
                     static_cast<std::uint8_t>(kind)};
    if (access == Access::read) {
        if (!remember_read(cell, mine, who)) more_reads_[&cell].push_back(mine);
        return {};
    }
    const auto trouble_with = [&](const Event& read) -> const char* {
        if (!comes_after(read, who)) return "write over what is being read";
        return lacks_fence(read, who) ? "the copy engine writes over what was read without a fence for it" : nullptr;
    };
    for (const Event& r : cell.reads)
        if (r.there())
            if (const char* what = trouble_with(r)) return race(r, what);
    if (const auto more = more_reads_.find(&cell); more != more_reads_.end()) {
        for (const Event& r : more->second)
            if (const char* what = trouble_with(r)) return race(r, what);
        more_reads_.erase(more);
    }
    cell.write = mine;
    cell.reads = {};
    return {};
}

/// In the place of one that this comes after: whoever comes after this read, comes after that too.
bool RaceWatch::remember_read(Cell& cell, const Event& mine, const Toucher& who) {
    Event* free = nullptr;
    for (Event& r : cell.reads) {
        if (!r.there()) {
            if (!free) free = &r;
        } else if (r.agent == mine.agent && r.time == mine.time) {
            if (r.lane != mine.lane) r.lane = several;
            return true;
        } else if (comes_after(r, who)) {
            free = &r;
        }
    }
    if (free) *free = mine;
    return free != nullptr;
}

}  // namespace soft_gpu
