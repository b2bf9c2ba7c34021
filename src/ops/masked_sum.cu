#include "ops/cuda_types.cuh"
#include "ops/masked_sum.h"

namespace tera::ops::cuda {
namespace {

template <class A>
__global__ void masked_sum_kernel(double* out, const A* loss, const float* mask, std::int64_t n) {
    double total = 0, weight = 0;
    for (std::int64_t t = threadIdx.x; t < n; t += blockDim.x) {
        double m = mask[t];
        if (m != 0) total += m * static_cast<double>(loss[t]);
        weight += m;
    }
    total = block_reduce(total, Sum{});
    weight = block_reduce(weight, Sum{});
    if (threadIdx.x == 0) out[0] += total, out[1] += weight;
}

}  // namespace

void add_masked_sum(const Exec& exec, Tensor sums, ConstTensor loss, const float* mask) {
    double* out = sums.ptr<double>();
    if (loss.dtype == DType::f64)
        masked_sum_kernel<<<1, 1024, 0, exec.gpu->stream>>>(out, loss.ptr<double>(), mask, loss.numel());
    else
        masked_sum_kernel<<<1, 1024, 0, exec.gpu->stream>>>(out, loss.ptr<float>(), mask, loss.numel());
    TERA_LAUNCHED();
}

}  // namespace tera::ops::cuda
