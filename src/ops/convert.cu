#include "ops/convert.h"
#include "ops/cuda_types.cuh"

namespace tera::ops::cuda {
namespace {

template <class To, class From>
__global__ void convert_kernel(To* out, const From* in, std::int64_t n) {
    for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < n;
         i += std::int64_t{gridDim.x} * blockDim.x)
        out[i] = narrow<To>(widen(in[i]));
}

template <class To, class From>
__global__ void add_kernel(To* y, const From* x, std::int64_t n) {
    for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < n;
         i += std::int64_t{gridDim.x} * blockDim.x)
        y[i] = narrow<To>(widen(y[i]) + widen(x[i]));
}

}  // namespace

void convert(const Exec& exec, Tensor out, ConstTensor x) {
    dispatch_float(out.dtype, [&](auto to) {
        dispatch_float(x.dtype, [&](auto from) {
            using To = decltype(to);
            using From = decltype(from);
            convert_kernel<<<blocks_for(x.numel(), 1024), 256, 0, exec.gpu->stream>>>(dptr<To>(out), dptr<From>(x),
                                                                                      x.numel());
        });
    });
    TERA_LAUNCHED();
}

void add_to(const Exec& exec, Tensor y, ConstTensor x) {
    dispatch_float(y.dtype, [&](auto to) {
        dispatch_float(x.dtype, [&](auto from) {
            using To = decltype(to);
            using From = decltype(from);
            add_kernel<<<blocks_for(x.numel(), 1024), 256, 0, exec.gpu->stream>>>(dptr<To>(y), dptr<From>(x),
                                                                                  x.numel());
        });
    });
    TERA_LAUNCHED();
}

void fill_zero(const Exec& exec, Tensor x) { TERA_CUDA(cudaMemsetAsync(x.data, 0, x.bytes(), exec.gpu->stream)); }

void copy(const Exec& exec, Tensor out, ConstTensor x) {
    TERA_CUDA(cudaMemcpyAsync(out.data, x.data, x.bytes(), cudaMemcpyDeviceToDevice, exec.gpu->stream));
}

void copy_columns(const Exec& exec, Tensor out, ConstTensor x, std::int64_t first) {
    std::size_t item = size_of(x.dtype), width = static_cast<std::size_t>(out.cols()) * item;
    TERA_CUDA(cudaMemcpy2DAsync(out.data, width, x.data + static_cast<std::size_t>(first) * item,
                                static_cast<std::size_t>(x.cols()) * item, width, static_cast<std::size_t>(out.rows()),
                                cudaMemcpyDeviceToDevice, exec.gpu->stream));
}

void put_columns(const Exec& exec, Tensor out, std::int64_t first, ConstTensor x) {
    std::size_t item = size_of(x.dtype), width = static_cast<std::size_t>(x.cols()) * item;
    TERA_CUDA(cudaMemcpy2DAsync(out.data + static_cast<std::size_t>(first) * item,
                                static_cast<std::size_t>(out.cols()) * item, x.data, width, width,
                                static_cast<std::size_t>(x.rows()), cudaMemcpyDeviceToDevice, exec.gpu->stream));
}

}  // namespace tera::ops::cuda
