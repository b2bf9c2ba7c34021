// Ranks with a GPU each. Tensors in device memory go over NCCL, along exec's stream; tensors in host memory go over the
// host's communicator, which also tells the members the id by which NCCL finds them.
//
// connect() makes the NCCL communicator of a group; groups that nobody connects cost nothing. Messages from one rank to
// another have a communicator of their own, and a stream: a message is copied and waits there for its receiver, while
// this rank computes on. All are made before anything runs on the GPU: NCCL waits for the device when it makes one, and
// a message on its way would wait for a rank that is waiting here.
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
