// Of a warp: what it knows of others, its way to memory, and its turns.
#include <algorithm>

#include "soft_gpu/machine.h"

namespace soft_gpu {
namespace {

std::uint64_t value_of(const Filled& x, const Block& b, unsigned thread) {
    using What = Filled::What;
    const Launch& launch = b.cluster.launch;
    const Dim3& n = launch.block;
    switch (x.what) {
        case What::tid_x:
            return thread % n.x;
        case What::tid_y:
            return thread / n.x % n.y;
        case What::tid_z:
            return thread / (n.x * n.y);
        case What::ntid_x:
            return n.x;
        case What::ntid_y:
            return n.y;
        case What::ntid_z:
            return n.z;
        case What::ctaid_x:
            return b.index.x;
        case What::ctaid_y:
            return b.index.y;
        case What::ctaid_z:
            return b.index.z;
        case What::nctaid_x:
            return launch.grid.x;
        case What::nctaid_y:
            return launch.grid.y;
        case What::nctaid_z:
            return launch.grid.z;
        case What::laneid:
            return thread % lanes;
        case What::cluster_ctarank:
            return b.rank;
        case What::shared:
            return (std::uint64_t{b.rank} << block_shift) + shared_begin + x.offset;
        case What::local:
            return x.offset;
        case What::parameters:
            return reinterpret_cast<std::uintptr_t>(b.cluster.parameters) + x.offset;
    }
    return 0;
}

}  // namespace

Warp::Warp(Block& b, unsigned warp_index)
    : block(b), f(b.cluster.f), index(warp_index), registers(f.register_words, 0xffffffffu) {
    const std::size_t in_block = (b.cluster.launch.block.count() + lanes - 1) / lanes;
    agent_ = static_cast<unsigned>(agents_of_warp * (b.rank * in_block + index));
}

void Warp::begin() {
    const auto threads = static_cast<unsigned>(block.cluster.launch.block.count());
    const unsigned mine = std::min<unsigned>(lanes, threads - index * lanes);
    alive = mine == lanes ? all_lanes : (Mask{1} << mine) - 1;
    groups.assign(1, {0, alive, false, 0});
    clock = Clock(block.cluster.agents);
    clock.seen[agent_] = met = 1;
    own_copies = touched = 0;
    given.fill(0);
    lane_clocks_.clear();
    for (Groups* of : {&copies, &stores, &products}) of->closed.clear();
    sums.clear();
    asking_ = 0;
    for (const Filled& x : f.filled)
        for (int l = 0; l < lanes; ++l) {
            const std::uint64_t value = value_of(x, block, index * lanes + static_cast<unsigned>(l));
            if (x.wide)
                set_lane(x.at, l, value);
            else
                set_lane(x.at, l, static_cast<std::uint32_t>(value));
        }
}

void Warp::meet(Mask mask) {
    if (mask != alive) return;
    for (const auto& [lane, knows] : lane_clocks_) clock.join(knows);
    lane_clocks_.clear();
    Time& copied = clock.seen[agent(Engine::copies)];
    copied = std::max(copied, own_copies);
    tick();
    met = clock.seen[agent_];
    touched = 0;
}

void Warp::tell(Clock& others, Mask mask) {
    const Time told = others.seen[agent_], known = clock.seen[agent_];
    others.join(clock);
    // What other lanes have done since they met is not these lanes' to tell.
    if ((touched & ~mask) != 0) others.seen[agent_] = std::max(told, met - 1);
    for (const auto& [lane, knows] : lane_clocks_)
        if (mask >> lane & 1) others.join(knows);
    clock.seen[agent_] = known + 1;
}

void Warp::learn(const Clock& others, Mask mask) {
    if (mask == alive) return clock.join(others);
    for (Mask left = mask; left != 0; left &= left - 1)
        lane_clocks_.try_emplace(std::countr_zero(left), block.cluster.agents).first->second.join(others);
}

void Warp::fence(Mask mask) {
    const auto all = [](Clock& c) {
        for (std::size_t i = 0; i < c.seen.size(); ++i) c.fenced[i] = std::max(c.fenced[i], c.seen[i]);
    };
    Clock mine = clock;
    Time& copied = mine.seen[agent(Engine::copies)];
    copied = std::max(copied, own_copies);
    all(mine);
    for (auto& [lane, knows] : lane_clocks_)
        if (mask >> lane & 1) all(knows);
    if ((touched & ~mask) == 0) {
        clock.fenced = mine.fenced;
    } else {  // others have written something since, which these lanes cannot fence
        mine.seen = std::vector<Time>(mine.seen.size(), 0);
        learn(mine, mask);
    }
    tick();
}

unsigned Warp::begin(Engine e) {
    unsigned which = static_cast<unsigned>(e);
    if (e == Engine::loads) which += load_turn_++ % load_engines;
    ++given[which];
    return agent_ + which;
}

void Warp::wait_for(const Groups& of, std::size_t but_for) {
    if (of.closed.size() <= but_for) return;
    const Time ended = of.closed[of.closed.size() - but_for - 1];
    Time& known = of.engine == Engine::copies ? own_copies : clock.seen[agent(of.engine)];
    known = std::max(known, ended);
}

bool Warp::wait_for_products(std::size_t but_for) {
    if (products.closed.size() <= but_for) return true;
    constexpr std::size_t in_group = 4;
    const std::size_t ended = products.closed.size() - but_for, first = index / in_group * in_group;
    if (first + in_group > block.warps.size()) throw Fault("products of a warp group that is not whole");
    for (std::size_t i = first; i < first + in_group; ++i)
        if (block.warps[i]->products.closed.size() < ended) return false;
    for (std::size_t i = first; i < first + in_group; ++i) {
        const Warp& other = *block.warps[i];
        Time& known = clock.seen[other.agent(Engine::products)];
        known = std::max(known, other.products.closed[ended - 1]);
    }
    std::erase_if(sums, [&](const std::unique_ptr<Sums>& s) {
        if (s->group >= ended) return false;
        s->each(*this, [](std::uint32_t& of_lane, float sum) { of_lane = to_cell(sum); });
        return true;
    });
    return true;
}

std::string Warp::where() const {
    const Dim3& b = block.index;
    std::string text = "block " + std::to_string(b.x) + "," + std::to_string(b.y) + " warp " + std::to_string(index);
    if (now < groups.size() && groups[now].at < f.steps.size()) {
        const std::uint32_t at = groups[now].at;
        text += ", " + f.names[at] + " in line " + std::to_string(f.steps[at].line);
    }
    return text;
}

std::byte* Warp::shared_for(std::uint32_t address, std::size_t bytes, Access access, int lane, unsigned by) {
    Block& owner = block.cluster.block(address >> block_shift, "shared memory");
    const std::size_t offset = address & ((1u << block_shift) - 1);
    const auto fault = [&](const std::string& what) {
        throw Fault("shared memory, offset " +
                    std::to_string(static_cast<std::int64_t>(offset) - static_cast<std::int64_t>(shared_begin)) +
                    " of " + std::to_string(owner.shared.size() - shared_begin) + ": " + what +
                    (lane < 0 ? "" : ", lane " + std::to_string(lane)));
    };
    if (offset < shared_begin || offset + bytes > owner.shared.size())
        fault((access == Access::read ? "read of " : "write of ") + std::to_string(bytes) + " bytes outside it");
    std::uint8_t* const flags = owner.shared_written.data() + offset;
    if (access == Access::write)
        std::fill_n(flags, bytes, 1);
    else if (std::find(flags, flags + bytes, 0) != flags + bytes)
        fault("read of what was never written");
    if (lane >= 0 && by == agent_) touched |= Mask{1} << lane;
    const auto lane_knows = lane_clocks_.find(lane);
    const bool engine = by != agent_ && by != agent(Engine::copies);
    const Toucher who{by,     agent_, by == agent_ ? clock.seen[agent_] : given[by - agent_],           met,       lane,
                      engine, clock,  lane_knows == lane_clocks_.end() ? nullptr : &lane_knows->second, own_copies};
    if (&owner != &block) owner.visits[by] = who.time;
    const RaceWatch::Race race = owner.races.touch(offset, bytes, access, who);
    if (race.found)
        fault(std::string("a race, ") + race.what + ": the other is warp " +
              std::to_string(race.other_agent / agents_of_warp % block.warps.size()) +
              (race.other_agent % agents_of_warp ? "'s copy or product" : "") +
              (race.other_lane < 0 ? "" : ", lane " + std::to_string(race.other_lane)));
    return owner.shared.data() + offset;
}

std::byte* Warp::memory_for(Space space, std::uint64_t address, std::size_t bytes, Access access, int lane) {
    if (address % bytes != 0) throw Fault("an address that is no multiple of " + std::to_string(bytes));
    if (space == Space::generic) {
        const std::uint64_t window = address >> 56 << 56;
        if (window == shared_window)
            space = Space::shared, address -= window;
        else if (window == local_window)
            space = Space::local, address -= window;
        else
            space = Space::global;
    }
    switch (space) {
        case Space::shared: {
            const auto at = static_cast<std::uint32_t>(address);
            if (access != Access::read) block.cluster.keep_barriers_whole(at, bytes);
            return shared_for(at, bytes, access, lane);
        }
        case Space::local: {
            if (address + bytes > f.local_bytes) throw Fault("local memory, beyond its end");
            const std::size_t thread = index * lanes + static_cast<unsigned>(lane);
            return block.local.data() + thread * f.local_bytes + address;
        }
        case Space::param: {
            auto* p = reinterpret_cast<std::byte*>(address);
            const std::byte* begin = block.cluster.parameters;
            if (p < begin || p + bytes > begin + f.parameter_bytes) throw Fault("a parameter, beyond the last");
            return p;
        }
        default: {
            auto* p = reinterpret_cast<std::byte*>(address);
            if (access != Access::write) Memory::get().read(p, bytes, "read");
            if (access != Access::read) Memory::get().wrote(p, bytes, "write");
            return p;
        }
    }
}

MemoryBarrier& Warp::barrier_at(std::uint32_t address, int lane, unsigned by) {
    Block& owner = block.cluster.block(address >> block_shift, "a barrier");
    const auto at = owner.memory_barriers.find(address & ((1u << block_shift) - 1));
    if (at == owner.memory_barriers.end()) throw Fault("a barrier in shared memory that nobody has made");
    shared_for(address, barrier_bytes, Access::atomic, lane, by);
    return at->second;
}

bool Warp::run(std::size_t most) {
    bool any = false;
    std::size_t made = 0;
    Mask stuck = 0;  // groups that wait, by their lanes
    while (made < most) {
        // Groups at the same place are one, unless one of them has been counted in at a barrier.
        for (std::size_t i = 0; i < groups.size(); ++i)
            for (std::size_t k = groups.size(); k-- > i + 1;)
                if (groups[k].at == groups[i].at && !groups[i].arrived && !groups[k].arrived) {
                    if ((stuck & groups[i].lanes) != 0 || (stuck & groups[k].lanes) != 0)
                        stuck &= ~(groups[i].lanes | groups[k].lanes);
                    groups[i].lanes |= groups[k].lanes;
                    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(k));
                }
        now = groups.size();
        for (std::size_t i = 0; i < groups.size(); ++i)
            if ((stuck & groups[i].lanes) == 0 && (now == groups.size() || groups[i].at < groups[now].at)) now = i;
        if (now == groups.size()) return any;
        std::uint32_t others = UINT32_MAX;  // where the next group is
        for (std::size_t i = 0; i < groups.size(); ++i)
            if (groups[i].at > groups[now].at) others = std::min(others, groups[i].at);
        while (made < most) {
            Group& g = groups[now];
            const Step& s = f.steps[g.at];
            Mask mask = g.lanes;
            if (s.guard) {
                const std::uint32_t* p = read<std::uint32_t>(s.guard);
                Mask passes = 0;
                for (int l = 0; l < lanes; ++l) passes |= static_cast<Mask>((p[l] & 1) != 0) << l;
                mask &= s.guard_is_false ? ~passes : passes;
            }
            const Outcome outcome = mask == 0 ? Outcome::next : s.run(*this, s, mask);
            if (outcome == Outcome::waits) {
                stuck |= groups[now].lanes;
                break;
            }
            constexpr int of_a_loop = 8;
            if (outcome == Outcome::asks)
                asking_ = of_a_loop;
            else if (asking_ > 0)
                --asking_;
            else
                any = true;
            ++made;
            if (outcome == Outcome::asks) {
                stuck |= groups[now].lanes;
                ++groups[now].at;
                break;
            }
            if (outcome == Outcome::moved) break;
            if (++groups[now].at >= others) break;
        }
    }
    return any;
}

}  // namespace soft_gpu
