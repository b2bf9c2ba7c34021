// Ranks that are processes on CPUs. Whoever owns a part of the result gets everybody's share of it and adds them in the
// order of the ranks: the fewest bytes there can be, and the same bits in every run and on every transport.
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
