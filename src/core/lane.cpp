#include "core/lane.h"

#ifdef TERA_WITH_CUDA
#include "core/cuda/check.h"
#include "core/cuda/gpu.h"
#endif

namespace tera {

Exec Lane::on(const Exec& exec) const {
    Exec here = exec;
    here.lane = gpu_ == nullptr ? nullptr : this;
    return here;
}

#ifdef TERA_WITH_CUDA

namespace {

cudaEvent_t new_event() {
    cudaEvent_t event = nullptr;
    TERA_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}

}  // namespace

Lane::Lane(const Engine& engine) : gpu_(engine.gpu()) {
    if (gpu_ == nullptr || gpu_->on_paper) return;
    cudaStream_t stream = nullptr;
    int least = 0, greatest = 0;
    TERA_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    TERA_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
    stream_ = stream;
    followed_ = new_event();
}

Lane::~Lane() {
    if (stream_ == nullptr) return;
    cudaStreamSynchronize(static_cast<cudaStream_t>(stream_));
    cudaEventDestroy(static_cast<cudaEvent_t>(followed_));
    cudaStreamDestroy(static_cast<cudaStream_t>(stream_));
}

void Lane::follow(const Exec& exec) {
    if (gpu_ == nullptr || exec.counts()) return;
    TERA_CUDA(cudaEventRecord(static_cast<cudaEvent_t>(followed_), gpu_->stream));
    TERA_CUDA(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream_), static_cast<cudaEvent_t>(followed_), 0));
}

Lane::Mark::Mark(const Lane& lane) : lane_(&lane) {
    if (lane.stream_ != nullptr) event_ = new_event();
}

Lane::Mark::~Mark() {
    if (event_ != nullptr) cudaEventDestroy(static_cast<cudaEvent_t>(event_));
}

void Lane::Mark::set() {
    if (event_ == nullptr) return;
    TERA_CUDA(cudaEventRecord(static_cast<cudaEvent_t>(event_), static_cast<cudaStream_t>(lane_->stream_)));
}

void Lane::Mark::wait(const Exec& exec) const {
    if (event_ == nullptr || exec.counts()) return;
    TERA_CUDA(cudaStreamWaitEvent(lane_->gpu_->stream, static_cast<cudaEvent_t>(event_), 0));
}

#else

Lane::Lane(const Engine&) : gpu_(nullptr) {}
Lane::~Lane() = default;
void Lane::follow(const Exec&) {}
Lane::Mark::Mark(const Lane& lane) : lane_(&lane) {}
Lane::Mark::~Mark() = default;
void Lane::Mark::set() {}
void Lane::Mark::wait(const Exec&) const {}

#endif

Lane::Mark::Mark(Mark&& other) noexcept : lane_(other.lane_), event_(other.event_) { other.event_ = nullptr; }

}  // namespace tera
