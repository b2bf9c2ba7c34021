#include "ops/rope.h"

namespace tera::ops::cpu {

void rope(const Exec& exec, Tensor qkv, const RopeTable& table, const std::int32_t* positions, RopeHeads heads,
          bool inverse) {
    dispatch_float(qkv.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        std::int64_t width = qkv.cols(), half = table.cos.cols(), rows = table.cos.rows();
        const A *cos = table.cos.ptr<A>(), *sin = table.sin.ptr<A>();
        // Element j of the pair is at first(i) and first(i) + step.
        std::int64_t scale = table.interleaved ? 2 : 1, step = table.interleaved ? 1 : half;
        A sign = inverse ? A(-1) : A(1);
        T* data = qkv.ptr<T>();
        parallel_for(exec, qkv.rows(), grain_rows(width), [&](std::int64_t t0, std::int64_t t1) {
            for (std::int64_t t = t0; t < t1; ++t) {
                TERA_CHECK(positions[t] >= 0 && positions[t] < rows, "position ", positions[t], " of ", rows);
                const A *c = cos + positions[t] * half, *s = sin + positions[t] * half;
                for (std::int64_t h = 0; h < heads.rotated; ++h) {
                    T* x = data + t * width + h * heads.head_dim;
#pragma omp simd
                    for (std::int64_t i = 0; i < half; ++i) {
                        A a = A(x[i * scale]), b = A(x[i * scale + step]), sn = sign * s[i];
                        x[i * scale] = T(a * c[i] - b * sn);
                        x[i * scale + step] = T(b * c[i] + a * sn);
                    }
                }
            }
        });
    });
}

}  // namespace tera::ops::cpu
