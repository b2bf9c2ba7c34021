#include "comm/meeting.h"

#include <unistd.h>

#include <algorithm>
#include <random>
#include <thread>

#include "core/error.h"

namespace tera {
namespace {

constexpr std::int64_t magic = 0x7465726174726f37;  // changes with the packets

std::int64_t random_token() {
    std::random_device source;
    return static_cast<std::int64_t>(std::uint64_t{source()} << 32 | source());
}

void put_process(Packet& packet, const ProcessIdentity& process) {
    for (const std::int64_t number : {process.pid, process.machine, process.born}) packet.put(number);
}
ProcessIdentity get_process(Packet& packet) {
    ProcessIdentity process;
    for (std::int64_t* number : {&process.pid, &process.machine, &process.born}) *number = packet.get<std::int64_t>();
    return process;
}

class Gathering {
  public:
    Gathering(const RankPlace& place, const WatchSettings& settings, Meeting& meeting)
        : place_(place), settings_(settings), peers_(meeting.peers), lines_(meeting.lines) {}

    /// `own_failure`: why there will be no meeting; ranks that come are only told so.
    void gather(const std::string& own_failure = {}) {
        if (!own_failure.empty()) will_fail(cat(own_name(), " failed before ranks met: ", own_failure));
        int port = place_.port;
        Socket listener = left_listening(place_.listener, port);
        if (!listener) listener = listen_on(port);
        lines_.resize(peers_.size());
        std::vector<Line> strangers;
        const auto deadline = Clock::now() + seconds(settings_.timeout_s);
        Notices notices(settings_.patience_s);
        while (const std::size_t missing = not_heard_of()) {
            wait_for(listener, false, std::min(deadline, Clock::now() + std::chrono::milliseconds(20)));
            let_in(listener, strangers);
            for (Line& stranger : strangers) admit(stranger);
            std::erase_if(strangers, [](const Line& line) { return !line.socket; });
            if (!failed_.empty()) {
                turn_away();
                if (Clock::now() > end_) break;
                if (!said_failure_ && Clock::now() > end_ - seconds(0.9 * settings_.patience_s)) say_failure();
                continue;
            }
            for (std::size_t r = 1; r < lines_.size(); ++r) {
                if (lines_[r].socket && !lines_[r].receive()) ended_early(r);
            }
            if (Clock::now() > deadline)
                refuse_all(cat(absent(), " did not come within ", settings_.timeout_s,
                               " s; see whether they were started and reach ", meeting_point()));
            if (notices.due()) tell_who_is_missing(notices.since(), missing);
        }
        if (!failed_.empty()) {
            turn_away();
            throw UsageError(failed_);
        }
        send_table();
    }

    void join() {
        const auto deadline = Clock::now() + seconds(settings_.timeout_s);
        lines_.resize(1);
        Line& line = lines_[0];
        Notices notices(settings_.patience_s);
        line.socket = find_rank_0(deadline, notices);
        Packet hello(Packet::Kind::hello);
        hello.put(magic);
        hello.put(place_.job);
        hello.put(std::int64_t{place_.size});
        hello.put(std::int64_t{place_.rank});
        hello.put(std::int64_t{settings_.data_port});
        put_process(hello, peers_[static_cast<std::size_t>(place_.rank)].process);
        hello.put(peers_[static_cast<std::size_t>(place_.rank)].token);
        hello.put(host_name());
        if (!line.send(hello)) usage_error("rank 0 at ", meeting_point(), " hung up");
        read_table(line, deadline, notices);
    }

  private:
    std::string meeting_point() const { return cat(place_.address, ":", place_.port); }
    std::string own_name() const { return cat("rank ", place_.rank, " (", host_name(), ")"); }

    void let_in(const Socket& listener, std::vector<Line>& strangers) const {
        try {
            while (Socket s = accept_from(listener))
                strangers.push_back(Line{std::move(s), {}, Clock::now(), {}, false});
        } catch (const TooManyFiles&) {
            refuse_all(TooManyFiles(peers_.size()).what());
        }
    }

