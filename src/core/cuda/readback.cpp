#include "core/cuda/readback.h"

#include "core/cuda/check.h"
#include "core/cuda/gpu.h"

namespace tera {
namespace {

/// Pinned memory, so that the copy really goes along the stream, and an event behind it.
class CudaReadback final : public Readback::Target {
  public:
    CudaReadback(std::size_t bytes, Gpu& gpu) : gpu_(gpu) {
        if (gpu.on_paper) return;
        TERA_CUDA(cudaMallocHost(&pinned_, bytes ? bytes : 1));
        if (cudaError_t status = cudaEventCreateWithFlags(&arrived_, cudaEventDisableTiming); status != cudaSuccess) {
            cudaFreeHost(pinned_);
            TERA_CUDA(status);
        }
    }
    ~CudaReadback() override {
        if (arrived_ == nullptr) return;
        cudaEventSynchronize(arrived_);  // a copy under way writes into this memory
        cudaEventDestroy(arrived_);
        cudaFreeHost(pinned_);
    }
    void start(const Exec&, ConstTensor from) override {
        TERA_CHECK(from.device == Device::cuda, "the result is not on the GPU");
        TERA_CUDA(cudaMemcpyAsync(pinned_, from.data, from.bytes(), cudaMemcpyDeviceToHost, gpu_.stream));
        TERA_CUDA(cudaEventRecord(arrived_, gpu_.stream));
    }
    const void* wait() override {
        TERA_CUDA(cudaEventSynchronize(arrived_));
        return pinned_;
    }

  private:
    Gpu& gpu_;
    void* pinned_ = nullptr;
    cudaEvent_t arrived_ = nullptr;
};

}  // namespace

std::unique_ptr<Readback::Target> make_cuda_readback(std::size_t bytes, Gpu& gpu) {
    return std::make_unique<CudaReadback>(bytes, gpu);
}

}  // namespace tera
