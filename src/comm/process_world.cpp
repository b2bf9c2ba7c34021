#include "comm/process_world.h"

#include "comm/socket_transport.h"

namespace tera {

ProcessWorld::ProcessWorld(const RankPlace& place, WatchSettings settings) : place_(place) {
    if (place.size == 1) {
        watch_ = std::make_unique<Watch>(place, settings);
        comm_ = make_self_comm();
        return;
    }
    Socket listener = listen_on(settings.data_port);
    watch_ = std::make_unique<Watch>(place, settings);
    transport_ = make_socket_transport(std::move(listener), place.rank, *watch_);
    comm_ = make_process_comm(*transport_, *watch_);
}

ProcessWorld::~ProcessWorld() {
    comm_.reset();
    transport_.reset();
}

}  // namespace tera