    Socket find_rank_0(Clock::time_point deadline, Notices& notices) const {
        for (;;) {
            const bool last = deadline <= notices.next();
            std::string problem;
            if (Socket s = connect_to(place_.address, place_.port, last ? deadline : notices.next(), &problem))
                return s;
            if (last)
                usage_error(own_name(), " found no rank 0 within ", settings_.timeout_s, " s: ", problem,
                            "; MASTER_ADDR and MASTER_PORT must name its host and a free port");
            std::this_thread::sleep_until(notices.next());
            if (notices.due())
                settings_.print(cat(own_name(), ": waiting", notices.since(), " for rank 0, and ", problem,
                                    "; is it started, with this MASTER_ADDR and MASTER_PORT and the same WORLD_SIZE?"));
        }
    }

    /// In every rank that has come: a user may see the output of any of them only.
    void tell_who_is_missing(const std::string& since, std::size_t missing) const {
        const std::string text = cat("waiting", since, " for ", absent(), " to come to ", meeting_point(), "; ",
                                     peers_.size() - missing, " of ", peers_.size(), " ranks are there");
        settings_.print(cat(own_name(), ": ", text));
        for (const Line& line : lines_) {
            if (line.socket) (void)line.send(news_packet(text));
        }
    }

    static Packet news_packet(const std::string& text) {
        Packet p(Packet::Kind::news);
        p.put(text);
        return p;
    }

    /// Ranks that neither came nor said that they will not.
    std::size_t not_heard_of() const {
        return static_cast<std::size_t>(
            std::count_if(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.process.pid == 0; }));
    }

    /// Takes in a rank that has introduced itself; whoever is none of ours is dropped.
    void admit(Line& stranger) {
        try {
            const bool open = stranger.receive();
            std::optional<Packet> hello = Packet::take_first(stranger.received);
            if (!hello && open) return;
            if (!hello) throw Error("gone");
            const bool comes = hello->kind() == Packet::Kind::hello;
            if ((!comes && hello->kind() != Packet::Kind::cannot_come) || hello->get<std::int64_t>() != magic)
                throw Error("no rank");
            const std::string job = hello->get_text();
            const auto size = hello->get<std::int64_t>(), rank = hello->get<std::int64_t>();
            if (is_other_job(job)) {
                (void)stranger.send(
                    failure_packet(cat("the rank 0 at ", meeting_point(), " is of another job, ", place_.job,
                                       ", and not of ", job, "; choose another MASTER_PORT for one of them"),
                                   2));
                throw Error("of another job");
            }
            if (size != place_.size)
                refuse_all(cat("rank ", rank, " was started as one of ", size, " ranks, rank 0 as one of ", place_.size,
                               "; WORLD_SIZE must be the same everywhere"),
                           &stranger);
            if (!comes) return note_failure(rank, *hello), stranger.socket.close();
            if (rank < 1 || rank >= size || lines_[static_cast<std::size_t>(rank)].socket)
                refuse_all(cat("rank ", rank, " was started twice; every process needs its own RANK"), &stranger);
            Peer& peer = peers_[static_cast<std::size_t>(rank)];
            peer.port = static_cast<int>(hello->get<std::int64_t>());
            peer.process = get_process(*hello);
            peer.token = hello->get<std::int64_t>();
            peer.host = hello->get_text();
            peer.address = stranger.socket.peer_address();
            Line& line = lines_[static_cast<std::size_t>(rank)];
            line.socket = std::move(stranger.socket);
            line.received = std::move(stranger.received);
            (void)line.send(news_packet(""));  // it has found the right one
        } catch (const Error&) {
            stranger.socket.close();
        }
    }

    bool is_other_job(const std::string& job) const { return !job.empty() && !place_.job.empty() && job != place_.job; }

