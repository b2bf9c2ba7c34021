// x_t = word[token_t] (+ position[pos_t]); tokens and positions are [T] int32, x [T,D].
#pragma once

#include "core/exec.h"

namespace tera::ops {

/// position may be absent.
Tensor embedding(const Exec& exec, ConstTensor word, ConstTensor position, const std::int32_t* tokens,
                 const std::int32_t* positions, std::int64_t T);
/// table_grad[index_t] += dx_t.
void embedding_backward(const Exec& exec, Tensor table_grad, ConstTensor dx, const std::int32_t* indices);

}  // namespace tera::ops
