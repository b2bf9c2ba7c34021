// Streams of a GPU that has done everything when a call returns: they have to exist, no more.
#pragma once

#include <driver_types.h>

namespace soft_gpu {

/// Whether it was made and not destroyed, or is a default one.
bool is_stream(cudaStream_t stream);

}  // namespace soft_gpu
