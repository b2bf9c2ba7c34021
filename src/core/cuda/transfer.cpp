#include "core/cuda/transfer.h"

#include "core/cuda/check.h"
#include "core/cuda/gpu.h"
#include "core/exec.h"

namespace tera {

void cuda_copy_to_host(const Exec& exec, void* out, const std::byte* from, std::size_t bytes) {
    TERA_CUDA(cudaMemcpyAsync(out, from, bytes, cudaMemcpyDeviceToHost, exec.gpu->stream));
    exec.gpu->synchronize();
}

void cuda_copy_from_host(const Exec& exec, std::byte* to, const void* in, std::size_t bytes) {
    TERA_CUDA(cudaMemcpyAsync(to, in, bytes, cudaMemcpyHostToDevice, exec.gpu->stream));
    exec.gpu->synchronize();
}

}  // namespace tera
