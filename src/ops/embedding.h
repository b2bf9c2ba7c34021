// x_t = word[token_t] (+ position[pos_t]); tokens and positions are [T] int32, x [T,D].
#pragma once

#include "core/exec.h"

namespace tera::ops {

/// position may be absent.
Tensor embedding(const Exec& exec, ConstTensor word, ConstTensor position, const std::int32_t* tokens,
                 const std::int32_t* positions, std::int64_t T);

/// A table cut by rows over ranks: a tensor holds those from `first` on.
struct TableRows {
    std::int64_t first = 0;
    std::int64_t total = 0;  ///< of the whole table; 0: the tensor is all of it
};
/// x_t = table[token_t], zero for tokens whose row is elsewhere: over all ranks it sums up to the whole table's.
Tensor embedding_part(const Exec& exec, ConstTensor table, TableRows rows, const std::int32_t* tokens, std::int64_t T);
/// table_grad[index_t] += dx_t, where the row is here.
void embedding_backward(const Exec& exec, Tensor table_grad, ConstTensor dx, const std::int32_t* indices,
                        TableRows rows = {});

}  // namespace tera::ops
