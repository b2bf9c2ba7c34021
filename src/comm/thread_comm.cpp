#include "comm/thread_comm.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "comm/meeting.h"
#include "comm/reduce_in_order.h"
#include "comm/standstill.h"
#include "core/error.h"

namespace tera {
namespace {

/// What a rank throws because another one failed, or because none can go on.
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
    std::string name;          ///< "over ranks 0, 2"
    std::condition_variable changed;
    std::vector<std::optional<Call>> calls;  ///< of the collective under way
    std::vector<Call> agreed;                ///< the same once all have come
    int inside = 0;                          ///< ranks that have not left the collective
    std::map<std::pair<int, int>, std::deque<Message>> mail;

    Group(std::vector<int> m, std::string n) : members(std::move(m)), name(std::move(n)), calls(members.size()) {}
};

/// What a rank waits for.
struct Waiting {
    std::function<bool()> ready;  ///< it can go on
    std::function<std::string()> where;
};

/// What all threads share. One mutex guards it and its groups, so that whoever holds it knows what every rank does.
struct World {
    explicit World(int size) : waiting(static_cast<std::size_t>(size)), ended(waiting.size()) {}

    /// The n-th time that a rank asks for a group of these members it gets the n-th group of them.
    std::shared_ptr<Group> group(const std::vector<int>& members, int rank) {
        const std::lock_guard lock(mutex);
        const int n = asked[{rank, members}]++;
        auto& g = groups[{members, n}];
        if (!g) g = std::make_shared<Group>(members, name_of_group(members, n));
        return g;
    }
    /// The first failure counts.
    void fail(const std::string& why, const std::exception_ptr& thrown) {
        if (failed) return;
        failure = why;
        cause = thrown;
        failed = true;
        wake_all();
    }
    void end(int rank) {
        const std::lock_guard lock(mutex);
        ended[static_cast<std::size_t>(rank)] = true;
        wake_all();
        look_for_standstill();
    }
    /// To be called when a rank has begun to wait or has ended: if that was the last one that could do something, no
    /// rank will ever go on.
    void look_for_standstill() {
        bool someone_waits = false;
        for (std::size_t r = 0; r < waiting.size(); ++r) {
            if (ended[r]) continue;
            if (!waiting[r] || waiting[r]->ready()) return;
            someone_waits = true;
        }
        if (!someone_waits) return;
        const std::string why = cat("collectives out of step: all ranks wait for each other; ", where());
        fail(why, std::make_exception_ptr(Error(why)));
    }

    std::mutex mutex;
    std::map<std::pair<std::vector<int>, int>, std::shared_ptr<Group>> groups;
    std::map<std::pair<int, std::vector<int>>, int> asked;
    bool failed = false;
    std::string failure;
    std::exception_ptr cause;
    std::vector<const Waiting*> waiting;  ///< by rank; nullptr: it works, or has ended
    std::vector<bool> ended;

  private:
    std::string name_of_group(const std::vector<int>& members, int n) const {
        const bool all = members.size() == waiting.size() && std::is_sorted(members.begin(), members.end());
        return cat("over ", all ? cat(members.size(), " ranks") : cat("ranks ", list_of(members)),
                   n > 0 ? cat(" (their group ", n + 1, ")") : "");
    }
    std::string where() const {
        std::vector<std::string> places;
        for (const Waiting* w : waiting) places.push_back(w ? cat("in ", w->where()) : "done with its work");
        return where_ranks_are(places, [](int rank) { return cat("rank ", rank); });
    }
    void wake_all() {
        for (auto& [key, g] : groups) g->changed.notify_all();
    }
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
    /// Until it is ready or, if that ends it, a rank has failed.
    enum class Failure : std::uint8_t { ends_it, is_passed_over };
    template <class Where, class Ready>
    void wait(std::unique_lock<std::mutex>& lock, const Where& where, const Ready& ready,
              Failure failure = Failure::ends_it);
    template <class Where>
    void throw_if_failed(const Where& where) const;
    void check_alike() const;
    std::string text_of(const Call& call) const;
    int in_world(int r) const { return group_->members[static_cast<std::size_t>(r)]; }
    bool has_ended(int r) const { return world_->ended[static_cast<std::size_t>(in_world(r))]; }
    bool has_come(int r) const { return group_->calls[static_cast<std::size_t>(r)].has_value(); }
    /// A member of the group that has ended without coming to the collective; -1: none.
    int missing() const;

