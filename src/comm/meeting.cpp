#include "comm/meeting.h"

#include <unistd.h>

#include <algorithm>

#include "core/error.h"

namespace tera {
namespace {

constexpr std::int64_t magic = 0x7465726174726f33;  // changes with the packets

class Gathering {
  public:
    Gathering(const RankPlace& place, const WatchSettings& settings, Meeting& meeting)
        : place_(place), settings_(settings), peers_(meeting.peers), lines_(meeting.lines) {}

    void gather() {
        int port = place_.port;
        Socket listener = left_listening(place_.listener, port);
        if (!listener) listener = listen_on(port);
        lines_.resize(peers_.size());
        std::vector<Line> strangers;
        const auto begin = Clock::now(), deadline = begin + seconds(settings_.timeout_s);
        auto next_notice = begin + std::chrono::seconds(10);
        std::size_t missing = peers_.size() - 1;
        while (missing > 0) {
            wait_for(listener, false, std::min(deadline, Clock::now() + std::chrono::milliseconds(20)));
            while (Socket s = accept_from(listener))
                strangers.push_back(Line{std::move(s), {}, Clock::now(), {}, false});
            for (Line& stranger : strangers) missing -= admit(stranger);
            std::erase_if(strangers, [](const Line& line) { return !line.socket; });
            for (std::size_t r = 1; r < lines_.size(); ++r) {
                if (lines_[r].socket && !lines_[r].receive()) ended_early(r);
            }
            if (Clock::now() > deadline)
                refuse_all(cat(absent(), " did not come within ", settings_.timeout_s,
                               " s; see whether they were started and reach ", place_.address, ":", place_.port));
            if (Clock::now() > next_notice) {
                settings_.print(cat("waiting for ", absent(), " at ", place_.address, ":", place_.port));
                next_notice += std::chrono::seconds(10) + (Clock::now() - begin);
            }
        }
        send_table();
    }

    void join() {
        const auto deadline = Clock::now() + seconds(settings_.timeout_s);
        lines_.resize(1);
        Line& line = lines_[0];
        line.socket = connect_to(place_.address, place_.port, deadline);
        if (!line.socket)
            usage_error("rank ", place_.rank, " (", host_name(), ") found no rank 0 at ", place_.address, ":",
                        place_.port, " within ", settings_.timeout_s,
                        " s; MASTER_ADDR and MASTER_PORT must name its host and a free port");
        Packet hello(Packet::Kind::hello);
        hello.put(magic);
        hello.put(std::int64_t{place_.size});
        hello.put(std::int64_t{place_.rank});
        hello.put(std::int64_t{settings_.data_port});
        hello.put(std::int64_t{::getpid()});
        hello.put(host_name());
        if (!line.send(hello)) usage_error("rank 0 at ", place_.address, ":", place_.port, " hung up");
        // Rank 0 may wait for the slowest rank as long as we do, and then has something to say.
        read_table(line, deadline + std::chrono::seconds(10));
    }

  private:
    /// 1 if a rank has introduced itself; whoever is none of ours is dropped.
    std::size_t admit(Line& stranger) {
        try {
            if (!stranger.receive()) return stranger.socket.close(), 0;
            std::optional<Packet> hello = Packet::take_first(stranger.received);
            if (!hello) return 0;
            if (hello->kind() != Packet::Kind::hello || hello->get<std::int64_t>() != magic) throw Error("no rank");
            const auto size = hello->get<std::int64_t>(), rank = hello->get<std::int64_t>();
            if (size != place_.size)
                refuse_all(
                    cat("rank ", rank, " was started as one of ", size, " ranks, rank 0 as one of ", place_.size),
                    &stranger);
            if (rank < 1 || rank >= size || lines_[static_cast<std::size_t>(rank)].socket)
                refuse_all(cat("rank ", rank, " was started twice; every process needs its own RANK"), &stranger);
            Peer& peer = peers_[static_cast<std::size_t>(rank)];
            peer.port = static_cast<int>(hello->get<std::int64_t>());
            peer.pid = hello->get<std::int64_t>();
            peer.host = hello->get_text();
            peer.address = stranger.socket.peer_address();
            Line& line = lines_[static_cast<std::size_t>(rank)];
            line.socket = std::move(stranger.socket);
            line.received = std::move(stranger.received);
            return 1;
        } catch (const Error&) {
            stranger.socket.close();
            return 0;
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
            table.put(p.pid);
        }
        const std::string bytes = table.framed();
        for (std::size_t r = 1; r < lines_.size(); ++r) {
            lines_[r].heard = Clock::now();
            if (!lines_[r].socket.write_all(bytes.data(), bytes.size(), Clock::now() + std::chrono::seconds(30)))
                ended_early(r);
        }
    }

    void read_table(Line& line, Clock::time_point deadline) {
        for (;;) {
            const bool open = line.receive();
            if (std::optional<Packet> p = Packet::take_first(line.received)) {
                if (p->kind() == Packet::Kind::failure) {
                    (void)p->get<std::int64_t>();
                    throw UsageError(p->get_text());
                }
                for (Peer& peer : peers_) {
                    peer.host = p->get_text();
                    peer.address = p->get_text();
                    peer.port = static_cast<int>(p->get<std::int64_t>());
                    peer.pid = p->get<std::int64_t>();
                }
                line.heard = Clock::now();
                return;
            }
            if (!open || !wait_for(line.socket, false, deadline))
                usage_error("rank 0 at ", place_.address, ":", place_.port, " hung up before all ranks had come");
        }
    }

    const RankPlace& place_;
    const WatchSettings& settings_;
    std::vector<Peer>& peers_;
    std::vector<Line>& lines_;
};

}  // namespace

std::string list_of(const std::vector<int>& ranks) {
    constexpr std::size_t most = 8;
    std::string text;
    for (std::size_t i = 0; i < std::min(most, ranks.size()); ++i) text += cat(i == 0 ? "" : ", ", ranks[i]);
    return ranks.size() > most ? cat(text, " and ", ranks.size() - most, " more") : text;
}

Packet failure_packet(const std::string& why, int exit_code) {
    Packet p(Packet::Kind::failure);
    p.put(std::int64_t{exit_code});
    p.put(why);
    return p;
}

Clock::duration seconds(double s) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

Meeting come_together(const RankPlace& place, const WatchSettings& settings) {
    Meeting meeting;
    meeting.peers.resize(static_cast<std::size_t>(place.size));
    meeting.peers[static_cast<std::size_t>(place.rank)] = {host_name(), place.address, settings.data_port, ::getpid()};
    if (place.size == 1) return meeting;
    Gathering gathering(place, settings, meeting);
    place.rank == 0 ? gathering.gather() : gathering.join();
    return meeting;
}

}  // namespace tera
