#include "ops/cuda_types.cuh"
#include "ops/init_values.h"

namespace tera::ops::cuda {
namespace {

template <class T>
__global__ void constant_kernel(T* out, std::int64_t n, float value) {
    for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < n;
         i += std::int64_t{gridDim.x} * blockDim.x)
        out[i] = narrow<T>(value);
}

template <class T>
__global__ void random_kernel(T* out, std::int64_t n, RandomFill fill) {
    std::int64_t groups = (n + 3) / 4;
    for (std::int64_t g = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; g < groups;
         g += std::int64_t{gridDim.x} * blockDim.x) {
        F32x4 values = random_values(fill, static_cast<std::uint64_t>(g));
        for (int lane = 0; lane < 4 && 4 * g + lane < n; ++lane) out[4 * g + lane] = narrow<T>(values.v[lane]);
    }
}

/// Any runs: one element at a time.
template <class T>
__global__ void random_runs_kernel(T* out, std::int64_t n, RandomFill fill) {
    for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < n;
         i += std::int64_t{gridDim.x} * blockDim.x) {
        const std::int64_t at = i + fill.skip, index = fill.first + at / fill.run * fill.stride + at % fill.run;
        out[i] = narrow<T>(random_values(fill, static_cast<std::uint64_t>(index / 4)).v[index % 4]);
    }
}

}  // namespace

void fill_constant(const Exec& exec, Tensor out, double value) {
    dispatch_float(out.dtype, [&](auto zero) {
        using T = decltype(zero);
        constant_kernel<<<blocks_for(out.numel(), 1024), 256, 0, exec.gpu->stream>>>(dptr<T>(out), out.numel(),
                                                                                     static_cast<float>(value));
    });
    TERA_LAUNCHED();
}

void fill_random(const Exec& exec, Tensor out, const RandomFill& fill) {
    dispatch_float(out.dtype, [&](auto zero) {
        using T = decltype(zero);
        if (fill.first == 0 && fill.skip == 0 && fill.run == out.numel())
            random_kernel<<<blocks_for(out.numel(), 4096), 256, 0, exec.gpu->stream>>>(dptr<T>(out), out.numel(), fill);
        else
            random_runs_kernel<<<blocks_for(out.numel(), 1024), 256, 0, exec.gpu->stream>>>(dptr<T>(out), out.numel(),
                                                                                            fill);
    });
    TERA_LAUNCHED();
}

}  // namespace tera::ops::cuda
