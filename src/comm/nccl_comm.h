// Ranks with a GPU each. Tensors in device memory go over NCCL, along exec's stream; tensors in host memory go over the
// host's communicator, which also tells the members the id by which NCCL finds them.
//
// An NCCL communicator is made when it is first needed: all its members come to the same call, and axes that nobody
// talks over cost nothing. Each rank that messages are sent to has one of its own, and a stream: a message is copied
// and waits there for its receiver, while this rank computes on.
//
// NCCL is loaded when it is first needed; a program with one GPU runs without it.
#pragma once

#include "comm/comm.h"
#include "comm/progress.h"
#include "core/engine.h"

namespace tera {

/// The world, of the host's ranks. host, engine and progress must outlive it and its groups; progress may be null.
/// UsageError if the build or this machine has no NCCL.
std::unique_ptr<Comm> make_nccl_comm(Comm& host, const Engine& engine, Progress* progress);

}  // namespace tera
