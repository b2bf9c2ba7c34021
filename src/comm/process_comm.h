// Ranks that are processes on CPUs. Whoever owns a part of the result gets everybody's share of it and adds them in the
// order of the ranks: the fewest bytes there can be, and the same bits in every run and on every transport. What is
// small everybody gets whole, in as many rounds as log2 of the ranks: large runs would not have sockets enough for
// everybody's connection to everybody.
//
// Every frame says which collective it belongs to; ranks that are out of step find out at the first frame, and the
// error names both calls.
#pragma once

#include "comm/comm.h"
#include "comm/transport.h"
#include "comm/watch.h"

namespace tera {

/// The world; transport and watch must outlive it and its groups.
std::unique_ptr<Comm> make_process_comm(Transport& transport, Watch& watch);

}  // namespace tera
