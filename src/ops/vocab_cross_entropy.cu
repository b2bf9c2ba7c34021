// One block per token, the row read once in each step.
#include "ops/cuda_types.cuh"
#include "ops/vocab_cross_entropy.h"

namespace tera::ops::cuda {
namespace {

constexpr int threads = 512;

template <class T, class A>
__global__ void __launch_bounds__(threads) cross_entropy_max(A* top, const T* logits, std::int64_t V) {
    const T* z = logits + blockIdx.x * V;
    A most = A(-3.0e38);
    for (std::int64_t v = threadIdx.x; v < V; v += threads) most = widen(z[v]) > most ? widen(z[v]) : most;
    most = block_reduce(most, Max{});
    if (threadIdx.x == 0) top[blockIdx.x] = most;
}

template <class T, class A>
__global__ void __launch_bounds__(threads)
    cross_entropy_sums(A* sums, const A* tops, const T* logits, LocalLabels labels, std::int64_t V) {
    const T* z = logits + blockIdx.x * V;
    const A top = tops[blockIdx.x];
    A sum = 0;
    for (std::int64_t v = threadIdx.x; v < V; v += threads) sum += exp_of(widen(z[v]) - top);
    sum = block_reduce(sum, Sum{});
    if (threadIdx.x != 0) return;
    const std::int64_t label = labels.label[blockIdx.x] - labels.first;
    sums[blockIdx.x] = sum;
    sums[gridDim.x + blockIdx.x] = label >= 0 && label < V ? widen(z[label]) - top : A(0);
}

template <class T, class A>
__global__ void __launch_bounds__(threads) cross_entropy_loss(A* loss, T* logits, const A* tops, const A* sums,
                                                              LocalLabels labels, LossWeight weight, std::int64_t V) {
    T* z = logits + blockIdx.x * V;
    const A top = tops[blockIdx.x], sum = sums[blockIdx.x];
    if (threadIdx.x == 0) loss[blockIdx.x] = static_cast<A>(log(sum)) - sums[gridDim.x + blockIdx.x];
    if (!weight.mask) return;
    const A w = static_cast<A>(weight.scale) * static_cast<A>(weight.mask[blockIdx.x]), factor = w / sum;
    const std::int64_t label = labels.label[blockIdx.x] - labels.first;
    for (std::int64_t v = threadIdx.x; v < V; v += threads)
        z[v] = narrow<T>(exp_of(widen(z[v]) - top) * factor - (v == label ? w : A(0)));
}

}  // namespace

void vocab_max(const Exec& exec, Tensor top, ConstTensor logits) {
    dispatch_float(logits.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        cross_entropy_max<device_t<T>, A><<<static_cast<unsigned>(logits.rows()), threads, 0, exec.gpu->stream>>>(
            top.ptr<A>(), dptr<T>(logits), logits.cols());
    });
    TERA_LAUNCHED();
}

void vocab_sums(const Exec& exec, const VocabStats& stats, ConstTensor logits, LocalLabels labels) {
    dispatch_float(logits.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        cross_entropy_sums<device_t<T>, A><<<static_cast<unsigned>(logits.rows()), threads, 0, exec.gpu->stream>>>(
            stats.sums.ptr<A>(), stats.top.ptr<A>(), dptr<T>(logits), labels, logits.cols());
    });
    TERA_LAUNCHED();
}

void vocab_cross_entropy(const Exec& exec, Tensor loss, Tensor logits, const VocabStats& stats, LocalLabels labels,
                         LossWeight weight) {
    dispatch_float(logits.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        cross_entropy_loss<device_t<T>, A><<<static_cast<unsigned>(logits.rows()), threads, 0, exec.gpu->stream>>>(
            loss.ptr<A>(), dptr<T>(logits), stats.top.ptr<A>(), stats.sums.ptr<A>(), labels, weight, logits.cols());
    });
    TERA_LAUNCHED();
}

}  // namespace tera::ops::cuda
