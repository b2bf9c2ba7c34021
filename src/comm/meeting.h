// How ranks find each other: every rank connects to rank 0, says who it is and where it takes data, and gets the list
// of all. Whoever waits longer than patience_s says for whom. The connections stay; the watch (comm/watch.h) uses them.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "comm/neighbour.h"
#include "comm/packet.h"
#include "comm/progress.h"
#include "comm/rendezvous.h"
#include "comm/tcp.h"

namespace tera {

struct WatchSettings {
    double timeout_s = 600;  ///< for all ranks to come together, and for one collective
    double patience_s = 10;  ///< whoever waits for others to come says so after this, and then every six times as much
    double silent_s = 15, notice_s = 30, beat_s = 1;
    double standstill_s = 10;  ///< all ranks wait for each other: comm/standstill.h
    int data_port = 0;         ///< told to the other ranks
    /// What there is to say while all is well.
    std::function<void(const std::string&)> print = [](const std::string& text) {
        std::fprintf(stderr, "%s\n", text.c_str());
    };
    /// Default: say why (rank 0, or if it is lost) and exit.
    std::function<void(const std::string& why, int exit_code)> leave;
};

struct Peer {
    std::string host;
    std::string address;  ///< by which this rank reaches it
    int port = 0;         ///< its data_port
    ProcessIdentity process;
    std::int64_t token = 0;  ///< of this run: whoever connects to the port must know it
};

/// One connection: rank 0 has one to every other rank, they have one to it.
struct Line {
    Socket socket;
    std::string received;
    Clock::time_point heard = Clock::now();
    Progress::State state;
    bool ended = false;  ///< said goodbye

    bool send(const Packet& packet) const {
        const std::string bytes = packet.framed();
        return socket.write_all(bytes.data(), bytes.size(), Clock::now() + std::chrono::seconds(2));
    }
    /// Takes in what has come; false if the other side is gone.
    bool receive() {
        char buffer[4096];
        for (;;) {
            const auto n = socket.read_some(buffer, sizeof buffer);
            if (n < 0) return false;
            if (n == 0) return true;
            received.append(buffer, static_cast<std::size_t>(n));
        }
    }
};

struct Meeting {
    std::vector<Peer> peers;
    std::vector<Line> lines;  ///< rank 0: by rank, its own unused; others: one, to rank 0
};

/// Returns when all ranks have come. UsageError, naming who is missing, after timeout_s.
Meeting come_together(const RankPlace& place, const WatchSettings& settings);

/// Of a rank that will not come: rank 0 tells the others, who leave with these words. Tries for two seconds; nothing
/// happens if rank 0 is not there. If it is rank 0 itself, it stays until it has told all others, ten seconds at most.
void stay_away(const RankPlace& place, const std::string& why) noexcept;

/// By which a rank reaches another that rank 0 saw at `seen`: on its own machine that is an address which means nothing
/// elsewhere, and the rank is where rank 0 was found.
std::string reachable_address(const std::string& seen, const std::string& rank_0);

/// When to say again that we wait.
class Notices {
  public:
    explicit Notices(double patience_s);
    Clock::time_point next() const { return next_; }
    /// True once it is time.
    bool due();
    /// " since 12 s".
    std::string since() const;

  private:
    double patience_s_;
    Clock::time_point begin_, next_;
};

/// Text of at most eight of them.
std::string list_of(const std::vector<int>& ranks);
Packet failure_packet(const std::string& why, int exit_code);
Clock::duration seconds(double s);

}  // namespace tera
