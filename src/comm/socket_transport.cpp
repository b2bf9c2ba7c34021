#include "comm/socket_transport.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <exception>
#include <list>
#include <mutex>
#include <thread>

#include "comm/mailbox.h"
#include "core/dtype.h"
#include "core/error.h"

namespace tera {
namespace {

/// One frame on its way out: header and bytes.
struct Parcel {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
};

struct Outgoing {
    Socket socket;
    std::deque<Parcel> parcels;
    std::size_t sent = 0;  ///< of the first one
};

/// A connection that somebody opened to this rank.
struct Incoming {
    Socket socket;
    int from = -1;  ///< known once it has said so
    Greeting greeting;
    Frame frame;
    std::size_t have = 0;  ///< bytes of greeting, header or data that are here
    enum class Part { greeting, header, data } part = Part::greeting;
};

class SocketTransport final : public Transport {
  public:
    SocketTransport(Socket listener, int rank, const Watch& watch, Clock::duration patience)
        : listener_(std::move(listener)),
          rank_(rank),
          watch_(watch),
          patience_(patience),
          outgoing_(watch.peers().size()),
          lost_(watch.peers().size()),
          greeted_(watch.peers().size()),
          thread_([this] { run(); }) {}

    ~SocketTransport() override {
        {
            std::unique_lock lock(mutex_);
            // What was sent last must still get out, unless nobody takes it any more.
            changed_.wait_for(lock, std::chrono::seconds(10), [&] { return failure_ || !anything_to_send(); });
            stop_ = true;
        }
        wake();
        thread_.join();
        ::close(wake_);
    }

    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(outgoing_.size()); }

    void send(int to, const FrameHeader& header, const std::byte* data) override {
        Outgoing& out = outgoing_[static_cast<std::size_t>(to)];
        if (!out.socket) connect(out, to);
        Parcel parcel{std::make_unique_for_overwrite<std::byte[]>(sizeof header + header.bytes),
                      sizeof header + header.bytes};
        std::memcpy(parcel.bytes.get(), &header, sizeof header);
        if (header.bytes > 0) std::memcpy(parcel.bytes.get() + sizeof header, data, header.bytes);
        count_sent(parcel.size);
        {
            const std::lock_guard lock(mutex_);
            out.parcels.push_back(std::move(parcel));
        }
        wake();
    }

    Frame receive(int from, std::uint64_t group) override {
        std::unique_lock lock(mutex_);
        std::optional<Frame> frame;
        changed_.wait(lock, [&] {
            frame = mailbox_.take(from, group);
            return frame || failure_ || lost_[static_cast<std::size_t>(from)];
        });
        if (frame) return std::move(*frame);
        if (failure_) std::rethrow_exception(failure_);
        lock.unlock();
        throw_lost(from);
    }

  private:
    [[noreturn]] void throw_lost(int rank) const {
        watch_.expect_failure();
        throw Error(cat("the connection to ", watch_.name_of(rank), " was lost"));
    }

    [[noreturn]] void throw_unreachable(int rank) const {
        const Peer& peer = watch_.peers()[static_cast<std::size_t>(rank)];
        watch_.expect_failure();
        throw Error(cat("no connection to ", watch_.name_of(rank), " at ", peer.address, ":", peer.port,
                        "; ranks must reach each other at any port"));
    }

    Socket connected_to(const Peer& peer) const {
        try {
            return connect_to(peer.address, peer.port, Clock::now() + patience_);
        } catch (const TooManyFiles&) {
            throw TooManyFiles(outgoing_.size());
        }
    }

    /// Only the rank's own thread opens connections; the other one sees them once they stand.
    void connect(Outgoing& out, int to) {
        const Peer& peer = watch_.peers()[static_cast<std::size_t>(to)];
        Socket s = connected_to(peer);
        const Greeting greeting{.token = peer.token, .rank = static_cast<std::uint64_t>(rank_)};
        if (!s || !s.write_all(&greeting, sizeof greeting, Clock::now() + patience_)) throw_unreachable(to);
        const std::lock_guard lock(mutex_);
        out.socket = std::move(s);
    }

    static int made_wake() {
        const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd < 0) throw TooManyFiles();
        return fd;
    }

    void wake() const {
        const std::uint64_t one = 1;
        (void)!::write(wake_, &one, sizeof one);
    }

    bool anything_to_send() const {
        for (const Outgoing& out : outgoing_) {
            if (out.socket && !out.parcels.empty()) return true;
        }
        return false;
    }

    /// What goes wrong here is thrown where the rank waits next.
    void run() {
        std::unique_lock lock(mutex_);
        try {
            while (!stop_) turn(lock);
        } catch (const TooManyFiles&) {
            failure_ = std::make_exception_ptr(TooManyFiles(outgoing_.size()));
        } catch (...) {
            failure_ = std::current_exception();
        }
        changed_.notify_all();
    }

