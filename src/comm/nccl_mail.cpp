// Messages go beside what the rank computes; it is in a call, for whoever watches, only while its own stream waits.
#if defined(TERA_WITH_CUDA) && __has_include(<nccl.h>)

#include "comm/nccl_mail.h"

#include "comm/nccl_call.h"
#include "core/cuda/check.h"

namespace tera {

Outbox::Outbox(Rank& rank, ncclComm_t comm, std::shared_ptr<CallCounter> calls, int places, std::size_t bytes)
    : rank_(rank), comm_(comm), calls_(std::move(calls)), bytes_(bytes) {
    TERA_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    TERA_CUDA(cudaEventCreateWithFlags(&copied_, cudaEventDisableTiming));
    for (int i = 0; i < places; ++i) {
        Place& place = places_.emplace_back();
        place.data = rank.gpu.memory().take(bytes);
        TERA_CUDA(cudaEventCreateWithFlags(&place.sent, cudaEventDisableTiming));
    }
}

Outbox::~Outbox() {
    cudaStreamSynchronize(stream_);
    for (Place& place : places_) {
        cudaEventDestroy(place.sent);
        rank_.gpu.memory().give_back(place.data, bytes_);
    }
    cudaEventDestroy(copied_);
    cudaStreamDestroy(stream_);
}

void Outbox::send(ConstTensor data) {
    TERA_CHECK(data.bytes() <= bytes_, "a message of ", data.bytes(), " bytes, where ", bytes_, " were announced");
    Place& place = places_[next_];
    next_ = (next_ + 1) % places_.size();
    // The rank is in the call as long as it waits for a place; then the message waits for its receiver by itself.
    rank_.begin(*calls_, rank_.gpu.stream, text_of("message", data, 2));
    TERA_CUDA(cudaStreamWaitEvent(rank_.gpu.stream, place.sent, 0));
    calls_->end(rank_.gpu.stream);
    TERA_CUDA(cudaMemcpyAsync(place.data, data.data, data.bytes(), cudaMemcpyDeviceToDevice, rank_.gpu.stream));
    TERA_CUDA(cudaEventRecord(copied_, rank_.gpu.stream));
    TERA_CUDA(cudaStreamWaitEvent(stream_, copied_, 0));
    TERA_NCCL(send, place.data, count_of(data), type_of(data.dtype), 1, comm_, stream_);
    TERA_CUDA(cudaEventRecord(place.sent, stream_));
}

Inbox::Inbox(Rank& rank, ncclComm_t comm, std::shared_ptr<CallCounter> calls, std::size_t bytes)
    : rank_(rank), comm_(comm), calls_(std::move(calls)), bytes_(bytes) {
    if (bytes == 0) return;
    TERA_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    for (cudaEvent_t* event : {&asked_, &arrived_}) TERA_CUDA(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    place_ = rank.gpu.memory().take(bytes);
}

Inbox::~Inbox() {
    if (bytes_ == 0) return;
    cudaStreamSynchronize(stream_);
    rank_.gpu.memory().give_back(place_, bytes_);
    for (cudaEvent_t event : {asked_, arrived_}) cudaEventDestroy(event);
    cudaStreamDestroy(stream_);
}

void Inbox::expect(DType dtype, Shape shape) {
    const auto count = static_cast<std::size_t>(shape.numel());
    TERA_CHECK(count * size_of(dtype) <= bytes_, "a message of ", count * size_of(dtype), " bytes, where ", bytes_,
               " were announced");
    TERA_CUDA(cudaEventRecord(asked_, rank_.gpu.stream));
    TERA_CUDA(cudaStreamWaitEvent(stream_, asked_, 0));
    TERA_NCCL(recv, place_, count, type_of(dtype), 0, comm_, stream_);
    TERA_CUDA(cudaEventRecord(arrived_, stream_));
    expected_ = true;
}

void Inbox::receive(const Exec& exec, Tensor data) {
    const cudaStream_t stream = stream_of(exec);
    // The rank is in the call as long as what it computes waits for the message.
    rank_.begin(*calls_, stream, text_of("message", data, 2));
    if (expected_)
        TERA_CUDA(cudaStreamWaitEvent(stream, arrived_, 0));
    else
        TERA_NCCL(recv, data.data, count_of(data), type_of(data.dtype), 0, comm_, stream);
    calls_->end(stream);
    if (expected_) TERA_CUDA(cudaMemcpyAsync(data.data, place_, data.bytes(), cudaMemcpyDeviceToDevice, stream));
    expected_ = false;
}

}  // namespace tera

#endif
