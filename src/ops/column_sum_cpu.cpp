#include "ops/column_sum.h"

namespace tera::ops::cpu {

void column_sum(const Exec& exec, Tensor out, ConstTensor x) {
    dispatch_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        std::int64_t n = x.cols();
        const T* in = x.ptr<T>();
        sum_in_pieces<A>(exec, x.rows(), n, out.ptr<A>(), [&](std::int64_t r0, std::int64_t r1, A* partial) {
            for (std::int64_t r = r0; r < r1; ++r)
                for (std::int64_t i = 0; i < n; ++i) partial[i] += static_cast<A>(in[r * n + i]);
        });
    });
}

}  // namespace tera::ops::cpu
