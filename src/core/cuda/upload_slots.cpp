#include "core/cuda/upload_slots.h"

#include <vector>

#include "core/cuda/check.h"
#include "core/cuda/gpu.h"

namespace tera {

struct UploadSlots::Parts {
    struct One {
        std::byte* host = nullptr;
        std::byte* device = nullptr;
        std::size_t size = 0;
        cudaEvent_t copied = nullptr;  // on the copying stream: the host buffer may be written again
        cudaEvent_t used = nullptr;    // on the computing stream: the device buffer may be written again
    };
    Parts(Gpu& g, int h) : gpu(g), held(h), slots(static_cast<std::size_t>(count(h))) {}
    One& slot(std::int64_t n) { return slots[static_cast<std::size_t>(n) % slots.size()]; }

    void grow(One& slot, std::size_t bytes) const {
        if (slot.device) gpu.memory().give_back(slot.device, slot.size);  // waits for the device
        cudaFreeHost(slot.host);
        slot.host = nullptr, slot.device = nullptr, slot.size = 0;
        void* host = nullptr;
        TERA_CUDA(cudaMallocHost(&host, bytes));
        slot.host = static_cast<std::byte*>(host);
        slot.device = gpu.memory().take(bytes);
        slot.size = bytes;
    }

    Gpu& gpu;
    std::int64_t held;
    cudaStream_t copying = nullptr;
    std::vector<One> slots;
    std::int64_t current = -1;  ///< number of the slot handed out last, counted from the first
};

UploadSlots::UploadSlots(Gpu& gpu, int held) : parts_(std::make_unique<Parts>(gpu, held)) {
    TERA_CUDA(cudaStreamCreateWithFlags(&parts_->copying, cudaStreamNonBlocking));
    for (Parts::One& slot : parts_->slots) {
        TERA_CUDA(cudaEventCreateWithFlags(&slot.copied, cudaEventDisableTiming));
        TERA_CUDA(cudaEventCreateWithFlags(&slot.used, cudaEventDisableTiming));
    }
}

UploadSlots::~UploadSlots() {
    cudaStreamSynchronize(parts_->gpu.stream);
    cudaStreamSynchronize(parts_->copying);
    for (Parts::One& slot : parts_->slots) {
        cudaEventDestroy(slot.copied);
        cudaEventDestroy(slot.used);
        cudaFreeHost(slot.host);
        if (slot.device) parts_->gpu.memory().give_back(slot.device, slot.size);
    }
    cudaStreamDestroy(parts_->copying);
}

void UploadSlots::reserve(std::size_t bytes) {
    for (Parts::One& slot : parts_->slots)
        if (slot.size < bytes) parts_->grow(slot, bytes);
}

UploadSlots::Slot UploadSlots::begin(std::size_t bytes) {
    // Everything that reads the slot handed out so many calls ago has been enqueued by now.
    ++parts_->current;
    if (parts_->current >= parts_->held)
        TERA_CUDA(cudaEventRecord(parts_->slot(parts_->current - parts_->held).used, parts_->gpu.stream));
    Parts::One& slot = parts_->slot(parts_->current);
    TERA_CUDA(cudaEventSynchronize(slot.copied));
    if (slot.size < bytes) parts_->grow(slot, bytes);
    return {slot.host, slot.device};
}

void UploadSlots::send(std::size_t bytes) {
    Parts::One& slot = parts_->slot(parts_->current);
    TERA_CUDA(cudaStreamWaitEvent(parts_->copying, slot.used, 0));
    TERA_CUDA(cudaMemcpyAsync(slot.device, slot.host, bytes, cudaMemcpyHostToDevice, parts_->copying));
    TERA_CUDA(cudaEventRecord(slot.copied, parts_->copying));
    TERA_CUDA(cudaStreamWaitEvent(parts_->gpu.stream, slot.copied, 0));
}

}  // namespace tera