    void turn(std::unique_lock<std::mutex>& lock) {
        std::vector<pollfd> polled{{wake_, POLLIN, 0}, {listener_.fd(), POLLIN, 0}};
        for (const Incoming& in : incoming_) polled.push_back({in.socket.fd(), POLLIN, 0});
        for (const Outgoing& out : outgoing_) {
            if (out.socket && !out.parcels.empty()) polled.push_back({out.socket.fd(), POLLOUT, 0});
        }
        lock.unlock();
        ::poll(polled.data(), polled.size(), -1);
        lock.lock();
        std::uint64_t count = 0;
        if (polled[0].revents != 0) (void)!::read(wake_, &count, sizeof count);
        if (polled[1].revents != 0) let_in();
        for (Incoming& in : incoming_) take_in(in);
        incoming_.remove_if([](const Incoming& in) { return !in.socket; });
        for (std::size_t r = 0; r < outgoing_.size(); ++r) send_out(static_cast<int>(r));
        changed_.notify_all();
    }

    void let_in() {
        while (Socket s = accept_from(listener_)) {
            incoming_.emplace_back();
            incoming_.back().socket = std::move(s);
        }
    }

    void lose(int rank) {
        if (rank >= 0) lost_[static_cast<std::size_t>(rank)] = true;
    }

    void send_out(int to) {
        Outgoing& out = outgoing_[static_cast<std::size_t>(to)];
        while (out.socket && !out.parcels.empty()) {
            const Parcel& first = out.parcels.front();
            const auto n = out.socket.write_some(first.bytes.get() + out.sent, first.size - out.sent);
            if (n == 0) return;
            if (n < 0) {
                out.parcels.clear();
                lose(to);
                return;
            }
            out.sent += static_cast<std::size_t>(n);
            if (out.sent < first.size) continue;
            out.parcels.pop_front();
            out.sent = 0;
        }
    }

    /// Reads until there is no more, or for long enough that others get their turn.
    void take_in(Incoming& in) {
        for (int turns = 0; turns < 64; ++turns) {
            std::byte* const to = in.part == Incoming::Part::greeting ? reinterpret_cast<std::byte*>(&in.greeting)
                                  : in.part == Incoming::Part::header ? reinterpret_cast<std::byte*>(&in.frame.header)
                                                                      : in.frame.data.get();
            const std::size_t whole = in.part == Incoming::Part::greeting ? sizeof in.greeting
                                      : in.part == Incoming::Part::header ? sizeof in.frame.header
                                                                          : in.frame.header.bytes;
            const auto n = in.socket.read_some(to + in.have, whole - in.have);
            if (n == 0) return;
            if (n < 0) {
                lose(in.from);
                in.socket.close();
                return;
            }
            in.have += static_cast<std::size_t>(n);
            if (in.part != Incoming::Part::greeting) count_come(static_cast<std::size_t>(n));
            if (in.have == whole) finish_part(in);
            if (!in.socket) return;
        }
    }

    /// Of this run, and not connected yet.
    bool is_new_rank(const Greeting& greeting) const {
        return greeting.magic == Greeting{}.magic &&
               greeting.token == watch_.peers()[static_cast<std::size_t>(rank_)].token &&
               greeting.rank < greeted_.size() && !greeted_[greeting.rank];
    }

    /// At most all ranks' elements are in a frame.
    bool can_be(const FrameHeader& header) const {
        return header.dtype <= static_cast<std::uint32_t>(DType::u8) && header.elements >= 0 &&
               header.bytes / size_of(static_cast<DType>(header.dtype)) / outgoing_.size() <=
                   static_cast<std::uint64_t>(header.elements);
    }

    void finish_part(Incoming& in) {
        in.have = 0;
        switch (in.part) {
            case Incoming::Part::greeting:
                if (!is_new_rank(in.greeting)) return in.socket.close();
                in.from = static_cast<int>(in.greeting.rank);
                greeted_[in.greeting.rank] = true;
                in.part = Incoming::Part::header;
                return;
            case Incoming::Part::header:
                if (!can_be(in.frame.header))
                    throw Error(cat("what came from ", watch_.name_of(in.from), " is no message of this program"));
                if (in.frame.header.bytes > 0) {
                    in.frame.data = std::make_unique_for_overwrite<std::byte[]>(in.frame.header.bytes);
                    in.part = Incoming::Part::data;
                    return;
                }
                [[fallthrough]];
            case Incoming::Part::data:
                mailbox_.put(in.from, std::move(in.frame));
                in.frame = {};
                in.part = Incoming::Part::header;
        }
    }

    Socket listener_;
    int rank_;
    const Watch& watch_;
    Clock::duration patience_;
    int wake_ = made_wake();
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Outgoing> outgoing_;
    std::list<Incoming> incoming_;
    Mailbox mailbox_;
    std::vector<bool> lost_, greeted_;
    std::exception_ptr failure_;
    bool stop_ = false;
    std::thread thread_;
};

}  // namespace

std::unique_ptr<Transport> make_socket_transport(Socket listener, int rank, const Watch& watch,
                                                 Clock::duration patience) {
    return std::make_unique<SocketTransport>(std::move(listener), rank, watch, patience);
}

}  // namespace tera
