#include "comm/process_world.h"

#include <cstring>
#include <exception>

#include "comm/socket_transport.h"
#include "core/error.h"

namespace tera {
namespace {

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
    const bool by_mpi = place.launcher == Launcher::open_mpi || place.launcher == Launcher::mpich;
    if (by_mpi && place.address.empty()) {
        std::unique_ptr<MpiTransport> mpi = open_mpi(place.size);
        mpi_ = mpi.get();
        agree_on_meeting_point(*mpi_, place_);
        transport_ = std::move(mpi);
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
