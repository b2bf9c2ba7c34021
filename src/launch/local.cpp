#include "launch/local.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "comm/rendezvous.h"
#include "comm/tcp.h"
#include "core/error.h"
#include "launch/labelled_lines.h"
#include "launch/patient_output.h"

namespace tera {
namespace {

/// The end of a rank, and what is passed on to all of them.
constexpr int watched[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

struct Stream {
    int fd = -1;
    LabelledLines lines;
};

struct Child {
    int rank = 0;
    pid_t pid = -1;
    Stream out, err;
    bool running = true, stopped = false;
    Clock::time_point stopped_at{};
    std::optional<int> end;  ///< its status, until that is told
};

/// Signals as something to poll for. By a handler, not by a blocked mask and a signalfd: a library's thread that does
/// not block a signal (the GPU driver has some) would take it, and a rank's end would never be seen.
class SignalPipe {
  public:
    SignalPipe() {
        TERA_CHECK(::pipe2(ends_, O_CLOEXEC | O_NONBLOCK) == 0, "pipe2: ", std::strerror(errno));
        TERA_CHECK(write_end.exchange(ends_[1]) < 0, "two launchers in one process");
        struct sigaction action {};
        action.sa_handler = [](int signal) {
            const int errno_before = errno;
            const auto number = static_cast<unsigned char>(signal);
            (void)!::write(write_end, &number, 1);
            errno = errno_before;
        };
        action.sa_flags = SA_RESTART;
        for (std::size_t i = 0; i < before_.size(); ++i) {
            ::sigaction(watched[i], &action, &before_[i]);
            const bool ignored = before_[i].sa_handler == SIG_IGN && watched[i] != SIGCHLD;  // as nohup does
            if (ignored) ::sigaction(watched[i], &before_[i], nullptr);
        }
    }
    ~SignalPipe() {
        for (std::size_t i = 0; i < before_.size(); ++i) ::sigaction(watched[i], &before_[i], nullptr);
        write_end = -1;
        for (const int end : ends_) ::close(end);
    }
    SignalPipe(const SignalPipe&) = delete;
    SignalPipe& operator=(const SignalPipe&) = delete;

    int fd() const { return ends_[0]; }
    /// The next, or 0.
    int take() const {
        unsigned char number = 0;
        return ::read(ends_[0], &number, 1) == 1 ? number : 0;
    }

  private:
    static inline std::atomic<int> write_end{-1};
    int ends_[2] = {-1, -1};
    std::array<struct sigaction, std::size(watched)> before_{};
};

void set_variable(const char* name, const std::string& value, bool replace = true) {
    ::setenv(name, value.c_str(), replace);
}

/// As after 2>&1.
bool same_file(int a, int b) {
    struct stat of_a {
    }, of_b{};
    return ::fstat(a, &of_a) == 0 && ::fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

class LocalRanks {
  public:
    explicit LocalRanks(const LocalLaunch& launch) : launch_(launch) {
        if (launch_.port == 0) listener_ = listen_on(launch_.port);
    }
    ~LocalRanks() {
        for (Child& child : children_) {
            if (child.running) ::kill(child.pid, SIGKILL), ::waitpid(child.pid, nullptr, 0);
        }
    }

    int run() {
        for (int r = 0; r < launch_.ranks; ++r) start(r);
        while (anyone_left() || !out_.done() || !err_.done()) {
            wait_for_news();
            if (failed_ && !killed_ && Clock::now() >= kill_at_) kill_the_rest();
            if (!failed_) give_up_stopped();
        }
        return code_;
    }

  private:
    void start(int local_rank) {
        int out[2], err[2];
        if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0)
            usage_error("cannot start ", launch_.ranks, " ranks: ", std::strerror(errno),
                        "; start fewer, or raise ulimit -n");
        const pid_t parent = ::getpid(), pid = ::fork();
        if (pid < 0)
            usage_error("cannot start rank ", local_rank, ": ", std::strerror(errno),
                        "; start fewer, or raise ulimit -u");
        if (pid == 0) become_rank(local_rank, out[1], err[1], parent);
        ::close(out[1]);
        ::close(err[1]);
        listener_.close();  // rank 0, the first, has it
        Child child;
        child.rank = launch_.first_rank + local_rank;
        child.pid = pid;
        const std::string label = launch_.labels ? label_of(child.rank) : "";
        child.out = {out[0], LabelledLines(label, out_)};
        child.err = {err[0], LabelledLines(label, errors(), complaints_, child.rank)};
        children_.push_back(std::move(child));
    }

    /// As wide as the largest rank, so that lines stand one below the other.
    std::string label_of(int rank) const {
        const std::string text = std::to_string(rank), widest = std::to_string(launch_.world - 1);
        return std::string(widest.size() - text.size(), ' ') + text + ": ";
    }

    [[noreturn]] void become_rank(int local_rank, int out, int err, pid_t parent) const {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) std::_Exit(1);  // it died before we asked
        const int nothing = ::open("/dev/null", O_RDONLY);
        ::dup2(nothing, STDIN_FILENO);
        ::dup2(out, STDOUT_FILENO);
        ::dup2(err, STDERR_FILENO);
        for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) ::unsetenv(name);  // these ranks are ours
        set_variable("RANK", std::to_string(launch_.first_rank + local_rank));
        set_variable("WORLD_SIZE", std::to_string(launch_.world));
        set_variable("LOCAL_RANK", std::to_string(local_rank));
        set_variable("LOCAL_WORLD_SIZE", std::to_string(launch_.ranks));
        set_variable("MASTER_ADDR", launch_.address);
        set_variable("MASTER_PORT", std::to_string(launch_.port));
        if (launch_.world == launch_.ranks) set_variable("TERATRON_JOB", job_);
        if (listener_) {
            ::fcntl(listener_.fd(), F_SETFD, 0);
            set_variable("TERATRON_LISTENER", std::to_string(listener_.fd()));
        } else {
            ::unsetenv("TERATRON_LISTENER");
        }
        if (launch_.share_gpus > 0) {
            set_variable("NCCL_HOSTID", std::to_string(launch_.first_rank + local_rank));
            if (launch_.world == launch_.ranks) set_variable("NCCL_SOCKET_IFNAME", "lo", false);
            set_variable("CUDA_VISIBLE_DEVICES", std::to_string(local_rank % launch_.share_gpus), false);
        }
        const auto cores = static_cast<int>(std::thread::hardware_concurrency());
        set_variable("OMP_NUM_THREADS", std::to_string(std::max(1, cores / launch_.ranks)), false);
        std::vector<char*> words;
        for (const std::string& word : launch_.command) words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        ::execvp(words[0], words.data());
        std::fprintf(stderr, "cannot run %s: %s\n", words[0], std::strerror(errno));
        std::_Exit(127);
    }