    /// The first of them is the one that is said. Ranks that come within the patience are still told.
    void note_failure(std::int64_t rank, Packet& packet) {
        if (rank < 1 || rank >= place_.size) throw Error("no rank");
        peers_[static_cast<std::size_t>(rank)].process.pid = packet.get<std::int64_t>();
        const std::string host = packet.get_text(), why = packet.get_text();
        will_fail(cat("rank ", rank, " (", host, ") failed before it came: ", why));
    }

    void will_fail(const std::string& why) {
        if (!failed_.empty()) return;
        failed_ = why;
        end_ = Clock::now() + seconds(settings_.patience_s);
    }

    /// Others than the quick ones are still to be told, and the user shall know why we stay.
    void say_failure() {
        said_failure_ = true;
        std::vector<int> ranks;
        for (std::size_t r = 1; r < peers_.size(); ++r) {
            if (peers_[r].process.pid == 0) ranks.push_back(static_cast<int>(r));
        }
        settings_.print(cat(one_line(failed_), "; rank 0 stays for some ", settings_.patience_s,
                            " s to tell it to rank ", list_of(ranks)));
    }

    void turn_away() {
        for (Line& line : lines_) {
            if (line.socket) (void)line.send(failure_packet(failed_, 2));
            line.socket.close();
        }
    }

    std::string absent() const {
        std::vector<int> ranks;
        for (std::size_t r = 1; r < lines_.size(); ++r) {
            if (!lines_[r].socket) ranks.push_back(static_cast<int>(r));
        }
        return cat(ranks.size() == 1 ? "rank " : "ranks ", list_of(ranks));
    }

    [[noreturn]] void refuse_all(const std::string& why, const Line* stranger = nullptr) const {
        if (stranger) (void)stranger->send(failure_packet(why, 2));
        for (const Line& line : lines_) {
            if (line.socket) (void)line.send(failure_packet(why, 2));
        }
        throw UsageError(why);
    }

    [[noreturn]] void ended_early(std::size_t rank) const {
        refuse_all(cat("rank ", rank, " (", peers_[rank].host, ") ended while others were still starting"));
    }

    void send_table() {
        Packet table(Packet::Kind::table);
        for (const Peer& p : peers_) {
            table.put(p.host);
            table.put(p.address);
            table.put(std::int64_t{p.port});
            put_process(table, p.process);
            table.put(p.token);
        }
        const std::string bytes = table.framed();
        for (std::size_t r = 1; r < lines_.size(); ++r) {
            lines_[r].heard = Clock::now();
            if (!lines_[r].socket.write_all(bytes.data(), bytes.size(), Clock::now() + std::chrono::seconds(30)))
                ended_early(r);
        }
    }

    void read_table(Line& line, Clock::time_point deadline, Notices& notices) {
        for (bool answered = false;;) {
            // Rank 0 may wait for the slowest rank as long as we do, and then has something to say.
            const auto until = answered ? deadline + std::chrono::seconds(10) : std::min(deadline, notices.next());
            const bool open = line.receive();
            if (std::optional<Packet> p = first_packet(line)) {
                if (p->kind() == Packet::Kind::failure) {
                    (void)p->get<std::int64_t>();
                    throw UsageError(p->get_text());
                }
                answered = true;
                if (p->kind() == Packet::Kind::table) return take_table(*p, line);
                if (const std::string text = p->get_text(); !text.empty()) settings_.print(cat(own_name(), ": ", text));
            } else if (!open) {
                usage_error(own_name(), ": rank 0 at ", meeting_point(), " hung up before all ranks had come",
                            answered ? "" : not_ours);
            } else if (!wait_for(line.socket, false, until)) {
                if (Clock::now() >= deadline)
                    usage_error(own_name(), ": rank 0 at ", meeting_point(), " said nothing within ",
                                settings_.timeout_s, " s", answered ? "" : not_ours);
                if (notices.due())
                    settings_.print(cat(own_name(), ": waiting", notices.since(), " for rank 0; something listens at ",
                                        meeting_point(), " and says nothing", not_ours));
            }
        }
    }

