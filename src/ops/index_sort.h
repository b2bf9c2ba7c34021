// A stable sort of small integers on the GPU, for ops that must meet equal indices together and in order.
#pragma once

#include <cstdint>

#include "core/exec.h"

namespace tera::ops::cuda {

struct SortedIndices {
    const std::int32_t* keys;    ///< [n], rising
    const std::int32_t* places;  ///< [n], where each key stood; equal keys in the order they stood in
};

/// indices [n] in device memory, each in [0, limit). Result and scratch memory lie in exec's arena.
SortedIndices sort_indices(const Exec& exec, const std::int32_t* indices, std::int64_t n, std::int64_t limit);

}  // namespace tera::ops::cuda
