// Dropout and the residual connection: out = x + dropout(y + bias).
// An element of sample b at place s of the whole sequence, feature d is dropped by a function of (site, sample number,
// s D + d), so the mask is never stored and does not depend on the layout.
#pragma once

#include "core/exec.h"
#include "core/rng.h"
#include "ops/sequence_piece.h"

namespace tera::ops {

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
