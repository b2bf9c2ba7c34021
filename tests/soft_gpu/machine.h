// The machine that runs a kernel: clusters of blocks one after another; within one the warps in turns, each until it
// has to wait. Lanes of a warp that have gone different ways are groups; the one that is furthest behind goes first, so
// that they meet again.
#pragma once

#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

#include "soft_gpu/memory.h"
#include "soft_gpu/program.h"
#include "soft_gpu/races.h"

namespace soft_gpu {

/// Addresses beyond all others stand for shared and for local memory where an address may be of any kind.
constexpr std::uint64_t shared_window = std::uint64_t{0x70} << 56, local_window = std::uint64_t{0x71} << 56;
/// In addresses of shared memory: the block of the cluster; the first are nobody's, so that 0 is no address.
constexpr int block_shift = 24;
constexpr std::size_t shared_begin = 1024;
constexpr std::uint32_t barrier_bytes = 8;  // of a barrier in shared memory

struct Group {
    std::uint32_t at = 0;  ///< its next step
    Mask lanes = 0;
    bool arrived = false;  ///< at a barrier that it waits at
    std::uint64_t generation = 0;
};

/// A barrier of threads: of a block, or of a cluster.
struct Barrier {
    unsigned arrived = 0, expected = 0;
    bool of_all = false;  ///< expected are all threads that have not ended
    std::uint64_t generation = 0;
    bool any = false, result = false;  ///< a predicate of some thread
    Clock gathering, released;
};

/// A barrier in shared memory, that counts bytes too.
struct MemoryBarrier {
    int expected = 0, pending = 0;
    std::int64_t bytes = 0;
    std::uint64_t phase = 0;
    Clock gathering, released;
};

struct Cluster;

struct Block {
    Cluster& cluster;
    unsigned rank;  ///< in its cluster
    Dim3 index;
    std::vector<std::byte> shared;
    std::vector<std::uint8_t> shared_written;
    std::vector<std::byte> local;
    RaceWatch races;
    std::array<Barrier, 16> barriers;
    std::unordered_map<std::uint32_t, MemoryBarrier> memory_barriers;
    std::vector<std::unique_ptr<Warp>> warps;
    unsigned live = 0;                          ///< threads that have not ended
    std::unordered_map<unsigned, Time> visits;  ///< of agents of other blocks, the last

    Block(Cluster& c, unsigned rank_in_cluster);
    ~Block();
    /// As it is before its first step.
    void begin(Dim3 place);
};

/// What a warp has set going, in groups: when each was closed, in the order in which they were.
struct Groups {
    Engine engine;
    std::vector<Time> closed;
};

/// A warp's rows of a product that has not come to its end: its registers do not have it yet.
struct Sums {
    static constexpr std::size_t rows = 16, most_columns = 256;
    const Value* registers;
    std::size_t count;  ///< of registers
    std::size_t group;  ///< the number of the group that it comes with
    float of[rows][most_columns];

    /// Between the product and the registers: f(lane's share, place in the product).
    template <class F>
    void each(Warp& w, F f);
};

struct Warp {
    Block& block;
    const Function& f;
    unsigned index;
    std::vector<std::uint32_t> registers;
    std::vector<Group> groups;
    std::size_t now = 0;  ///< the group whose step is being made
    Mask alive = 0;
    std::array<std::uint64_t, lanes> cluster_generation{};
    Clock clock;                               ///< what all its lanes know
    Time met = 0;                              ///< when they were last together
    Time own_copies = 0;                       ///< each lane has waited for its own copies up to then
    Mask touched = 0;                          ///< lanes that have touched shared memory since they met
    std::array<Time, agents_of_warp> given{};  ///< by engine: how much it has been given to do
    Groups copies{Engine::copies, {}}, stores{Engine::stores, {}}, products{Engine::products, {}};
    std::vector<std::unique_ptr<Sums>> sums;

    Warp(Block& b, unsigned warp_index);
    void begin();