    bool anyone_left() const {
        return std::any_of(children_.begin(), children_.end(),
                           [](const Child& c) { return c.running || c.out.fd >= 0 || c.err.fd >= 0; });
    }

    void wait_for_news() {
        std::vector<pollfd> polled{
            {signals_.fd(), POLLIN, 0}, {out_.news_fd(), POLLIN, 0}, {err_.news_fd(), POLLIN, 0}};
        std::vector<Stream*> streams(polled.size());
        for (Child& child : children_) {
            for (Stream* s : {&child.out, &child.err}) {
                if (s->fd < 0 || !s->lines.output().ready()) continue;
                polled.push_back({s->fd, POLLIN, 0});
                streams.push_back(s);
            }
        }
        const bool stopped = std::any_of(children_.begin(), children_.end(), [](const Child& c) { return c.stopped; });
        ::poll(polled.data(), polled.size(), leaving_ ? 50 : stopped ? 100 : -1);
        for (PatientOutput* output : {&out_, &err_}) output->clear_news();
        for (std::size_t i = 0; i < polled.size(); ++i) {
            if (streams[i] != nullptr && polled[i].revents != 0) read(*streams[i]);
        }
        if (polled[0].revents != 0) take_signals();
    }

    void read(Stream& stream) {
        char buffer[65536];
        const ssize_t n = ::read(stream.fd, buffer, sizeof buffer);
        if (n > 0) return stream.lines.add(buffer, static_cast<std::size_t>(n));
        if (n < 0 && errno == EINTR) return;
        stream.lines.finish();
        ::close(stream.fd);
        stream.fd = -1;
    }

