#include "ops/masked_sum.h"

#include "ops/dispatch.h"

namespace tera::ops {

TERA_BACKENDS(void add_masked_sum(const Exec& exec, Tensor sums, ConstTensor loss, const float* mask))

namespace cpu {

void add_masked_sum(const Exec&, Tensor sums, ConstTensor loss, const float* mask) {
    double total = 0, weight = 0;
    dispatch_float(loss.dtype, [&](auto zero) {
        using A = decltype(zero);
        const A* l = loss.ptr<A>();
        for (std::int64_t t = 0; t < loss.numel(); ++t) {
            auto m = static_cast<double>(mask[t]);
            if (m != 0) total += m * static_cast<double>(static_cast<acc_t<A>>(l[t]));
            weight += m;
        }
    });
    sums.ptr<double>()[0] += total;
    sums.ptr<double>()[1] += weight;
}

}  // namespace cpu

void add_masked_sum(const Exec& exec, Tensor sums, ConstTensor loss, const float* mask) {
    TERA_CHECK(sums.dtype == DType::f64 && sums.numel() == 2, "sums ", sums.shape);
    TERA_DISPATCH(exec, add_masked_sum(exec, sums, loss, mask));
}

}  // namespace tera::ops
