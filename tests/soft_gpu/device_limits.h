// How large things may be on this GPU: compute capability 9.0, but few multiprocessors.
#pragma once

#include <cstddef>

namespace soft_gpu {

constexpr int multiprocessors = 4;
constexpr int threads_per_block = 1024;
constexpr int threads_per_multiprocessor = 2048;
constexpr int blocks_per_multiprocessor = 32;
constexpr int largest_block[3] = {1024, 1024, 64};
constexpr int largest_grid[3] = {0x7fffffff, 65535, 65535};
constexpr std::size_t shared_by_default = 48 << 10;  ///< of a block that has not asked for more
constexpr std::size_t shared_per_block = 227 << 10;
constexpr std::size_t shared_per_multiprocessor = 228 << 10;
constexpr std::size_t shared_reserved = 1 << 10;  ///< of each block's, for the system

}  // namespace soft_gpu
