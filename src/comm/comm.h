// Comm: the one interface through which ranks talk. Implementations: self (one rank), thread (ranks are threads),
// process (over sockets or MPI), nccl (ranks with GPUs). Axis names the directions of the mesh of ranks (comm/mesh.h).
//
// Every collective is called by all ranks of the group, in the same order, with the same number format and size. On a
// GPU it is enqueued on exec's stream and the host does not wait; to overlap it with computing, hand it an Exec of
// another stream. A dry run (exec.counts()) passes over all of them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <vector>

#include "core/exec.h"

namespace tera {

enum class Axis : std::uint8_t { tp, cp, dp, pp };

/// A set of mesh axes.
struct AxisSet {
    std::uint8_t bits = 0;
    AxisSet(std::initializer_list<Axis> axes) {
        for (Axis a : axes) bits = static_cast<std::uint8_t>(bits | (1u << static_cast<int>(a)));
    }
    bool has(Axis a) const { return (bits >> static_cast<int>(a)) & 1u; }
    /// These axes, and `a` if `condition` holds.
    AxisSet with(Axis a, bool condition = true) const {
        AxisSet more = *this;
        if (condition) more.bits = static_cast<std::uint8_t>(bits | (1u << static_cast<int>(a)));
        return more;
    }
    bool operator==(const AxisSet& other) const = default;
};

enum class Reduce : std::uint8_t { sum, max };

/// What a rank has sent: payload as the fewest bytes an algorithm can do with, so that it is the same whoever carries
/// it. Of n ranks with b bytes each: all-reduce 2b(n-1)/n · all-gather, reduce-scatter b(n-1) of the piece · broadcast
/// b(n-1)/n · send, shift b.
struct Traffic {
    std::int64_t calls = 0;
    double bytes = 0;

    void add(const Traffic& other) {
        calls += other.calls;
        bytes += other.bytes;
    }
    bool operator==(const Traffic&) const = default;
};

class Comm {
  public:
    virtual ~Comm() = default;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    /// Element-wise reduction over all ranks, in place. Every rank gets the same bits.
    void all_reduce(const Exec& exec, Tensor data, Reduce op);
    /// out = the ranks' inputs, one after the other; `in` may be this rank's place in `out`.
    void all_gather(const Exec& exec, ConstTensor in, Tensor out);
    /// out = this rank's piece of the sum of the ranks' inputs; it may be that piece of `in`.
    void reduce_scatter(const Exec& exec, ConstTensor in, Tensor out);
    /// Every rank gets the root's data.
    void broadcast(const Exec& exec, Tensor data, int root);
    /// To and from one other rank; what is sent from a to b arrives in order. send does not wait for the receiver, and
    /// `data` may be overwritten by what follows on exec.
    void send(const Exec& exec, ConstTensor data, int to);
    void recv(const Exec& exec, Tensor data, int from);
    /// The next message from that rank may come in beside what exec computes from here on; the recv that follows takes
    /// it over. At most one from a rank at a time, and where connect_mail() said so.
    void expect(const Exec& exec, DType dtype, Shape shape, int from);
    /// Around the ring: `in` to the next rank, the last one's to the first, and `out` from the one before. They are
    /// apart in memory.
    void shift(const Exec& exec, ConstTensor in, Tensor out);
    /// Messages of tensors in device memory.
    struct Mail {
        int to = -1, from = -1;  ///< ranks; -1: none
        int on_their_way = 0;    ///< at most so many at a time; one more waits on exec for the first to arrive
        std::size_t bytes = 0;   ///< of the largest
        bool ahead = false;      ///< messages are expected before they are received
    };
    /// Makes the connections for collectives of tensors in device memory, and for such messages. To be called once by
    /// all ranks, before any of them works on its device: libraries may wait for the device meanwhile.
    virtual void connect() {}
    virtual void connect_ring() {}  ///< for shift; after connect
    virtual void connect_mail(const Mail&) {}
    virtual void barrier() = 0;
    /// This rank cannot go on: whatever its device waits for ends. The communicator can only be destroyed then.
    virtual void abandon() noexcept {}
    /// Since the beginning, or since the last call of reset_traffic(). A dry run counts too.
    const Traffic& traffic() const { return traffic_; }
    void reset_traffic() { traffic_ = {}; }
    /// A communicator of some ranks of this one, in the given order; called by each of them, with the same list.
    virtual std::unique_ptr<Comm> group(const std::vector<int>& members) = 0;

  protected:
    virtual void do_all_reduce(const Exec& exec, Tensor data, Reduce op) = 0;
    virtual void do_all_gather(const Exec& exec, ConstTensor in, Tensor out) = 0;
    virtual void do_reduce_scatter(const Exec& exec, ConstTensor in, Tensor out) = 0;
    virtual void do_broadcast(const Exec& exec, Tensor data, int root) = 0;
    virtual void do_send(const Exec& exec, ConstTensor data, int to) = 0;
    virtual void do_recv(const Exec& exec, Tensor data, int from) = 0;
    virtual void do_expect(const Exec&, DType, Shape, int /*from*/) {}  ///< messages come in by themselves
    virtual void do_shift(const Exec& exec, ConstTensor in, Tensor out);

    int next() const { return (rank() + 1) % size(); }
    int previous() const { return (rank() + size() - 1) % size(); }

  private:
    void note(double bytes);

    Traffic traffic_;
    std::map<int, std::size_t> expected_;  ///< bytes, by the rank they are expected from
};

/// For Comm::group: the members' numbers in the world, and which of them `rank` is. `world`: the numbers of the ranks
/// of the communicator that is asked. Error if a member is none of them, or `rank` is not a member.
std::pair<std::vector<int>, int> members_in_world(const std::vector<int>& members, const std::vector<int>& world,
                                                  int rank);

/// The world of one rank: reductions leave the data as it is, gathers copy.
std::unique_ptr<Comm> make_self_comm();

/// A rank that exists on paper only: it can do nothing but dry runs, alone.
std::unique_ptr<Comm> make_paper_comm(int rank, int size);

}  // namespace tera
