#include "comm/process_world.h"

#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "comm/socket_transport.h"
#include "core/error.h"

namespace tera {
namespace {

/// MPI waits for all ranks when it begins, for ever, and tells nobody. As long as this lives a thread says that we
/// wait, and ends the process when the time is over.
class StartOfMpi {
  public:
    StartOfMpi(const RankPlace& place, const WatchSettings& settings)
        : place_(place), settings_(settings), thread_([this] { run(); }) {}
    ~StartOfMpi() {
        {
            const std::lock_guard lock(mutex_);
            started_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
    StartOfMpi(const StartOfMpi&) = delete;
    StartOfMpi& operator=(const StartOfMpi&) = delete;

  private:
    void run() {
        const auto deadline = Clock::now() + seconds(settings_.timeout_s);
        const std::string name = cat("rank ", place_.rank, " (", host_name(), "): ");
        Notices notices(settings_.patience_s);
        std::unique_lock lock(mutex_);
        while (!changed_.wait_until(lock, std::min(deadline, notices.next()), [&] { return started_; })) {
            if (Clock::now() >= deadline) {
                std::fprintf(stderr,
                             "%sMPI did not begin within %g s: mpirun started %d ranks, and not all of them came to "
                             "MPI_Init; see whether one hangs, or raise --distributed-timeout-minutes\n",
                             name.c_str(), settings_.timeout_s, place_.size);
                std::_Exit(2);
            }
            if (notices.due())
                settings_.print(cat(name, "waiting", notices.since(), " in MPI_Init for all ", place_.size, " ranks"));
        }
    }

    const RankPlace& place_;
    const WatchSettings& settings_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool started_ = false;
    std::thread thread_;
};

/// Where rank 0 can be found, told by MPI.
void agree_on_meeting_point(MpiTransport& mpi, RankPlace& place) {
    struct {
        char address[248];
        std::int64_t port;
    } told{};
    if (place.rank == 0) {
        int port = 0;
        Socket listener = listen_on(port);
        const std::string address = mpi.one_machine() ? "127.0.0.1" : host_name();
        std::strncpy(told.address, address.c_str(), sizeof told.address - 1);
        told.port = port;
        place.listener = listener.release();  // whoever gathers the ranks closes it
    }
    mpi.broadcast(&told, sizeof told);
    place.address = told.address;
    place.port = static_cast<int>(told.port);
}

}  // namespace

ProcessWorld::ProcessWorld(const RankPlace& place, WatchSettings settings) : place_(place) {
    if (place.size == 1) {
        watch_ = std::make_unique<Watch>(place_, settings);
        comm_ = make_self_comm();
        return;
    }
    raise_limit_of_files();
    const bool by_mpi = place.launcher == Launcher::open_mpi || place.launcher == Launcher::mpich;
    if (by_mpi && place.address.empty()) {
        {
            const StartOfMpi start(place_, settings);
            std::unique_ptr<MpiTransport> mpi = open_mpi(place.size);
            mpi_ = mpi.get();
            transport_ = std::move(mpi);
            agree_on_meeting_point(*mpi_, place_);
        }
        watch_ = std::make_unique<Watch>(place_, settings);
    } else {
        Socket listener = listen_on(settings.data_port);
        watch_ = std::make_unique<Watch>(place_, settings);
        transport_ = make_socket_transport(std::move(listener), place.rank, *watch_);
    }
    watch_->progress().count(transport_->bytes());
    comm_ = make_process_comm(*transport_, *watch_);
}

ProcessWorld::~ProcessWorld() {
    if (std::uncaught_exceptions() > exceptions_) fail("it ends with an error");
    watch_->progress().finish();
    comm_.reset();
    transport_.reset();
}

void ProcessWorld::fail(const std::string& why, int exit_code) noexcept {
    if (mpi_ != nullptr) mpi_->abandon();
    watch_->fail(why, exit_code);
}

}  // namespace tera
