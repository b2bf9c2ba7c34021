#include "comm/thread_comm.h"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "comm/reduce_in_order.h"
#include "core/error.h"

namespace tera {
namespace {

/// What a rank throws because another one failed.
struct PeerFailed : Error {
    using Error::Error;
};

enum class Op : std::uint8_t { all_reduce_sum, all_reduce_max, all_gather, reduce_scatter, broadcast, barrier };

const char* name_of(Op op) {
    constexpr const char* names[] = {"all_reduce(sum)", "all_reduce(max)", "all_gather",
                                     "reduce_scatter",  "broadcast",       "barrier"};
    return names[static_cast<int>(op)];
}

/// One rank's part in a collective.
struct Call {
    Op op = Op::barrier;
    ConstTensor in;
    Tensor out;
    int root = 0;

    std::string text() const {
        if (op == Op::barrier) return name_of(op);
        return cat(name_of(op), " of ", in.numel(), " ", tera::name_of(in.dtype),
                   op == Op::broadcast ? cat(" from ", root) : "");
    }
    bool matches(const Call& o) const {
        return op == o.op && in.dtype == o.in.dtype && in.numel() == o.in.numel() && root == o.root;
    }
};

struct Message {
    std::vector<std::byte> bytes;
    DType dtype;
};

/// The state that the threads of one group share.
struct Group {
    std::vector<int> members;  ///< ranks in the world
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::optional<Call>> calls;  ///< of the collective under way
    std::vector<Call> agreed;                ///< the same once all have come
    int inside = 0;                          ///< ranks that have not left the collective
    std::map<std::pair<int, int>, std::deque<Message>> mail;

    explicit Group(std::vector<int> m) : members(std::move(m)), calls(members.size()) {}
};

struct World {
    explicit World(int size) : ended(static_cast<std::size_t>(size)) {}

    /// The n-th time that a rank asks for a group of these members it gets the n-th group of them.
    std::shared_ptr<Group> group(const std::vector<int>& members, int rank) {
        const std::lock_guard lock(mutex);
        auto& g = groups[{members, asked[{rank, members}]++}];
        if (!g) g = std::make_shared<Group>(members);
        return g;
    }
    void wake_all() {
        const std::lock_guard lock(mutex);
        for (auto& [key, g] : groups) {
            const std::lock_guard group_lock(g->mutex);
            g->changed.notify_all();
        }
    }
    /// The first failure counts.
    void fail(int rank, const std::string& what, std::exception_ptr thrown) {
        {
            const std::lock_guard lock(mutex);
            if (!failed) {
                failure = cat("rank ", rank, ": ", what);
                cause = thrown;
                failed = true;
            }
        }
        wake_all();
    }
    void end(int rank) {
        ended[static_cast<std::size_t>(rank)] = true;
        wake_all();
    }

    std::mutex mutex;
    std::map<std::pair<std::vector<int>, int>, std::shared_ptr<Group>> groups;
    std::map<std::pair<int, std::vector<int>>, int> asked;
    std::atomic<bool> failed{false};
    std::string failure;  ///< constant once `failed` is set
    std::exception_ptr cause;
    std::vector<std::atomic<bool>> ended;
};

/// The ranks' inputs.
template <class T>
std::vector<const T*> inputs_of(const std::vector<Call>& calls) {
    std::vector<const T*> inputs;
    for (const Call& c : calls) inputs.push_back(c.in.ptr<T>());
    return inputs;
}

class ThreadComm final : public Comm {
  public:
    ThreadComm(std::shared_ptr<World> world, std::shared_ptr<Group> group, int rank)
        : world_(std::move(world)), group_(std::move(group)), rank_(rank) {}

    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(group_->members.size()); }
    void barrier() override {
        collective({}, [](const std::vector<Call>&) {});
    }
    std::unique_ptr<Comm> group(const std::vector<int>& members) override;

  protected:
    void do_all_reduce(const Exec& exec, Tensor data, Reduce op) override;
    void do_all_gather(const Exec& exec, ConstTensor in, Tensor out) override;
    void do_reduce_scatter(const Exec& exec, ConstTensor in, Tensor out) override;
    void do_broadcast(const Exec& exec, Tensor data, int root) override;
    void do_send(const Exec& exec, ConstTensor data, int to) override;
    void do_recv(const Exec& exec, Tensor data, int from) override;

