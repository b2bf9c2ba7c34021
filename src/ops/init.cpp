#include "ops/init.h"

#include "ops/dispatch.h"
#include "ops/init_values.h"

namespace tera::ops {

TERA_BACKENDS(void fill_constant(const Exec& exec, Tensor out, double value))
TERA_BACKENDS(void fill_random(const Exec& exec, Tensor out, const RandomFill& fill))

namespace cpu {

void fill_constant(const Exec& exec, Tensor out, double value) {
    dispatch_float(out.dtype, [&](auto zero) {
        using T = decltype(zero);
        T* p = out.ptr<T>();
        auto v = static_cast<T>(static_cast<float>(value));
        parallel_for(exec, out.numel(), 1 << 16, [&](std::int64_t b, std::int64_t e) { std::fill(p + b, p + e, v); });
    });
}

void fill_random(const Exec& exec, Tensor out, const RandomFill& fill) {
    dispatch_float(out.dtype, [&](auto zero) {
        using T = decltype(zero);
        T* p = out.ptr<T>();
        std::int64_t n = out.numel();
        parallel_for(exec, (n + 3) / 4, 1 << 13, [&](std::int64_t g0, std::int64_t g1) {
            for (std::int64_t g = g0; g < g1; ++g) {
                F32x4 values = random_values(fill, static_cast<std::uint64_t>(g));
                for (std::int64_t i = 4 * g, lane = 0; lane < 4 && i < n; ++i, ++lane)
                    p[i] = static_cast<T>(values.v[lane]);
            }
        });
    });
}

}  // namespace cpu

void fill_constant(const Exec& exec, Tensor out, double value) { TERA_DISPATCH(exec, fill_constant(exec, out, value)); }

void fill_random(const Exec& exec, Tensor out, const RandomFill& fill) {
    TERA_DISPATCH(exec, fill_random(exec, out, fill));
}

}  // namespace tera::ops
