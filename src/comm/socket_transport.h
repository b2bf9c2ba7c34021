// Frames over TCP. Whoever has something to send opens a connection to the receiver; what flows on it goes one way. A
// thread of its own moves the bytes, so a rank can send and compute while the receiver is busy.
#pragma once

#include <memory>

#include "comm/tcp.h"
#include "comm/transport.h"
#include "comm/watch.h"

namespace tera {

/// What a connection begins with. Whoever does not know the receiver's token is no rank of this run.
struct Greeting {
    std::uint64_t magic = 0x7465726174726f64;
    std::int64_t token = 0;  ///< the receiver's
    std::uint64_t rank = 0;  ///< the sender
};

/// `listener` is the socket behind this rank's data_port; the watch knows those of the others and outlives this.
/// `patience`: with a rank that takes no connection.
std::unique_ptr<Transport> make_socket_transport(Socket listener, int rank, const Watch& watch,
                                                 Clock::duration patience = std::chrono::seconds(30));

}  // namespace tera