  private:
    /// Waits until all ranks have come with the same call, runs body, and waits until all are done with it.
    template <class F>
    void collective(const Call& call, const F& body);
    template <class Ready>
    void wait(std::unique_lock<std::mutex>& lock, const std::string& where, const Ready& ready);
    void check_alike();
    /// A member of the group that has ended and for which missing(rank in the group) holds; -1: none.
    template <class Missing>
    int gone(const Missing& missing) const;

    std::shared_ptr<World> world_;
    std::shared_ptr<Group> group_;
    int rank_;
};

template <class Ready>
void ThreadComm::wait(std::unique_lock<std::mutex>& lock, const std::string& where, const Ready& ready) {
    group_->changed.wait(lock, [&] { return world_->failed || ready(); });
    if (world_->failed) throw PeerFailed(cat(world_->failure, " (this rank was in ", where, ")"));
}

template <class Missing>
int ThreadComm::gone(const Missing& missing) const {
    for (int r = 0; r < size(); ++r) {
        const int in_world = group_->members[static_cast<std::size_t>(r)];
        if (world_->ended[static_cast<std::size_t>(in_world)] && missing(r)) return in_world;
    }
    return -1;
}

void ThreadComm::check_alike() {
    const Call& mine = *group_->calls[static_cast<std::size_t>(rank_)];
    for (int r = 0; r < size(); ++r) {
        const auto& other = group_->calls[static_cast<std::size_t>(r)];
        if (other && !mine.matches(*other)) {
            throw Error(cat("collectives out of step: rank ", group_->members[static_cast<std::size_t>(rank_)],
                            " calls ", mine.text(), ", rank ", group_->members[static_cast<std::size_t>(r)], " ",
                            other->text()));
        }
    }
}

template <class F>
void ThreadComm::collective(const Call& call, const F& body) {
    Group& g = *group_;
    std::unique_lock lock(g.mutex);
    wait(lock, call.text(), [&] { return !g.calls[static_cast<std::size_t>(rank_)] && (g.inside == 0); });
    g.calls[static_cast<std::size_t>(rank_)] = call;
    check_alike();
    const auto come = [&](int r) { return g.calls[static_cast<std::size_t>(r)].has_value(); };
    int count = 0;
    for (int r = 0; r < size(); ++r) count += come(r);
    if (count == size()) {
        g.agreed.clear();
        for (auto& c : g.calls) g.agreed.push_back(*c);
        g.inside = size();
        g.changed.notify_all();
    } else {
        int missing = -1;
        wait(lock, call.text(), [&] {
            if (g.inside > 0) return true;
            missing = gone([&](int r) { return !come(r); });
            return missing >= 0;
        });
        if (missing >= 0) throw Error(cat("rank ", missing, " has ended and is missing in ", call.text()));
    }
    lock.unlock();
    body(g.agreed);
    lock.lock();
    if (--g.inside == 0) {
        for (auto& c : g.calls) c.reset();
        g.changed.notify_all();
    } else {
        wait(lock, call.text(), [&] { return !g.calls[static_cast<std::size_t>(rank_)].has_value(); });
    }
}

void ThreadComm::do_all_reduce(const Exec&, Tensor data, Reduce op) {
    collective({op == Reduce::max ? Op::all_reduce_max : Op::all_reduce_sum, data, data},
               [&](const std::vector<Call>& calls) {
                   // Each rank reduces one part and writes it to all.
                   const std::int64_t n = data.numel(), begin = n * rank_ / size(), end = n * (rank_ + 1) / size();
                   with_element_type(data.dtype, [&](auto zero) {
                       using T = decltype(zero);
                       const std::vector<const T*> inputs = inputs_of<T>(calls);
                       for (std::int64_t i = begin; i < end; ++i) {
                           const T x = reduce_in_order<T>(inputs, i, op);
                           for (const Call& c : calls) c.out.ptr<T>()[i] = x;
                       }
                   });
               });
}

void ThreadComm::do_all_gather(const Exec&, ConstTensor in, Tensor out) {
    collective({Op::all_gather, in, out}, [&](const std::vector<Call>& calls) {
        for (std::size_t r = 0; r < calls.size(); ++r) {
            std::byte* const place = out.data + r * in.bytes();
            if (place != calls[r].in.data) std::memcpy(place, calls[r].in.data, in.bytes());
        }
    });
}

void ThreadComm::do_reduce_scatter(const Exec&, ConstTensor in, Tensor out) {
    collective({Op::reduce_scatter, in, out}, [&](const std::vector<Call>& calls) {
        const std::int64_t n = out.numel(), begin = n * rank_;
        with_element_type(in.dtype, [&](auto zero) {
            using T = decltype(zero);
            const std::vector<const T*> inputs = inputs_of<T>(calls);
            for (std::int64_t i = 0; i < n; ++i) out.ptr<T>()[i] = reduce_in_order<T>(inputs, begin + i, Reduce::sum);
        });
    });
}

void ThreadComm::do_broadcast(const Exec&, Tensor data, int root) {
    collective({Op::broadcast, data, data, root}, [&](const std::vector<Call>& calls) {
        const ConstTensor& from = calls[static_cast<std::size_t>(root)].in;
        if (rank_ != root) std::memcpy(data.data, from.data, data.bytes());
    });
}

void ThreadComm::do_send(const Exec&, ConstTensor data, int to) {
    const std::lock_guard lock(group_->mutex);
    group_->mail[{rank_, to}].push_back({{data.data, data.data + data.bytes()}, data.dtype});
    group_->changed.notify_all();
}

void ThreadComm::do_recv(const Exec&, Tensor data, int from) {
    std::unique_lock lock(group_->mutex);
    auto& box = group_->mail[{from, rank_}];
    const std::string where = cat("recv of ", data.numel(), " ", tera::name_of(data.dtype), " from rank ",
                                  group_->members[static_cast<std::size_t>(from)]);
    int missing = -1;
    wait(lock, where, [&] {
        if (!box.empty()) return true;
        missing = gone([&](int r) { return r == from; });
        return missing >= 0;
    });
    if (box.empty()) throw Error(cat("rank ", missing, " has ended and sends nothing to ", where));
    const Message message = std::move(box.front());
    box.pop_front();
    if (message.dtype != data.dtype || message.bytes.size() != data.bytes()) {
        throw Error(cat("messages out of step: ", where, ", sent were ", message.bytes.size() / size_of(message.dtype),
                        " ", tera::name_of(message.dtype)));
    }
    std::memcpy(data.data, message.bytes.data(), message.bytes.size());
}

std::unique_ptr<Comm> ThreadComm::group(const std::vector<int>& members) {
    const auto [in_world, place] = members_in_world(members, group_->members, rank_);
    return std::make_unique<ThreadComm>(world_, world_->group(in_world, in_world[static_cast<std::size_t>(place)]),
                                        place);
}

void run_rank(const std::shared_ptr<World>& world, const std::shared_ptr<Group>& all, int rank,
              const std::function<void(Comm&)>& f) {
    try {
        ThreadComm comm(world, all, rank);
        f(comm);
    } catch (const PeerFailed&) {  // the peer's own failure is the one to tell
    } catch (const std::exception& e) {
        world->fail(rank, e.what(), std::current_exception());
    }
    world->end(rank);
}

}  // namespace

void run_on_threads(int size, const std::function<void(Comm& world)>& f) {
    TERA_CHECK(size > 0, size, " ranks");
    auto world = std::make_shared<World>(size);
    std::vector<int> everyone;
    for (int r = 0; r < size; ++r) everyone.push_back(r);
    const auto all = std::make_shared<Group>(everyone);
    world->groups[{everyone, -1}] = all;
    std::vector<std::thread> threads;
    for (int r = 0; r < size; ++r) threads.emplace_back([&, r] { run_rank(world, all, r, f); });
    for (std::thread& t : threads) t.join();
    if (!world->failed) return;
    try {
        std::rethrow_exception(world->cause);
    } catch (const UsageError&) {
        throw UsageError(world->failure);
    } catch (const std::exception&) {
        throw Error(world->failure);
    }
}

}  // namespace tera
