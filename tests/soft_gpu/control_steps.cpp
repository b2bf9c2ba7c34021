// Branches, ends, barriers of threads, and what lanes of a warp tell each other.
#include "soft_gpu/elementwise.h"
#include "soft_gpu/translate.h"

namespace soft_gpu {
namespace {

Outcome branch(Warp& w, const Step& s, Mask mask) {
    Group& g = w.groups[w.now];
    if (mask == g.lanes) {
        g.at = s.target;
    } else {
        g.lanes &= ~mask;
        ++g.at;
        w.groups.push_back({s.target, mask, false, 0});
    }
    return Outcome::moved;
}

Outcome end(Warp& w, const Step&, Mask mask) {
    Group& g = w.groups[w.now];
    g.lanes &= ~mask;
    w.alive &= ~mask;
    w.block.live -= static_cast<unsigned>(std::popcount(mask));
    if (g.lanes == 0)
        w.groups.erase(w.groups.begin() + static_cast<std::ptrdiff_t>(w.now));
    else
        ++g.at;
    for (Barrier& b : w.block.barriers)
        if (b.of_all) open_if_full(b, w.block.live);
    open_if_full(w.block.cluster.barrier, w.block.cluster.live());
    return Outcome::moved;
}

/// All lanes that the mask names must be here: they are, or they come.
bool together(const Warp& w, Mask wanted) { return (wanted & w.alive & ~w.groups[w.now].lanes) == 0; }

void in_its_mask(Mask mask, Mask wanted) {
    if ((mask & ~wanted) != 0) throw Fault("a lane that is not among those it names");
}

Outcome barrier_of_warp(Warp& w, const Step& s, Mask mask) {
    const Mask wanted = w.lane<Mask>(s.a, std::countr_zero(mask));
    in_its_mask(mask, wanted);
    if (!together(w, wanted)) return Outcome::waits;
    w.meet(mask);
    return Outcome::next;
}

void arrive(Warp& w, Barrier& b, Mask mask) {
    w.meet(mask);
    w.tell(b.gathering, mask);
    b.arrived += static_cast<unsigned>(std::popcount(mask));
}

/// Counted in once; then until it opens.
Outcome wait_at(Warp& w, Barrier& b, Mask mask, unsigned live) {
    if (!w.groups[w.now].arrived) {
        w.groups[w.now].generation = b.generation;
        w.groups[w.now].arrived = true;
        arrive(w, b, mask);
        open_if_full(b, live);
    }
    if (b.generation == w.groups[w.now].generation) return Outcome::waits;
    w.groups[w.now].arrived = false;
    w.learn(b.released, mask);
    w.meet(mask);
    return Outcome::next;
}

Barrier& barrier_of_block(Warp& w, const Step& s, Mask mask) {
    const int first = std::countr_zero(mask);
    const auto which = w.lane<std::uint32_t>(s.a, first);
    if (which >= w.block.barriers.size()) throw Fault("no barrier " + std::to_string(which));
    Barrier& b = w.block.barriers[which];
    const unsigned expected = s.b ? w.lane<std::uint32_t>(s.b, first) : 0;
    if (b.arrived > 0 && (b.of_all != !s.b || b.expected != expected))
        throw Fault("threads that expect different numbers of others at barrier " + std::to_string(which));
    if (s.b && (expected == 0 || expected % lanes != 0)) throw Fault("a barrier for a part of a warp");
    b.of_all = !s.b;
    b.expected = expected;
    return b;
}

Outcome barrier_sync(Warp& w, const Step& s, Mask mask) {
    if (!w.groups[w.now].arrived && !together(w, all_lanes)) return Outcome::waits;
    Barrier& b = w.groups[w.now].arrived ? w.block.barriers[w.lane<std::uint32_t>(s.a, std::countr_zero(mask))]
                                         : barrier_of_block(w, s, mask);
    if (s.c && !w.groups[w.now].arrived)
        for_lanes(mask, [&](int l) { b.any |= (w.lane<std::uint8_t>(s.c, l) & 1) != 0; });
    const Outcome outcome = wait_at(w, b, mask, w.block.live);
    if (outcome == Outcome::next && s.d) for_lanes(mask, [&](int l) { w.set_lane<std::uint8_t>(s.d, l, b.result); });
    return outcome;
}

Outcome barrier_arrive(Warp& w, const Step& s, Mask mask) {
    if (!together(w, all_lanes)) return Outcome::waits;
    Barrier& b = barrier_of_block(w, s, mask);
    arrive(w, b, mask);
    open_if_full(b, w.block.live);
    return Outcome::next;
}

Outcome cluster_arrive(Warp& w, const Step&, Mask mask) {
    Cluster& c = w.block.cluster;
    for_lanes(mask, [&](int l) { w.cluster_generation[static_cast<std::size_t>(l)] = c.barrier.generation; });
    arrive(w, c.barrier, mask);
    open_if_full(c.barrier, c.live());
    return Outcome::next;
}

Outcome cluster_wait(Warp& w, const Step&, Mask mask) {
    const Barrier& b = w.block.cluster.barrier;
    if (b.generation == w.cluster_generation[static_cast<std::size_t>(std::countr_zero(mask))]) return Outcome::waits;
    w.learn(b.released, mask);
    w.meet(mask);
    return Outcome::next;
}

enum class Exchange { bfly, idx, up, down };

/// As the instruction is defined: c holds the size of a segment and the last lane that may be asked.
template <Exchange how>
Outcome shuffle(Warp& w, const Step& s, Mask mask) {
    const Mask wanted = w.lane<Mask>(w.more(s, 0), std::countr_zero(mask));
    in_its_mask(mask, wanted);
    if (!together(w, wanted)) return Outcome::waits;
    std::uint32_t from[lanes];
    std::copy_n(w.read<std::uint32_t>(s.a), lanes, from);
    const std::uint32_t *b = w.read<std::uint32_t>(s.b), *c = w.read<std::uint32_t>(s.c);
    std::uint32_t* const d = w.write<std::uint32_t>(s.d);
    Mask asked = 0, there = 0;
    for_lanes(mask, [&](int l) {
        const int segment = static_cast<int>(c[l] >> 8 & 31), clamp = static_cast<int>(c[l] & 31);
        const int n = static_cast<int>(b[l] & 31), first = l & segment, last = first | (clamp & ~segment);
        int other = how == Exchange::bfly   ? l ^ n
                    : how == Exchange::up   ? l - n
                    : how == Exchange::down ? l + n
                                            : first | (n & ~segment);
        const bool inside = how == Exchange::up ? other >= last : other <= last;
        if (!inside) other = l;
        asked |= Mask{1} << other;
        there |= Mask{inside} << l;
        d[l] = from[other];
    });
    if ((asked & ~mask) != 0) throw Fault("a lane asks one that is not there");
    if (const Value p = w.more(s, 1)) {
        std::uint32_t* const flag = w.write<std::uint32_t>(p);
        for_lanes(mask, [&](int l) { flag[l] = there >> l & 1; });
    }
    return Outcome::next;
}

/// Which lanes have the same value.
Outcome match_any(Warp& w, const Step& s, Mask mask) {
    const Mask wanted = w.lane<Mask>(s.b, std::countr_zero(mask));
    in_its_mask(mask, wanted);
    if (!together(w, wanted)) return Outcome::waits;
    std::uint32_t a[lanes];
    std::copy_n(w.read<std::uint32_t>(s.a), lanes, a);
    for_lanes(mask, [&](int l) {
        Mask same = 0;
        for_lanes(mask, [&](int k) { same |= Mask{a[k] == a[l]} << k; });
        w.set_lane(s.d, l, same);
    });
    return Outcome::next;
}

/// Whether any of the lanes says so.
Outcome vote_any(Warp& w, const Step& s, Mask mask) {
    const Mask wanted = w.lane<Mask>(s.b, std::countr_zero(mask));
    in_its_mask(mask, wanted);
    if (!together(w, wanted)) return Outcome::waits;
    bool any = false;
    for_lanes(mask, [&](int l) { any |= w.lane<std::uint8_t>(s.a, l) != 0; });
    for_lanes(mask, [&](int l) { w.set_lane<std::uint8_t>(s.d, l, any); });
    return Outcome::next;
}

Outcome nothing(Warp&, const Step&, Mask) { return Outcome::next; }

bool translate_barrier(Translator& t, const Instruction& i, Step& s) {
    if (i.parts[0] == "barrier" && i.has("cluster")) {
        s.run = i.has("arrive") ? cluster_arrive : cluster_wait;
        return i.has("arrive") ? i.has("release") : i.has("acquire") && i.has("wait");
    }
    if (i.parts[0] != "bar") return false;
    if (i.parts.at(1) == "warp") {
        s.run = barrier_of_warp;
        s.a = t.value(i.operands.at(0), 4);
        return true;
    }
    if (i.parts[1] == "red") {
        if (i.text() != "bar.red.or.pred" || i.operands.size() != 3) return false;
        s.d = t.destination(i.operands[0]);
        s.a = t.value(i.operands[1], 4);
        s.c = t.value(i.operands[2], 1);
        s.run = barrier_sync;
        return true;
    }
    s.a = t.value(i.operands.at(0), 4);
    if (i.operands.size() > 1) s.b = t.value(i.operands[1], 4);
    s.run = i.parts[1] == "arrive" ? barrier_arrive : barrier_sync;
    return i.parts[1] == "arrive" || i.parts[1] == "sync";
}

bool translate_shuffle(Translator& t, const Instruction& i, Step& s) {
    static const std::map<std::string, Handler> known = {{"bfly", shuffle<Exchange::bfly>},
                                                         {"idx", shuffle<Exchange::idx>},
                                                         {"up", shuffle<Exchange::up>},
                                                         {"down", shuffle<Exchange::down>}};
    const auto at = known.find(i.parts.at(2));
    if (i.parts.size() != 4 || i.parts[1] != "sync" || at == known.end()) return false;
    s.run = at->second;
    s.d = t.destination(i.operands.at(0));
    s.a = t.value(i.operands.at(1), 4);
    s.b = t.value(i.operands.at(2), 4);
    s.c = t.value(i.operands.at(3), 4);
    s.more = t.keep({t.value(i.operands.at(4), 4), t.second(i.operands[0])});
    return true;
}

}  // namespace

bool translate_control(Translator& t, const Instruction& i, Step& s) {
    const std::string& name = i.parts[0];
    if (name == "bra") {
        s.run = branch;
        s.target = t.target(i.operands.at(0).name);
        return true;
    }
    if (name == "ret" || name == "exit") return s.run = end, true;
    if (name == "shfl") return translate_shuffle(t, i, s);
    if (i.text() == "match.any.sync.b32") {
        s.run = match_any;
        s.d = t.destination(i.operands.at(0));
        s.a = t.value(i.operands.at(1), 4);
        s.b = t.value(i.operands.at(2), 4);
        return true;
    }
    if (i.text() == "vote.sync.any.pred") {
        s.run = vote_any;
        s.d = t.destination(i.operands.at(0));
        s.a = t.value(i.operands.at(1), 1);
        s.b = t.value(i.operands.at(2), 4);
        return true;
    }
    if (name == "setmaxnreg") return s.run = nothing, true;
    return translate_barrier(t, i, s);
}

}  // namespace soft_gpu
