#include <cmath>
#include <limits>

#include "ops/cross_entropy.h"
#include "ops/vec_math.h"

namespace tera::ops::cpu {

void cross_entropy(const Exec& exec, Tensor loss, Tensor logits, const std::int32_t* labels, const float* mask,
                   double scale);

namespace {

template <class A>
A row_loss(A* z, std::int64_t V, std::int32_t label, bool gradient, A weight) {
    A top = -std::numeric_limits<A>::infinity();
#pragma omp simd reduction(max : top)
    for (std::int64_t i = 0; i < V; ++i) top = z[i] > top ? z[i] : top;
    A target = z[label], sum = 0;
    if (!gradient) {
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = 0; i < V; ++i) sum += fast_exp(z[i] - top);
    } else {
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = 0; i < V; ++i) {
            A e = fast_exp(z[i] - top);
            z[i] = e;
            sum += e;
        }
        A factor = weight / sum;
        for (std::int64_t i = 0; i < V; ++i) z[i] *= factor;
        z[label] -= weight;
    }
    return std::log(sum) + (top - target);  // in this order: large logits cancel exactly
}

}  // namespace

void cross_entropy(const Exec& exec, Tensor loss, Tensor logits, const std::int32_t* labels, const float* mask,
                   double scale) {
    dispatch_float(logits.dtype, [&](auto zero) {
        using A = acc_t<decltype(zero)>;
        std::int64_t V = logits.cols();
        A* z = logits.ptr<A>();
        A* out = loss.ptr<A>();
        parallel_for(exec, logits.rows(), grain_rows(V), [&](std::int64_t r0, std::int64_t r1) {
            for (std::int64_t r = r0; r < r1; ++r) {
                TERA_CHECK(labels[r] >= 0 && labels[r] < V, "label ", labels[r], " of ", V);
                A weight = mask ? static_cast<A>(scale * static_cast<double>(mask[r])) : A(0);
                out[r] = row_loss(z + r * V, V, labels[r], mask != nullptr, weight);
            }
        });
    });
}

}  // namespace tera::ops::cpu
