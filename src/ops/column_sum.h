// out [N] += Σ over rows of x [T,N], in fixed pieces of rows added in order: the same bits for any number of threads.
#pragma once

#include <initializer_list>
#include <vector>

#include "core/exec.h"

namespace tera::ops::cuda {

void column_sum(const Exec& exec, Tensor out, ConstTensor x);
/// out [N] += Σ over rows of partial [P,N], in order; up to three of one size at once, those without an `out` left out.
struct ColumnSums {
    Tensor out;
    ConstTensor partial;
};
void add_column_sums(const Exec& exec, std::initializer_list<ColumnSums> sums);

}  // namespace tera::ops::cuda

namespace tera::ops::cpu {

void column_sum(const Exec& exec, Tensor out, ConstTensor x);

/// Rows per partial sum: never more than 16 pieces, so that the partial sums stay small beside x.
inline std::int64_t partial_rows(std::int64_t rows) { return std::max<std::int64_t>(32, (rows + 15) / 16); }

/// Runs f(begin, end, partial) over pieces of rows, where partial points at `width` zeroed accumulators of the piece,
/// then adds the partial sums to `out` (length width) in order.
template <class A, class F>
void sum_in_pieces(const Exec& exec, std::int64_t rows, std::int64_t width, A* out, const F& f) {
    ArenaScope scope(*exec.arena);
    std::int64_t grain = partial_rows(rows), pieces = (rows + grain - 1) / grain;
    A* partial = exec.zeros(dtype_of<A>, {pieces, width}).template ptr<A>();
    if (exec.counts()) return;
    parallel_for(exec, rows, grain, [&](std::int64_t b, std::int64_t e) { f(b, e, partial + b / grain * width); });
    for (std::int64_t p = 0; p < pieces; ++p)
        for (std::int64_t i = 0; i < width; ++i) out[i] += partial[p * width + i];
}

}  // namespace tera::ops::cpu
