// Dropout and the residual connection: out = x + dropout(y + bias).
// An element of sample b at place s of the whole sequence, feature d is dropped by a function of (site, sample number,
// s D + d), so the mask is never stored and does not depend on the layout.
#pragma once

#include "core/exec.h"
#include "core/rng.h"

namespace tera::ops {

/// Where the rows that a rank holds stand in the whole sequence: two runs of it, one after the other, of which the rank
/// holds the rows from `offset` on.
struct SequencePiece {
    std::int64_t offset = 0;
    std::int64_t run = std::int64_t{1} << 62;  ///< length of the first run
    std::int64_t first = 0, second = 0;        ///< where the runs begin

    TERA_HOST_DEVICE std::int64_t at(std::int64_t s) const {
        s += offset;
        return s < run ? first + s : second + (s - run);
    }
};

struct Dropout {
    double p = 0;
    DropoutSite site = {};
    std::int64_t B = 1;
    const std::int64_t* sample = nullptr;  ///< [B]
    SequencePiece piece = {};
};

/// What a branch is added to: x + dropout(branch).
struct Residual {
    ConstTensor x;
    Dropout dropout = {};
};

/// x, y [T,D] with rows s*B + b; x may be absent (embedding dropout), and so may bias [D].
Tensor dropout_add(const Exec& exec, ConstTensor x, ConstTensor y, ConstTensor bias, const Dropout& dropout);
/// Gradient by y: dy masked and scaled; dout itself when p is 0.
ConstTensor dropout_backward(const Exec& exec, ConstTensor dout, const Dropout& dropout);

}  // namespace tera::ops