    std::optional<Packet> first_packet(Line& line) const {
        try {
            return Packet::take_first(line.received);
        } catch (const Error&) {
            usage_error(own_name(), ": what answers at ", meeting_point(), " is no rank 0 of this program", not_ours);
        }
    }

    void take_table(Packet& table, Line& line) {
        const std::string rank_0 = line.socket.peer_address();
        for (Peer& peer : peers_) {
            peer.host = table.get_text();
            peer.address = reachable_address(table.get_text(), rank_0);
            peer.port = static_cast<int>(table.get<std::int64_t>());
            peer.process = get_process(table);
            peer.token = table.get<std::int64_t>();
        }
        peers_[0].address = rank_0;  // the name it has for itself may mean nothing here
        line.heard = Clock::now();
    }

    static constexpr const char* not_ours =
        "; if another program has this port, choose a free one with MASTER_PORT on all ranks";

    const RankPlace& place_;
    const WatchSettings& settings_;
    std::vector<Peer>& peers_;
    std::vector<Line>& lines_;
    std::string failed_;         ///< why there will be no meeting; "" as long as all is well
    Clock::time_point end_;      ///< of telling it
    bool said_failure_ = false;  ///< to the user
};

/// Nobody has come yet.
Meeting meeting_of_one(const RankPlace& place, const WatchSettings& settings) {
    Meeting meeting;
    meeting.peers.resize(static_cast<std::size_t>(place.size));
    meeting.peers[static_cast<std::size_t>(place.rank)] = {host_name(), place.address, settings.data_port,
                                                           own_identity(), random_token()};
    return meeting;
}

}  // namespace

std::string list_of(const std::vector<int>& ranks) {
    constexpr std::size_t most = 8;
    std::string text;
    for (std::size_t i = 0; i < std::min(most, ranks.size()); ++i) text += cat(i == 0 ? "" : ", ", ranks[i]);
    return ranks.size() > most ? cat(text, " and ", ranks.size() - most, " more") : text;
}

std::string reachable_address(const std::string& seen, const std::string& rank_0) {
    return seen.starts_with("127.") || seen == "::1" ? rank_0 : seen;
}

Packet failure_packet(const std::string& why, int exit_code) {
    Packet p(Packet::Kind::failure);
    p.put(std::int64_t{exit_code});
    p.put(why);
    return p;
}

Clock::duration seconds(double s) {
    constexpr double years = 1e9;  // more than a clock adds to now without overflow
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(s, years)));
}

Notices::Notices(double patience_s)
    : patience_s_(patience_s), begin_(Clock::now()), next_(begin_ + seconds(patience_s)) {}

bool Notices::due() {
    if (Clock::now() < next_) return false;
    next_ = Clock::now() + seconds(6 * patience_s_);
    return true;
}

std::string Notices::since() const {
    return cat(" since ", std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin_).count(), " s");
}

void stay_away(const RankPlace& place, const std::string& why) noexcept try {
    if (place.size == 1 || place.address.empty()) return;
    if (place.rank == 0) {
        const WatchSettings settings;
        Meeting meeting = meeting_of_one(place, settings);
        return Gathering(place, settings, meeting).gather(why);
    }
    const auto deadline = Clock::now() + std::chrono::seconds(2);
    const Line line{connect_to(place.address, place.port, deadline), {}, Clock::now(), {}, false};
    Packet packet(Packet::Kind::cannot_come);
    packet.put(magic);
    packet.put(place.job);
    packet.put(std::int64_t{place.size});
    packet.put(std::int64_t{place.rank});
    packet.put(std::int64_t{::getpid()});
    packet.put(host_name());
    packet.put(why);
    if (line.socket) (void)line.send(packet);
} catch (const std::exception&) {
    return;  // what is wrong with the address is not what this rank fails of
}

Meeting come_together(const RankPlace& place, const WatchSettings& settings) {
    Meeting meeting = meeting_of_one(place, settings);
    if (place.size == 1) return meeting;
    Gathering gathering(place, settings, meeting);
    place.rank == 0 ? gathering.gather() : gathering.join();
    return meeting;
}

}  // namespace tera
