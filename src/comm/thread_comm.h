// Ranks that are threads of one process: for tests and for `teratron verify`.
//
// Sums are taken in the order of the ranks, whoever comes first, so results are the same bits in every run. All ranks
// of a group must call the same collective with the same dtype and size; where they do not, every rank throws and the
// text names both calls. A rank that throws, or ends while others wait for it, ends the wait of all others. When the
// last rank that could do something begins to wait or ends, and no other can go on, all that wait throw, and the text
// says where each of them is. Nothing hangs, and no clock is asked.
#pragma once

#include <functional>

#include "comm/comm.h"

namespace tera {

/// Calls f on `size` threads, each with its own rank of one world, and returns when all have ended. If ranks threw,
/// throws again what the first of them threw, with its rank before the text.
void run_on_threads(int size, const std::function<void(Comm& world)>& f);

}  // namespace tera