    void take_signals() {
        for (int signal = signals_.take(); signal != 0; signal = signals_.take()) {
            if (signal == SIGCHLD) continue;
            if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) leave();
            for (const Child& child : children_) {
                if (child.running) ::kill(child.pid, signal);
            }
        }
        for (Child& child : children_) look_at(child);  // before anything is said of one of them
        for (Child& child : children_) {
            if (child.end) ended(child, *std::exchange(child.end, std::nullopt));
        }
    }

    static void look_at(Child& child) {
        for (int status = 0; child.running && !child.end &&
                             ::waitpid(child.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == child.pid;) {
            if (WIFSTOPPED(status) && !child.stopped) child.stopped_at = Clock::now();
            child.stopped = WIFSTOPPED(status);
            if (WIFEXITED(status) || WIFSIGNALED(status)) child.end = status;
        }
    }

    void ended(Child& child, int status) {
        child.running = false;
        // A grandchild may hold the pipe open for ever; what the rank itself wrote is there.
        for (Stream* s : {&child.out, &child.err}) {
            if (s->fd < 0) continue;
            ::fcntl(s->fd, F_SETFL, O_NONBLOCK);
            while (s->fd >= 0) {
                pollfd p{s->fd, POLLIN, 0};
                if (::poll(&p, 1, 0) <= 0) break;
                read(*s);
            }
            if (s->fd >= 0) s->lines.finish(), ::close(s->fd), s->fd = -1;
        }
        const bool by_signal = WIFSIGNALED(status);
        const int code = by_signal ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        if (code == 0 || failed_) return;
        failed_ = true;
        leave();
        code_ = code;
        kill_at_ =
            Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(launch_.grace_s));
        say(cat("rank ", child.rank,
                by_signal ? cat(" was killed by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")")
                          : cat(" ended with exit code ", code),
                stopped_text()));
    }

    /// One that is stopped for long while others run: they would wait for it.
    void give_up_stopped() {
        const auto goes_on = [](const Child& c) { return c.running && !c.stopped; };
        if (std::none_of(children_.begin(), children_.end(), goes_on)) {  // the run is suspended
            for (Child& child : children_) child.stopped_at = Clock::now();
            return;
        }
        const auto since = Clock::now() - std::chrono::duration_cast<Clock::duration>(
                                              std::chrono::duration<double>(launch_.stopped_s));
        for (const Child& child : children_) {
            if (!child.running || !child.stopped || child.stopped_at > since) continue;
            failed_ = true;
            leave();
            code_ = 1;
            say(cat("rank ", child.rank, " is stopped by a signal since ", launch_.stopped_s,
                    " s, and others wait for it"));
            return kill_the_rest();
        }
    }

    /// Whoever is stopped fails nothing itself: the others give it up.
    std::string stopped_text() const {
        std::string ranks;
        for (const Child& child : children_) {
            if (child.running && child.stopped) ranks += cat(ranks.empty() ? "" : ", ", child.rank);
        }
        return ranks.empty() ? "" : cat("; stopped by a signal: rank ", ranks);
    }

    void kill_the_rest() {
        killed_ = true;
        std::string ranks;
        for (const Child& child : children_) {
            if (!child.running) continue;
            ranks += cat(ranks.empty() ? "" : ", ", child.rank);
            ::kill(child.pid, SIGKILL);  // also ends one that is stopped
        }
        if (!ranks.empty()) say(cat("killing what is left: rank ", ranks));
    }

    /// From now on no reader holds us up.
    void leave() {
        leaving_ = true;
        for (PatientOutput* output : {&out_, &err_}) output->about_to_leave();
    }

    void say(const std::string& text) { errors().add("launch: " + text + "\n"); }

    /// Lines to one file stay in order.
    PatientOutput& errors() { return one_file_ ? out_ : err_; }

    LocalLaunch launch_;
    const std::string job_ = cat("launch local, process ", ::getpid(), " on ", host_name());
    SignalPipe signals_;
    Socket listener_;  ///< of the port we chose
    std::vector<Child> children_;
    PatientOutput out_{STDOUT_FILENO, launch_.waiting_bytes}, err_{STDERR_FILENO, launch_.waiting_bytes};
    Complaints complaints_;
    const bool one_file_ = same_file(STDOUT_FILENO, STDERR_FILENO);
    bool failed_ = false, killed_ = false, leaving_ = false;
    int code_ = 0;
    Clock::time_point kill_at_{};
};

}  // namespace

int launch_local(const LocalLaunch& launch) { return LocalRanks(launch).run(); }

}  // namespace tera
