#include "ops/masked_sum.h"

#include "ops/dispatch.h"

namespace tera::ops {

TERA_BACKENDS(void masked_sum(const Exec& exec, MaskedSum& sum, ConstTensor loss, const float* mask))

namespace cpu {

void masked_sum(const Exec&, MaskedSum& sum, ConstTensor loss, const float* mask) {
    dispatch_float(loss.dtype, [&](auto zero) {
        using A = decltype(zero);
        const A* l = loss.ptr<A>();
        for (std::int64_t t = 0; t < loss.numel(); ++t) {
            auto m = static_cast<double>(mask[t]);
            if (m != 0) sum.loss += m * static_cast<double>(static_cast<acc_t<A>>(l[t]));
            sum.weight += m;
        }
    });
}

}  // namespace cpu

MaskedSum masked_sum(const Exec& exec, ConstTensor loss, const float* mask) {
    MaskedSum sum;
    TERA_DISPATCH(exec, masked_sum(exec, sum, loss, mask));
    return sum;
}

}  // namespace tera::ops
