#include "soft_gpu/machine.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

namespace soft_gpu {

Block::Block(Cluster& c, unsigned rank_in_cluster)
    : cluster(c),
      rank(rank_in_cluster),
      shared(shared_begin + c.f.shared_bytes + c.launch.dynamic_shared),
      shared_written(shared.size()),
      local(c.f.local_bytes * c.launch.block.count()),
      races(shared.size()) {
    const std::size_t count = (c.launch.block.count() + lanes - 1) / lanes;
    for (std::size_t i = 0; i < count; ++i) warps.push_back(std::make_unique<Warp>(*this, static_cast<unsigned>(i)));
}

void Block::begin(Dim3 place) {
    index = place;
    live = static_cast<unsigned>(cluster.launch.block.count());
    std::fill(shared.begin(), shared.end(), std::byte{0xff});
    std::fill(shared_written.begin(), shared_written.end(), 0);
    races.begin();
    memory_barriers.clear();
    visits.clear();
    for (Barrier& b : barriers) {
        b = Barrier{};
        b.gathering = b.released = Clock(cluster.agents);
    }
    for (const auto& w : warps) w->begin();
}

Block::~Block() = default;

void open_if_full(Barrier& b, unsigned live) {
    if (b.arrived == 0 || b.arrived < (b.of_all ? live : b.expected)) return;
    b.released = b.gathering;
    b.gathering.clear();
    b.result = b.any;
    b.any = false;
    b.arrived = 0;
    ++b.generation;
}

namespace {
void turn_phase(MemoryBarrier& b) {
    if (b.pending != 0 || b.bytes != 0) return;
    b.pending = b.expected;
    ++b.phase;
    b.released = b.gathering;
    b.gathering.clear();
}
}  // namespace

void arrive(MemoryBarrier& b, int count) {
    if (count > b.pending) throw Fault("more arrivals at a barrier in shared memory than it was made for");
    b.pending -= count;
    turn_phase(b);
}
void expect_bytes(MemoryBarrier& b, std::int64_t bytes) { b.bytes += bytes; }
void bytes_came(MemoryBarrier& b, std::int64_t bytes, unsigned agent, Time time) {
    b.gathering.seen[agent] = std::max(b.gathering.seen[agent], time);
    b.bytes -= bytes;
    turn_phase(b);
}

Cluster::Cluster(const Function& function, const Launch& how, const std::byte* parameter_memory)
    : f(function), launch(how), parameters(parameter_memory) {
    agents = agents_of_warp * f.cluster * ((launch.block.count() + lanes - 1) / lanes);
    for (unsigned rank = 0; rank < f.cluster; ++rank) blocks.push_back(std::make_unique<Block>(*this, rank));
}

Block& Cluster::block(unsigned rank, const char* what) {
    if (rank >= blocks.size()) throw Fault(std::string(what) + " of a block that the cluster does not have");
    if (blocks[rank]->live == 0) throw Fault(std::string(what) + " of a block that has ended");
    return *blocks[rank];
}

void Cluster::keep_barriers_whole(std::uint32_t address, std::size_t bytes) {
    const Block& owner = block(address >> block_shift, "shared memory");
    if (owner.memory_barriers.empty()) return;
    const std::uint32_t offset = address & ((1u << block_shift) - 1);
    for (std::uint32_t at = offset / barrier_bytes * barrier_bytes; at < offset + bytes; at += barrier_bytes)
        if (owner.memory_barriers.contains(at)) throw Fault("a write over a barrier in shared memory");
}

void Cluster::check_visits() const {
    for (const auto& b : blocks) {
        if (b->visits.empty()) continue;
        Clock at_the_end(agents);
        for (const auto& w : b->warps) at_the_end.join(w->clock);
        for (const auto& [agent, time] : b->visits)
            if (at_the_end.seen[agent] < time)
                throw Fault("shared memory of a block that has ended, or may have: block " +
                            std::to_string(b->index.x) + " does not wait for another that touches it");
    }
}

unsigned Cluster::live() const {
    unsigned n = 0;
    for (const auto& b : blocks) n += b->live;
    return n;
}

void Cluster::run(std::size_t first_block, std::minstd_rand& order) {
    barrier = Barrier{};
    barrier.gathering = barrier.released = Clock(agents);
    barrier.of_all = true;
    std::vector<Warp*> all;
    for (const auto& b : blocks) {
        const std::size_t i = first_block + b->rank;
        const Dim3& g = launch.grid;
        b->begin({static_cast<unsigned>(i % g.x), static_cast<unsigned>(i / g.x % g.y),
                  static_cast<unsigned>(i / (std::size_t{g.x} * g.y))});
        for (const auto& w : b->warps) all.push_back(w.get());
    }
    // A warp that has asked for a while may have had its answer, and few steps since.
    constexpr int rounds_in_vain = 100;
    for (int in_vain = 0; live() > 0; ++in_vain) {
        bool any = false;
        if (all.size() > 1) std::shuffle(all.begin(), all.end(), order);
        for (Warp* w : all) {
            if (w->alive == 0) continue;
            // Mostly until it waits; now and then others overtake it.
            const std::size_t most = order() % 4 == 0 ? 1 + order() % 64 : SIZE_MAX;
            try {
                any |= w->run(most);
            } catch (const Fault& fault) {
                throw Fault(std::string(fault.what()) + " (" + w->where() + ")");
            }
        }
        if (any) in_vain = 0;
        if (in_vain < rounds_in_vain || live() == 0) continue;
        std::string text = "nobody can go on";
        for (std::size_t i = 0, shown = 0; i < all.size() && shown < 4; ++i)
            for (all[i]->now = 0; all[i]->now < all[i]->groups.size() && shown < 4; ++all[i]->now, ++shown)
                text += "; " + all[i]->where();
        throw Fault(text);
    }
    check_visits();
}

namespace {

/// The order in which warps take turns: another one for another SOFT_GPU_SEED.
std::uint32_t seed() {
    const char* text = std::getenv("SOFT_GPU_SEED");
    return text ? static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10)) + 1 : 1;
}

std::mutex one_at_a_time;

}  // namespace

void run(const Function& f, const Launch& launch, void** args) {
    const std::lock_guard lock(one_at_a_time);
    const std::size_t blocks = launch.grid.count();
    if (blocks % f.cluster != 0) throw Fault("a grid that is not made of whole clusters");
    if (f.cluster * ((launch.block.count() + lanes - 1) / lanes) > 64)
        throw Fault("more than 64 warps in a cluster are more than this machine follows");
    constexpr std::size_t alignment = 128;
    std::vector<std::byte> room(f.parameter_bytes + alignment);
    std::byte* const parameters =
        room.data() + (alignment - reinterpret_cast<std::uintptr_t>(room.data()) % alignment) % alignment;
    for (std::size_t i = 0; i < f.parameter_offsets.size(); ++i)
        std::memcpy(parameters + f.parameter_offsets[i], args[i], f.parameter_sizes[i]);
    if (f.parameter_bytes > 0) Memory::get().lend(parameters, f.parameter_bytes);
    struct TakeBack {
        const std::byte* what;
        ~TakeBack() { Memory::get().take_back(what); }
    } const take_back{parameters};
    std::minstd_rand order(seed());
    Cluster cluster(f, launch, parameters);
    for (std::size_t first = 0; first < blocks; first += f.cluster) cluster.run(first, order);
}

}  // namespace soft_gpu
