// The CUDA half of core/readback.h; no CUDA header is needed to include this.
#pragma once

#include <memory>

#include "core/readback.h"

namespace tera {

std::unique_ptr<Readback::Target> make_cuda_readback(std::size_t bytes, Gpu& gpu);

}  // namespace tera
