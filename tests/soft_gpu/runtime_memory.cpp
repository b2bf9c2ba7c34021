// Memory as the CUDA runtime gives it out, and copies, which have all been made when the call returns.
#include <cuda_runtime_api.h>

#include <cstring>

#include "soft_gpu/guard.h"
#include "soft_gpu/memory.h"
#include "soft_gpu/recording.h"
#include "soft_gpu/streams.h"

using soft_gpu::Fault;
using soft_gpu::guarded;
using soft_gpu::Memory;
using soft_gpu::On;
using soft_gpu::StreamOrder;

namespace {

cudaError_t take(const char* call, void** out, std::size_t bytes, bool of_host) {
    return guarded(call, [=] {
        if (!out) return cudaErrorInvalidValue;
        *out = Memory::get().allocate(bytes, of_host);
        return *out || bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
    });
}

/// Destructors call it, also after a fault.
cudaError_t give_back(const char* call, void* data, bool of_host) {
    const auto body = [=] {
        if (!data) return cudaSuccess;
        const Memory::Block* block = Memory::get().find(data, 1);
        if (!block || block->of_host != of_host) return cudaErrorInvalidValue;
        return Memory::get().release(data) ? cudaSuccess : cudaErrorInvalidValue;
    };
    return guarded(call, body, On::any_device);
}

enum class Side { device, host, either };

/// One end of a copy. Memory of the host may be any; what is in an allocation has to end there.
void check(const void* data, std::size_t bytes, Side side, const char* what) {
    Memory& memory = Memory::get();
    if (side != Side::device && !memory.find(data, 1)) {
        if (!data) throw Fault(std::string(what) + ": a null pointer");
        return;
    }
    const bool of_host = memory.must_find(data, bytes, what).of_host;
    if (side == Side::device && of_host) throw Fault(std::string(what) + ": memory of the host, called the device's");
    if (side == Side::host && !of_host) throw Fault(std::string(what) + ": memory of the device, called the host's");
}

struct Sides {
    Side to, from;
};

bool sides_of(cudaMemcpyKind kind, Sides& sides) {
    switch (kind) {
        case cudaMemcpyHostToHost:
            sides = {Side::host, Side::host};
            return true;
        case cudaMemcpyHostToDevice:
            sides = {Side::device, Side::host};
            return true;
        case cudaMemcpyDeviceToHost:
            sides = {Side::host, Side::device};
            return true;
        case cudaMemcpyDeviceToDevice:
            sides = {Side::device, Side::device};
            return true;
        case cudaMemcpyDefault:
            sides = {Side::either, Side::either};
            return true;
    }
    return false;
}

/// What is on a stream, or waited for.
template <class F>
cudaError_t on_stream(const char* call, cudaStream_t stream, F work) {
    return soft_gpu::Recording::give(stream, [=] {
        return guarded(call, [=] {
            if (!soft_gpu::is_stream(stream)) return cudaErrorInvalidResourceHandle;
            const StreamOrder::Working here(soft_gpu::queue_of(stream), call);
            return work();
        });
    });
}
template <class F>
cudaError_t waited_for(const char* call, F work) {
    const cudaError_t error = on_stream(call, nullptr, work);
    if (error == cudaSuccess) cudaStreamSynchronize(nullptr);
    return error;
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    Sides sides;
    if (!sides_of(kind, sides)) return cudaErrorInvalidValue;
    if (bytes == 0) return cudaSuccess;
    check(to, bytes, sides.to, "write");
    check(from, bytes, sides.from, "read");
    Memory::get().copy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t fill(void* data, int value, std::size_t bytes) {
    if (bytes == 0) return cudaSuccess;
    Memory::get().wrote(data, bytes, "write");
    std::memset(data, value, bytes);
    return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** out, std::size_t bytes) { return take("cudaMalloc", out, bytes, false); }
cudaError_t cudaMallocHost(void** out, std::size_t bytes) { return take("cudaMallocHost", out, bytes, true); }
cudaError_t cudaFree(void* data) { return give_back("cudaFree", data, false); }
cudaError_t cudaFreeHost(void* data) { return give_back("cudaFreeHost", data, true); }

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
    return guarded("cudaMemGetInfo", [=] {
        *total = Memory::total_bytes;
        *free = Memory::total_bytes - Memory::get().taken();
        return cudaSuccess;
    });
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    return waited_for("cudaMemcpy", [=] { return copy(to, from, bytes, kind); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    return on_stream("cudaMemcpyAsync", stream, [=] { return copy(to, from, bytes, kind); });
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_step, const void* from, std::size_t from_step, std::size_t width,
                              std::size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return on_stream("cudaMemcpy2DAsync", stream, [=] {
        if (width > to_step || width > from_step) return cudaErrorInvalidPitchValue;
        for (std::size_t row = 0; row < height; ++row) {
            const cudaError_t error = copy(static_cast<std::byte*>(to) + row * to_step,
                                           static_cast<const std::byte*>(from) + row * from_step, width, kind);
            if (error != cudaSuccess) return error;
        }
        return cudaSuccess;
    });
}

cudaError_t cudaMemset(void* data, int value, std::size_t bytes) {
    return on_stream("cudaMemset", nullptr, [=] { return fill(data, value, bytes); });
}

cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t stream) {
    return on_stream("cudaMemsetAsync", stream, [=] { return fill(data, value, bytes); });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* data) {
    return guarded("cudaPointerGetAttributes", [=] {
        const Memory::Block* block = Memory::get().find(data, 1);
        void* const address = const_cast<void*>(data);
        *out = {};
        out->type = !block ? cudaMemoryTypeUnregistered : block->of_host ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
        out->device = block ? 0 : cudaInvalidDeviceId;
        out->devicePointer = block ? address : nullptr;
        out->hostPointer = block && !block->of_host ? nullptr : address;
        return cudaSuccess;
    });
}

}  // extern "C"
