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
        const std::int64_t run = fill.run;
        parallel_for(exec, n, 1 << 15, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end;) {
                const std::int64_t at = i + fill.skip, r = at / run, last = std::min(end, (r + 1) * run - fill.skip);
                for (std::int64_t index = fill.first + r * fill.stride + at % run; i < last;) {
                    F32x4 values = random_values(fill, static_cast<std::uint64_t>(index / 4));
                    for (std::int64_t lane = index % 4; lane < 4 && i < last; ++lane, ++index, ++i)
                        p[i] = static_cast<T>(values.v[lane]);
                }
            }
        });
    });
}

}  // namespace cpu

void fill_constant(const Exec& exec, Tensor out, double value) { TERA_DISPATCH(exec, fill_constant(exec, out, value)); }

void fill_random(const Exec& exec, Tensor out, const RandomFill& fill) {
    RandomFill known = fill;
    if (known.run == 0) known.run = known.skip + out.numel();
    TERA_DISPATCH(exec, fill_random(exec, out, known));
}

}  // namespace tera::ops
