#include "ops/beside.h"

#ifdef TERA_WITH_CUDA
#include "core/cuda/check.h"
#include "core/cuda/gpu.h"
#endif

namespace tera::ops {

#ifdef TERA_WITH_CUDA
namespace {

/// A second queue of a GPU.
struct SideQueue {
    cudaStream_t stream = nullptr;
    cudaEvent_t begin = nullptr, end = nullptr;

    SideQueue() {
        TERA_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        for (cudaEvent_t* event : {&begin, &end}) TERA_CUDA(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    }
    ~SideQueue() {
        cudaStreamSynchronize(stream);
        for (cudaEvent_t event : {begin, end}) cudaEventDestroy(event);
        cudaStreamDestroy(stream);
    }
    SideQueue(const SideQueue&) = delete;
    SideQueue& operator=(const SideQueue&) = delete;
};

/// Has another value until the end of a scope.
template <class T>
class Meanwhile {
  public:
    Meanwhile(T& variable, T value) : variable_(variable), before_(variable) { variable = value; }
    ~Meanwhile() { variable_ = before_; }
    Meanwhile(const Meanwhile&) = delete;
    Meanwhile& operator=(const Meanwhile&) = delete;

  private:
    T &variable_, before_;
};

void side_by_side(Gpu& gpu, const std::function<void()>& product, const std::function<void()>& mover) {
    const int left_to_mover = gpu.multiprocessors / 8;  // of 132: 16 and 24 are faster than none, 8 is not
    if (!gpu.side_queue) gpu.side_queue = std::make_shared<SideQueue>();
    const SideQueue& side = *static_cast<SideQueue*>(gpu.side_queue.get());
    TERA_CUDA(cudaEventRecord(side.begin, gpu.stream));
    {
        // The product first: its blocks take whole multiprocessors, and find none once the mover's are everywhere.
        const Meanwhile fewer(gpu.product_multiprocessors, gpu.multiprocessors - left_to_mover);
        product();
    }
    TERA_CUDA(cudaStreamWaitEvent(side.stream, side.begin, 0));
    {
        const Meanwhile aside(gpu.stream, side.stream);
        mover();
    }
    TERA_CUDA(cudaEventRecord(side.end, side.stream));
    TERA_CUDA(cudaStreamWaitEvent(gpu.stream, side.end, 0));
}

}  // namespace
#endif

void product_beside([[maybe_unused]] const Exec& exec, const std::function<void()>& product,
                    [[maybe_unused]] std::size_t bytes, const std::function<void()>& mover) {
#ifdef TERA_WITH_CUDA
    constexpr std::size_t worth_it = std::size_t{64} << 20;
    if (exec.device == Device::cuda && !exec.counts() && bytes >= worth_it)
        return side_by_side(*exec.gpu, product, mover);
#endif
    product();
    mover();
}

}  // namespace tera::ops
