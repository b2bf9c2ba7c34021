// Streams of a GPU that has done everything when a call returns: they exist, and say what comes after what.
#pragma once

#include <driver_types.h>

#include "soft_gpu/stream_order.h"

namespace soft_gpu {

/// Whether it was made and not destroyed, or is a default one.
bool is_stream(cudaStream_t stream);
/// Of one that is.
StreamOrder::Queue queue_of(cudaStream_t stream);

}  // namespace soft_gpu
