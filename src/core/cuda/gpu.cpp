#include "core/cuda/gpu.h"

#include <dlfcn.h>

#include <algorithm>

#include "core/cuda/check.h"

namespace tera {

void cuda_failed(const char* file, int line, const char* call, const char* text) {
    std::string_view path = file;
    if (auto at = path.rfind("/src/"); at != path.npos) path.remove_prefix(at + 1);
    throw Error(cat(path, ":", line, ": ", call, ": ", text));
}

namespace {

class DeviceMemory final : public MemorySource {
  public:
    explicit DeviceMemory(Gpu& gpu) : gpu_(gpu) {}
    Device device() const override { return Device::cuda; }
    std::byte* take(std::size_t bytes) override {
        void* p = nullptr;
        if (cudaMalloc(&p, bytes) == cudaSuccess) {
            gpu_.taken_bytes += bytes;
            gpu_.most_taken_bytes = std::max(gpu_.most_taken_bytes, gpu_.taken_bytes);
            return static_cast<std::byte*>(p);
        }
        cudaGetLastError();
        std::size_t free = 0, total = 0;
        cudaMemGetInfo(&free, &total);
        throw Error(cat("out of GPU memory: wanted ", bytes >> 20, " MiB more, ", free >> 20, " of ", total >> 20,
                        " MiB are free on ", gpu_.name));
    }
    /// Destructors call it, also after an error of the device, which must not hide behind another.
    void give_back(std::byte* data, std::size_t bytes) override {
        cudaStreamSynchronize(gpu_.stream);
        gpu_.taken_bytes -= bytes;
        cudaFree(data);
    }
    void zero(std::byte* data, std::size_t bytes) override {
        TERA_CUDA(cudaMemsetAsync(data, 0, bytes, gpu_.stream));
        gpu_.synchronize();
    }

  private:
    Gpu& gpu_;
};

/// Of a GPU on paper.
class NoMemory final : public MemorySource {
  public:
    Device device() const override { return Device::cuda; }
    std::byte* take(std::size_t) override { throw Error("a GPU on paper has no memory to give"); }
    void give_back(std::byte*, std::size_t) override {}
    void zero(std::byte*, std::size_t) override {}
};

}  // namespace

int gpu_count() {
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return n;
}

namespace {

/// CUDA calls a driver that is not there too old.
std::string driver_problem(cudaError_t status) {
    if (status == cudaErrorInsufficientDriver && dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) == nullptr)
        return "no NVIDIA driver (libcuda.so.1 not found)";
    return cudaGetErrorString(status);
}

}  // namespace

std::string why_no_gpu() {
    int n = 0;
    const cudaError_t status = cudaGetDeviceCount(&n);
    cudaGetLastError();
    if (status != cudaSuccess) return driver_problem(status);
    return n > 0 ? "" : "no CUDA device is visible";
}

Gpu::Gpu(OnPaper) : on_paper(true), device(0), name("a GPU, on paper"), memory_(std::make_unique<NoMemory>()) {}

Gpu::Gpu(int which) : on_paper(false), device(which) {
    int n = 0;
    if (cudaError_t status = cudaGetDeviceCount(&n); status != cudaSuccess) {
        cudaGetLastError();
        usage_error("no usable GPU: ", driver_problem(status), "; install the NVIDIA driver or use --device cpu");
    }
    if (which < 0 || which >= n)
        usage_error("GPU ", which, " asked for, but there are ", n, "; check CUDA_VISIBLE_DEVICES and the local rank");
    if (cudaError_t status = cudaSetDevice(which); status != cudaSuccess) {
        cudaGetLastError();
        usage_error("GPU ", which, " cannot be used: ", cudaGetErrorString(status),
                    "; nvidia-smi shows what else runs on it");
    }
    cudaDeviceProp properties;
    TERA_CUDA(cudaGetDeviceProperties(&properties, which));
    name = properties.name;
    multiprocessors = properties.multiProcessorCount;
    hopper = properties.major == 9;
    total_bytes = properties.totalGlobalMem;
    constexpr int oldest = TERA_CUDA_OLDEST;  // that there is code for
    if (properties.major * 10 + properties.minor < oldest)
        usage_error(name, " has compute capability ", properties.major, ".", properties.minor,
                    ", and this program was built for ", oldest / 10, ".", oldest % 10, " and newer: ",
                    properties.major < 8 ? ""
                                         : "build it with TERA_CUDA_ARCH=" + cat(properties.major, properties.minor) +
                                               " scripts/build.sh, or ",
                    "use --device cpu");
    TERA_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    TERA_CUBLAS(cublasLtCreate(&blas));
    TERA_CUDA(cudaMalloc(&workspace, workspace_bytes));
    memory_ = std::make_unique<DeviceMemory>(*this);
}

Gpu::~Gpu() {
    gemm_plans.reset();
    attention_plans.reset();
    if (blas) cublasLtDestroy(blas);
    if (workspace) cudaFree(workspace);
    if (stream) cudaStreamDestroy(stream);
}

void Gpu::synchronize() const { TERA_CUDA(cudaStreamSynchronize(stream)); }

void Gpu::memory_info(std::size_t& free, std::size_t& total) const { TERA_CUDA(cudaMemGetInfo(&free, &total)); }

}  // namespace tera
