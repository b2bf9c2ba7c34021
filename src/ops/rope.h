// Rotary position embedding, in place on the query and key heads of qkv [T,(H+2G)K].
// The first r of K dimensions are rotated by angle pos·f_i: (a, b) -> (a cos - b sin, b cos + a sin) for the pair
// (a, b) = (x_i, x_{i+r/2}), or (x_{2i}, x_{2i+1}) when interleaved. The inverse rotation is the transpose.
#pragma once

#include "core/exec.h"

namespace tera::ops {

struct RopeTable {
    Tensor cos, sin;  ///< [positions, r/2], accumulation dtype
    bool interleaved = false;
};

struct RopeHeads {
    std::int64_t rotated;   ///< heads to rotate: H + G
    std::int64_t head_dim;  ///< K
};

/// positions [T]: row of the table for every token.
void rope(const Exec& exec, Tensor qkv, const RopeTable& table, const std::int32_t* positions, RopeHeads heads,
          bool inverse);

}  // namespace tera::ops
