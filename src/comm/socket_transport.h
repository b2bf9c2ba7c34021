// Frames over TCP. Whoever has something to send opens a connection to the receiver; what flows on it goes one way. A
// thread of its own moves the bytes, so a rank can send and compute while the receiver is busy.
#pragma once

#include <memory>

#include "comm/tcp.h"
#include "comm/transport.h"
#include "comm/watch.h"

namespace tera {

/// `listener` is the socket behind this rank's data_port; the watch knows those of the others and outlives this.
/// `patience`: with a rank that takes no connection.
std::unique_ptr<Transport> make_socket_transport(Socket listener, int rank, const Watch& watch,
                                                 Clock::duration patience = std::chrono::seconds(30));

}  // namespace tera
