#include <cmath>
#include <limits>

#include "ops/vec_math.h"
#include "ops/vocab_cross_entropy.h"

namespace tera::ops::cpu {

void vocab_max(const Exec& exec, Tensor top, ConstTensor logits);
void vocab_sums(const Exec& exec, const VocabStats& stats, ConstTensor logits, LocalLabels labels);
void vocab_cross_entropy(const Exec& exec, Tensor loss, Tensor logits, const VocabStats& stats, LocalLabels labels,
                         LossWeight weight);

namespace {

/// Calls f(row number, its logits) for all rows; logits are in the accumulation dtype on the CPU.
template <class A, class Byte, class F>
void each_row(const Exec& exec, const TensorView<Byte>& logits, const F& f) {
    const std::int64_t V = logits.cols();
    auto* z = logits.template ptr<A>();
    parallel_for(exec, logits.rows(), grain_rows(V), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) f(i, z + i * V);
    });
}

/// Column of the label here, or -1.
std::int64_t local_label(LocalLabels labels, std::int64_t i, std::int64_t V) {
    const std::int64_t column = labels.label[i] - labels.first;
    return column >= 0 && column < V ? column : -1;
}

template <class F>
void in_acc_type(DType dtype, const F& f) {
    if (dtype == DType::f64)
        f(double{});
    else
        f(float{});
}

}  // namespace

void vocab_max(const Exec& exec, Tensor top, ConstTensor logits) {
    in_acc_type(logits.dtype, [&](auto zero) {
        using A = decltype(zero);
        each_row<A>(exec, logits, [&](std::int64_t i, const A* z) {
            A most = -std::numeric_limits<A>::infinity();
#pragma omp simd reduction(max : most)
            for (std::int64_t v = 0; v < logits.cols(); ++v) most = z[v] > most ? z[v] : most;
            top.ptr<A>()[i] = most;
        });
    });
}

void vocab_sums(const Exec& exec, const VocabStats& stats, ConstTensor logits, LocalLabels labels) {
    in_acc_type(logits.dtype, [&](auto zero) {
        using A = decltype(zero);
        const std::int64_t V = logits.cols(), n = logits.rows();
        A* sums = stats.sums.ptr<A>();
        each_row<A>(exec, logits, [&](std::int64_t i, const A* z) {
            const A top = stats.top.ptr<A>()[i];
            A sum = 0;
#pragma omp simd reduction(+ : sum)
            for (std::int64_t v = 0; v < V; ++v) sum += fast_exp(z[v] - top);
            const std::int64_t label = local_label(labels, i, V);
            sums[i] = sum;
            sums[n + i] = label < 0 ? A(0) : z[label] - top;
        });
    });
}

void vocab_cross_entropy(const Exec& exec, Tensor loss, Tensor logits, const VocabStats& stats, LocalLabels labels,
                         LossWeight weight) {
    in_acc_type(logits.dtype, [&](auto zero) {
        using A = decltype(zero);
        const std::int64_t V = logits.cols(), n = logits.rows();
        const A *top = stats.top.ptr<A>(), *sums = stats.sums.ptr<A>();
        each_row<A>(exec, logits, [&](std::int64_t i, A* z) {
            loss.ptr<A>()[i] = std::log(sums[i]) - sums[n + i];
            if (!weight.mask) return;
            const A w = static_cast<A>(weight.scale * static_cast<double>(weight.mask[i])), factor = w / sums[i];
#pragma omp simd
            for (std::int64_t v = 0; v < V; ++v) z[v] = fast_exp(z[v] - top[i]) * factor;
            const std::int64_t label = local_label(labels, i, V);
            if (label >= 0) z[label] -= w;
        });
    });
}

}  // namespace tera::ops::cpu
