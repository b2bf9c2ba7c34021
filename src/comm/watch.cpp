#include "comm/watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <thread>

#include "comm/beat.h"
#include "comm/meeting.h"
#include "comm/standstill.h"

namespace tera {
namespace {

/// On a thread that nobody has to wait for.
std::future<void> aside(std::function<void()> work) {
    std::packaged_task<void()> task(std::move(work));
    std::future<void> done = task.get_future();
    std::thread(std::move(task)).detach();
    return done;
}

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

}  // namespace

class Watch::Impl {
  public:
    Impl(const RankPlace& place, const WatchSettings& settings)
        : place_(place), settings_(settings), standstill_(settings.standstill_s) {
        leaves_process_ = !settings_.leave;
        if (leaves_process_) settings_.leave = [this](const std::string& why, int code) { leave_process(why, code); };
        Meeting meeting = come_together(place_, settings_);
        peers_ = std::move(meeting.peers);
        lines_ = std::move(meeting.lines);
        if (place.size == 1) return;
        thread_ = std::thread([this] { run(); });
    }

    ~Impl() {
        if (!thread_.joinable()) return;
        closing_ = true;
        wake();
        thread_.join();
        ::close(wake_);
    }

    const std::vector<Peer>& peers() const { return peers_; }
    Progress progress;

    std::string name_of(int rank) const {
        return cat("rank ", rank, " (", peers_[static_cast<std::size_t>(rank)].host, ")");
    }