    template <class T>
    const Cell<T>* read(Value v) const {
        return reinterpret_cast<const Cell<T>*>(v.at >= 0 ? registers.data() + v.at : f.constants.data() + ~v.at);
    }
    template <class T>
    Cell<T>* write(Value v) {
        return reinterpret_cast<Cell<T>*>(registers.data() + v.at);
    }
    template <class T>
    T lane(Value v, int l) const {
        return from_cell<T>(read<T>(v)[l]);
    }
    template <class T>
    void set_lane(Value v, int l, T x) {
        write<T>(v)[l] = to_cell<T>(x);
    }
    Value more(const Step& s, std::size_t i) const { return f.values[s.more + i]; }

    unsigned agent() const { return agent_; }
    unsigned agent(Engine e) const { return agent_ + static_cast<unsigned>(e); }
    /// Time goes on: what comes now is told apart from what was before.
    void tick() { ++clock.seen[agent_]; }
    /// All lanes of the mask are together: what one knew, all of them know.
    void meet(Mask mask);
    /// What lanes tell others: all that they know, and what they have done themselves.
    void tell(Clock& others, Mask mask);
    /// What lanes learn from others.
    void learn(const Clock& others, Mask mask);
    /// What these lanes have written, or know of, is there for the copy engine.
    void fence(Mask mask);
    /// Gives an engine one more thing to do, and says which of the warp's agents does it.
    unsigned begin(Engine e);
    void close(Groups& of) { of.closed.push_back(given[static_cast<unsigned>(of.engine)]); }
    /// Until all but so many groups, the last ones, have come to their ends.
    void wait_for(const Groups& of, std::size_t but_for);
    /// Products are those of four warps: they end for all of them, and not before each has asked for its part.
    bool wait_for_products(std::size_t but_for);

    // Shared memory, by its address. Each checks bounds, that what is read was written, and who else is there.
    // By a lane, or by the agent that works for it.
    std::byte* shared_for(std::uint32_t address, std::size_t bytes, Access access, int lane, unsigned by);
    std::byte* shared_for(std::uint32_t address, std::size_t bytes, Access access, int lane) {
        return shared_for(address, bytes, access, lane, agent_);
    }
    /// Memory of any kind, at the address an instruction of some space has.
    enum class Space { generic, global, shared, local, param };
    std::byte* memory_for(Space space, std::uint64_t address, std::size_t bytes, Access access, int lane);
    /// For a lane, or an agent that works for it.
    MemoryBarrier& barrier_at(std::uint32_t address, int lane, unsigned by);

    /// Makes steps until there is none that can be made, or so many; whether it has come further by that: a loop that
    /// asks whether others are done yet does not.
    bool run(std::size_t most);
    std::string where() const;

  private:
    unsigned agent_;
    unsigned load_turn_ = 0;
    std::unordered_map<int, Clock> lane_clocks_;  ///< of lanes that know more than all
    int asking_ = 0;                              ///< steps that are still taken to be part of such a loop
};

template <class F>
void Sums::each(Warp& w, F f) {
    for (std::size_t i = 0; i < count; ++i) {
        std::uint32_t* const of_lanes = w.write<float>(registers[i]);
        const std::size_t column = i / 4 * 8 + i % 2, row = i % 4 / 2 * 8;
        for (std::size_t l = 0; l < lanes; ++l) f(of_lanes[l], of[row + l / 4][column + 2 * (l % 4)]);
    }
}

struct Cluster {
    const Function& f;
    const Launch& launch;
    const std::byte* parameters;
    std::vector<std::unique_ptr<Block>> blocks;
    Barrier barrier;
    std::size_t agents;

    Cluster(const Function& function, const Launch& how, const std::byte* parameter_memory);
    void run(std::size_t first_block, std::minstd_rand& order);
    Block& block(unsigned rank, const char* what);
    /// A Fault if a block was visited by another after it has ended, or with nothing that keeps it from ending.
    void check_visits() const;
    /// A Fault if a thread writes where there is one.
    void keep_barriers_whole(std::uint32_t address, std::size_t bytes);
    unsigned live() const;
};

/// Opens the barrier if all that it waits for have come.
void open_if_full(Barrier& barrier, unsigned live);
/// What was told is in `gathering` already.
void arrive(MemoryBarrier& barrier, int count);
void expect_bytes(MemoryBarrier& barrier, std::int64_t bytes);
/// By this agent, at this time of its own.
void bytes_came(MemoryBarrier& barrier, std::int64_t bytes, unsigned agent, Time time);

}  // namespace soft_gpu
