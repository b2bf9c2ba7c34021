// Who may touch a place of shared memory after whom. Everything that synchronises carries clocks along: an access must
// come after those before it by such a chain, not by luck.
//
// Agents are warps, and what a warp has set going: copies of its threads, stores of the copy engine and products of
// warp groups, which are waited for in the order in which they were given; and loads of the copy engine, each of which
// tells a barrier of its own end. Of the lanes of a warp is known which one touched a place: two of them must have met
// in between too.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace soft_gpu {

using Time = std::uint32_t;

/// The agents of a warp: itself, then these. Loads take turns, so that one that is waited for says nothing of the
/// others.
enum class Engine : unsigned { copies = 1, stores, products, loads };
constexpr unsigned load_engines = 6, agents_of_warp = 4 + load_engines;

/// What an agent knows of all agents: up to when it has seen them; and up to when what their threads read and wrote is
/// over for the copy engine too.
struct Clock {
    std::vector<Time> seen, fenced;

    Clock() = default;
    explicit Clock(std::size_t agents) : seen(agents, 0), fenced(agents, 0) {}
    void join(const Clock& other);
    void clear();
};

enum class Access { read, write, atomic };

/// Who touches, when, and what he knows.
struct Toucher {
    static constexpr int nobody = -1;  ///< no lane in particular
    unsigned agent, warp;              ///< warp: the agent that it belongs to
    Time time, met;                    ///< met: when the lanes of the warp were last together
    int lane;
    bool copy_engine;  ///< or the matrix units: they see only what was fenced for them
    const Clock& knows;
    const Clock* lane_knows;  ///< what this lane alone has waited for, or null
    Time own_copies;          ///< this lane has waited for its own copies up to then
};

/// The shared memory of one block.
class RaceWatch {
  public:
    explicit RaceWatch(std::size_t bytes)
        : pieces_((bytes + piece_bytes - 1) / piece_bytes), split_(pieces_.size()), is_split_(pieces_.size()) {}
    void begin();

    /// Two who were there without one after the other.
    struct Race {
        bool found = false;
        std::size_t offset = 0;
        const char* what = "";
        unsigned other_agent = 0;
        int other_lane = Toucher::nobody;
    };
    /// An access to [offset, offset + bytes).
    Race touch(std::size_t offset, std::size_t bytes, Access access, const Toucher& who);

  private:
    struct Event {
        Time time = 0;
        std::uint16_t agent = 0;
        std::int8_t lane = Toucher::nobody;
        std::uint8_t kind = 0;  ///< by an atomic operation, by the copy engine
        bool there() const { return time != 0; }
    };
    struct Cell {
        Event write;
        std::array<Event, 4> reads;
    };
    // Most accesses are of whole pieces, and what is known is the same for all of one; else each byte has its cell.
    static constexpr std::size_t piece_bytes = 16;
    using Split = std::array<Cell, piece_bytes>;
    static constexpr std::uint8_t by_atomic = 1, by_engine = 2;
    static constexpr std::int8_t several = -2;  ///< lanes of a warp, at the same time

    static bool comes_after(const Event& e, const Toucher& who);
    static bool lacks_fence(const Event& e, const Toucher& who);
    void split(std::size_t piece);
    Race touch_cell(Cell& cell, std::size_t offset, Access access, const Toucher& who);
    static bool remember_read(Cell& cell, const Event& mine, const Toucher& who);

    std::vector<Cell> pieces_;
    std::vector<std::unique_ptr<Split>> split_;
    std::vector<std::uint8_t> is_split_;
    std::unordered_map<const Cell*, std::vector<Event>> more_reads_;
};

}  // namespace soft_gpu