    std::shared_ptr<World> world_;
    std::shared_ptr<Group> group_;
    int rank_;
};

template <class Where>
void ThreadComm::throw_if_failed(const Where& where) const {
    if (world_->failed) throw PeerFailed(cat(world_->failure, " (this rank was in ", where(), ")"));
}

template <class Where, class Ready>
void ThreadComm::wait(std::unique_lock<std::mutex>& lock, const Where& where, const Ready& ready, Failure failure) {
    const Waiting here{std::cref(ready), std::cref(where)};
    const Waiting*& mine = world_->waiting[static_cast<std::size_t>(in_world(rank_))];
    mine = &here;
    world_->look_for_standstill();
    group_->changed.wait(lock, [&] { return ready() || (world_->failed && failure == Failure::ends_it); });
    mine = nullptr;
}

std::string ThreadComm::text_of(const Call& call) const {
    if (call.op == Op::barrier) return name_of(call.op);
    return cat(name_of(call.op), " of ", call.in.numel(), " ", tera::name_of(call.in.dtype),
               call.op == Op::broadcast ? cat(" from rank ", in_world(call.root)) : "");
}

int ThreadComm::missing() const {
    for (int r = 0; r < size(); ++r) {
        if (has_ended(r) && !has_come(r)) return in_world(r);
    }
    return -1;
}

void ThreadComm::check_alike() const {
    const Call& mine = *group_->calls[static_cast<std::size_t>(rank_)];
    for (int r = 0; r < size(); ++r) {
        const auto& other = group_->calls[static_cast<std::size_t>(r)];
        if (other && !mine.matches(*other)) {
            throw Error(cat("collectives out of step: rank ", in_world(rank_), " calls ", text_of(mine), ", rank ",
                            in_world(r), " ", text_of(*other), ", ", group_->name));
        }
    }
}

template <class F>
void ThreadComm::collective(const Call& call, const F& body) {
    Group& g = *group_;
    const auto where = [&] { return cat(text_of(call), " ", g.name); };
    std::unique_lock lock(world_->mutex);
    throw_if_failed(where);
    g.calls[static_cast<std::size_t>(rank_)] = call;
    check_alike();
    int count = 0;
    for (int r = 0; r < size(); ++r) count += has_come(r);
    if (count == size()) {
        g.agreed.clear();
        for (auto& c : g.calls) g.agreed.push_back(*c);
        g.inside = size();
        g.changed.notify_all();
    } else {
        wait(lock, where, [&] { return g.inside > 0 || missing() >= 0; });
        if (g.inside == 0) {
            throw_if_failed(where);
            throw Error(cat("rank ", missing(), " has ended and is missing in ", where()));
        }
    }
    // From here on the others work on this rank's memory: whoever fails, all go through it to the end.
    lock.unlock();
    body(g.agreed);
    lock.lock();
    if (--g.inside == 0) {
        for (auto& c : g.calls) c.reset();
        g.changed.notify_all();
    } else {
        wait(
            lock, where, [&] { return !has_come(rank_); }, Failure::is_passed_over);
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
    Message message{{data.data, data.data + data.bytes()}, data.dtype};
    const std::lock_guard lock(world_->mutex);
    group_->mail[{rank_, to}].push_back(std::move(message));
    group_->changed.notify_all();
}

void ThreadComm::do_recv(const Exec&, Tensor data, int from) {
    const auto where = [&] {
        return cat("recv of ", data.numel(), " ", tera::name_of(data.dtype), " from rank ", in_world(from), " ",
                   group_->name);
    };
    std::unique_lock lock(world_->mutex);
    auto& box = group_->mail[{from, rank_}];
    wait(lock, where, [&] { return !box.empty() || has_ended(from); });
    if (box.empty()) {
        throw_if_failed(where);
        throw Error(cat("rank ", in_world(from), " has ended and sends nothing to ", where()));
    }
    const Message message = std::move(box.front());
    box.pop_front();
    lock.unlock();
    if (message.dtype != data.dtype || message.bytes.size() != data.bytes()) {
        throw Error(cat("messages out of step: ", where(), ", sent were ",
                        message.bytes.size() / size_of(message.dtype), " ", tera::name_of(message.dtype)));
    }
    std::memcpy(data.data, message.bytes.data(), message.bytes.size());
}

std::unique_ptr<Comm> ThreadComm::group(const std::vector<int>& members) {
    const auto [in_world, place] = members_in_world(members, group_->members, rank_);
    return std::make_unique<ThreadComm>(world_, world_->group(in_world, in_world[static_cast<std::size_t>(place)]),
                                        place);
}

void run_rank(const std::shared_ptr<World>& world, const std::vector<int>& everyone, int rank,
              const std::function<void(Comm&)>& f) {
    try {
        ThreadComm comm(world, world->group(everyone, rank), rank);
        f(comm);
    } catch (const PeerFailed&) {  // the peer's own failure is the one to tell
    } catch (const std::exception& e) {
        const std::lock_guard lock(world->mutex);
        world->fail(cat("rank ", rank, ": ", e.what()), std::current_exception());
    }
    world->end(rank);
}

}  // namespace

void run_on_threads(int size, const std::function<void(Comm& world)>& f) {
    TERA_CHECK(size > 0, size, " ranks");
    auto world = std::make_shared<World>(size);
    std::vector<int> everyone;
    for (int r = 0; r < size; ++r) everyone.push_back(r);
    std::vector<std::thread> threads;
    for (int r = 0; r < size; ++r) threads.emplace_back([&, r] { run_rank(world, everyone, r, f); });
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