    /// The thread sends it and ends.
    void fail(const std::string& why, int exit_code) {
        if (!thread_.joinable()) return;
        {
            const std::lock_guard lock(mutex_);
            own_failure_ = why.empty() ? "failed" : why;
            own_code_ = exit_code;
        }
        wake();
        const auto deadline = Clock::now() + std::chrono::seconds(5);
        while (!done_ && Clock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }

    void expect_failure() const {
        const auto deadline = Clock::now() + seconds(settings_.silent_s + 3 * settings_.beat_s);
        while (!done_ && thread_.joinable() && Clock::now() < deadline)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }

  private:
    void wake() const {
        const std::uint64_t one = 1;
        (void)!::write(wake_, &one, sizeof one);
    }

    void run() {
        try {
            while (!finished()) turn();
        } catch (const std::exception& e) {
            leave(e.what(), 1);
        }
        done_ = true;
    }

    bool finished() const { return left_ || (closing_ && said_goodbye_ && (place_.rank != 0 || nobody_left())); }

    bool nobody_left() const {
        for (std::size_t r = 1; r < lines_.size(); ++r) {
            if (!lines_[r].ended) return false;
        }
        return true;
    }

    void turn() {
        const std::vector<std::size_t> with_news = wait_for_news();
        // If we ourselves stood still, the silence of the others means nothing.
        if (seconds_since(turned_) > 3 * settings_.beat_s) {
            for (Line& line : lines_) line.heard = Clock::now();
            standstill_.forget();
        }
        turned_ = Clock::now();
        if (tell_own_failure()) return;
        for (const std::size_t i : with_news) {
            if (!left_) read(i);
        }
        if (left_) return;
        if (Clock::now() >= next_beat_) {
            next_beat_ = Clock::now() + seconds(settings_.beat_s);
            beat();
        }
        if (closing_ && !said_goodbye_) {
            said_goodbye_ = true;
            for (std::size_t i = first_line(); i < lines_.size(); ++i) {
                if (!lines_[i].socket) continue;
                (void)lines_[i].send(beat_packet(progress.now()));
                (void)lines_[i].send(Packet(Packet::Kind::bye));
            }
        }
    }

    std::size_t first_line() const { return place_.rank == 0 ? 1 : 0; }
    int rank_of(std::size_t line) const { return place_.rank == 0 ? static_cast<int>(line) : 0; }

    /// The lines on which something has come.
    std::vector<std::size_t> wait_for_news() const {
        constexpr std::size_t many = 64;
        if (lines_.size() > many) std::this_thread::sleep_for(std::chrono::milliseconds(10));  // several at a time
        std::vector<pollfd> polled{{wake_, POLLIN, 0}};
        std::vector<std::size_t> line_of{0};
        for (std::size_t i = first_line(); i < lines_.size(); ++i) {
            if (!lines_[i].socket) continue;
            polled.push_back({lines_[i].socket.fd(), POLLIN, 0});
            line_of.push_back(i);
        }
        ::poll(polled.data(), polled.size(), static_cast<int>(settings_.beat_s * 1000 / 2));
        std::uint64_t count = 0;
        if (polled[0].revents != 0) (void)!::read(wake_, &count, sizeof count);
        std::vector<std::size_t> with_news;
        for (std::size_t i = 1; i < polled.size(); ++i) {
            if (polled[i].revents != 0) with_news.push_back(line_of[i]);
        }
        return with_news;
    }

    bool has_own_failure() {
        const std::lock_guard lock(mutex_);
        return !own_failure_.empty();
    }

    bool tell_own_failure() {
        if (!has_own_failure()) return false;  // once it is there it stays as it is
        if (place_.rank == 0) {
            tell_all(cat(name_of(0), ": ", own_failure_), own_code_);
        } else {
            (void)lines_[0].send(failure_packet(own_failure_, own_code_));
        }
        if (leaves_process_) end_stopped_neighbours();
        left_ = true;
        return true;
    }

    void tell_all(const std::string& why, int exit_code) {
        for (std::size_t r = 1; r < lines_.size(); ++r) {
            if (lines_[r].socket) (void)lines_[r].send(failure_packet(why, exit_code));
        }
    }

    void read(std::size_t i) {
        Line& line = lines_[i];
        if (!line.socket) return;
        const bool open = line.receive();
        while (std::optional<Packet> p = Packet::take_first(line.received)) {
            line.heard = Clock::now();
            if (p->kind() == Packet::Kind::beat) line.state = read_beat(*p);
            if (p->kind() == Packet::Kind::bye) line.ended = line.state.finished = true;
            if (p->kind() == Packet::Kind::failure) {
                const auto code = static_cast<int>(p->get<std::int64_t>());
                return failed(i, p->get_text(), code);
            }
        }
        if (open) return;
        if (!line.ended) return lost(i, "has ended without a word (killed, or its machine is gone)");
        line.socket.close();
    }

    /// A rank's own words, or rank 0's about one.
    void failed(std::size_t i, const std::string& why, int exit_code) {
        if (place_.rank != 0) return leave(why, exit_code);
        const std::string text = cat(name_of(rank_of(i)), ": ", why);
        lines_[i].ended = true;
        tell_all(text, exit_code);
        leave(text, exit_code);
    }

    void lost(std::size_t i, const std::string& how) {
        const Line& line = lines_[i];
        Progress::State state = line.state;
        state.seconds += seconds_since(line.heard);
        const std::string text = cat(name_of(rank_of(i)), " ", how, "; last seen: ", state.text());
        if (place_.rank == 0) {
            lines_[i].ended = true;
            tell_all(text, 1);
        }
        server_lost_ = place_.rank != 0;
        say_why(text);  // at once: a launcher that saw the same may end this rank any moment
        leave(text, 1);
    }

    void beat() {
        const Packet packet = beat_packet(progress.now());
        for (std::size_t i = first_line(); i < lines_.size() && !left_; ++i) {
            Line& line = lines_[i];
            if (!line.socket) continue;
            (void)line.send(packet);  // a line that is gone shows when it is read
            if (!line.ended && seconds_since(line.heard) > settings_.silent_s)
                lost(i, cat("gives no sign of life for ", static_cast<int>(seconds_since(line.heard)),
                            " s (stopped, or its machine hangs)"));
        }
        if (place_.rank != 0 || left_) return;
        const std::vector<Progress::State> states = all_states();
        if (const std::optional<Misfit> misfit = find_misfit(devices_of(states))) return end_all(text_of(*misfit));
        if (standstill_.found(states, Clock::now()))
            return end_all(cat("collectives out of step: all ranks wait for each other since ", settings_.standstill_s,
                               " s, and nothing is on its way; ", where(states)));
        look_for_stragglers(states);
    }

    std::vector<Progress::State> all_states() {
        std::vector<Progress::State> states{progress.now()};
        for (std::size_t r = 1; r < lines_.size(); ++r) {
            if (!lines_[r].ended && seconds_since(lines_[r].heard) > 3 * settings_.beat_s) standstill_.forget();
            states.push_back(lines_[r].state);
        }
        return states;
    }

    std::string text_of(const Misfit& m) const {
        const std::string which =
            m.upto == m.after + 1 ? cat("call ", m.upto) : cat("one of the calls ", m.after + 1, " to ", m.upto);
        return cat("collectives out of step: two of the ", m.members,
                   " ranks of a group gave their devices different ones, ", which, " of that group; ", name_of(m.one),
                   " is at ", m.one_call, ", ", name_of(m.other), " at ", m.other_call);
    }

    std::string where(const std::vector<Progress::State>& states) const {
        return where_ranks_are(states, [this](int rank) { return name_of(rank); });
    }

    void end_all(const std::string& why) {
        tell_all(why, 1);
        leave(why, 1);
    }

    /// Ranks wait in a collective: who does not come?
    void look_for_stragglers(const std::vector<Progress::State>& states) {
        double longest = 0;
        std::vector<int> away;
        for (int r = 0; r < place_.size; ++r) {
            const Progress::State& s = states[static_cast<std::size_t>(r)];
            if (lines_[static_cast<std::size_t>(r)].ended) continue;
            if (s.waiting) longest = std::max(longest, s.seconds);
            if (!s.waiting) away.push_back(r);
        }
        if (longest < settings_.notice_s) {
            noticed_s_ = 0;
            return;
        }
        const bool over = longest > settings_.timeout_s;
        if (!over && longest < 2 * noticed_s_) return;
        noticed_s_ = longest;
        const std::string since = cat(" since ", static_cast<int>(longest), " s");
        const std::string text = away.empty() ? cat("all ranks are in collectives", since, "; ", where(states))
                                              : cat("ranks wait", since, " for ", straggler_text(states, away));
        if (!over) return settings_.print(text);
        end_all(cat(text, "; --distributed-timeout-minutes is over"));
    }

    std::string straggler_text(const std::vector<Progress::State>& states, const std::vector<int>& away) const {
        return cat(name_of(away[0]), ": ", states[static_cast<std::size_t>(away[0])].text(),
                   away.size() > 1 ? cat(" (also outside: rank ", list_of({away.begin() + 1, away.end()}), ")") : "");
    }

    void leave(const std::string& why, int exit_code) {
        if (left_.exchange(true)) return;
        // Ranks often fail together, and the reason of this one must not be lost because another spoke first.
        const auto deadline = Clock::now() + std::chrono::milliseconds(300);
        while (Clock::now() < deadline) {
            if (has_own_failure()) return;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        settings_.leave(why, exit_code);
    }

    /// Once, and by one rank of each machine, whose log may be all that somebody sees; by all where rank 0 is gone.
    void say_why(const std::string& why) {
        if (!leaves_process_ || said_why_ || (place_.rank != 0 && place_.local_rank != 0 && !server_lost_)) return;
        said_why_ = true;
        last_writes_.push_back(aside([text = cat(name_of(place_.rank), ": leaving: ", one_line(why), "\n")] {
            (void)!::write(STDERR_FILENO, text.data(), text.size());
        }));
    }

    void end_stopped_neighbours() const {
        for (const Peer& peer : peers_) end_if_stopped(peer.process);
    }

    /// Whatever becomes of what is written: a pipe that nobody reads must not keep the process.
    [[noreturn]] void leave_process(const std::string& why, int exit_code) {
        last_writes_.push_back(aside([] {
            pollfd out{STDOUT_FILENO, POLLOUT, 0};
            const bool takes = ::poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0;
            if (takes && ::ftrylockfile(stdout) == 0) {
                std::fflush(stdout);
                ::funlockfile(stdout);
            }
        }));
        say_why(why);
        end_stopped_neighbours();
        const auto deadline = Clock::now() + std::chrono::seconds(2);
        for (const std::future<void>& write : last_writes_) write.wait_until(deadline);
        std::_Exit(exit_code);
    }

    RankPlace place_;
    WatchSettings settings_;
    std::vector<Peer> peers_;
    std::vector<Line> lines_;  ///< rank 0: by rank, its own unused; others: one
    std::thread thread_;
    int wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    std::atomic<bool> closing_{false}, left_{false}, done_{false};
    bool said_goodbye_ = false, server_lost_ = false, leaves_process_ = false, said_why_ = false;
    double noticed_s_ = 0;
    Standstill standstill_;
    Clock::time_point next_beat_ = Clock::now(), turned_ = Clock::now();
    std::vector<std::future<void>> last_writes_;
    std::mutex mutex_;
    std::string own_failure_;
    int own_code_ = 1;
};

Watch::Watch(const RankPlace& place, const WatchSettings& settings) : impl_(std::make_unique<Impl>(place, settings)) {}
Watch::~Watch() = default;
const std::vector<Peer>& Watch::peers() const { return impl_->peers(); }
Progress& Watch::progress() { return impl_->progress; }
std::string Watch::name_of(int rank) const { return impl_->name_of(rank); }
void Watch::fail(const std::string& why, int exit_code) noexcept {
    try {
        impl_->fail(why, exit_code);
    } catch (...) {  // the others will notice that this rank is gone
    }
}
void Watch::expect_failure() const { impl_->expect_failure(); }

}  // namespace tera
