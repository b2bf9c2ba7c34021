// What nvcc packs into an object file: the same kernels as PTX and as machine code.
#pragma once

#include <string>

namespace soft_gpu {

/// The PTX for our GPU in what __cudaRegisterFatBinary gets. A Fault if there is none that can be read.
std::string ptx_of(const void* wrapper);

}  // namespace soft_gpu
