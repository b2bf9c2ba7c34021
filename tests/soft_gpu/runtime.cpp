// The device, its streams and events, and the calls that have nothing to do here.
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <set>

#include "soft_gpu/device_limits.h"
#include "soft_gpu/guard.h"
#include "soft_gpu/memory.h"
#include "soft_gpu/recording.h"
#include "soft_gpu/streams.h"
#include "soft_gpu/tensor_map.h"

using soft_gpu::guarded;
using soft_gpu::Memory;
using soft_gpu::On;
using soft_gpu::Recording;
using soft_gpu::StreamOrder;
using Clock = std::chrono::steady_clock;

struct CUstream_st {
    soft_gpu::StreamOrder::Queue queue;
};

struct CUevent_st {
    bool timed = true, recorded = false;
    Clock::time_point at{};
    StreamOrder::Known known = {};
};

namespace {

constexpr int least_priority = 0, greatest_priority = -5;

/// What has been made and not destroyed; guarded by the lock of all calls.
template <class T>
class Handles {
  public:
    T* make(T value) { return *live_.insert(new T(value)).first; }
    bool has(T* handle) const { return live_.contains(handle); }
    bool end(T* handle) {
        if (live_.erase(handle) == 0) return false;
        delete handle;
        return true;
    }

  private:
    std::set<T*> live_;
};

/// Never destroyed: the program's last calls come when it ends.
Handles<CUstream_st>& streams() {
    static auto& all = *new Handles<CUstream_st>;
    return all;
}
Handles<CUevent_st>& events() {
    static auto& all = *new Handles<CUevent_st>;
    return all;
}

cudaError_t found(bool is) { return is ? cudaSuccess : cudaErrorInvalidResourceHandle; }

cudaError_t make_stream(const char* call, cudaStream_t* out, unsigned flags) {
    return guarded(call, [=] {
        if (!out || flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
        *out = streams().make({StreamOrder::get().open(flags != cudaStreamNonBlocking)});
        return cudaSuccess;
    });
}

cudaError_t make_event(const char* call, cudaEvent_t* out, unsigned flags) {
    return guarded(call, [=] {
        if (!out) return cudaErrorInvalidValue;
        *out = events().make({.timed = (flags & cudaEventDisableTiming) == 0});
        return cudaSuccess;
    });
}

/// Also where it is only asked for: it is over.
cudaError_t wait_for_event(const char* call, cudaEvent_t event) {
    return guarded(call, [=] {
        if (!events().has(event)) return cudaErrorInvalidResourceHandle;
        StreamOrder::get().host_waits(event->known);
        return cudaSuccess;
    });
}

cudaError_t wait_for_stream(const char* call, cudaStream_t stream) {
    return guarded(call, [=] {
        if (Recording::has(stream)) return cudaErrorStreamCaptureUnsupported;
        if (!soft_gpu::is_stream(stream)) return cudaErrorInvalidResourceHandle;
        StreamOrder& order = StreamOrder::get();
        order.host_waits(order.known_on(soft_gpu::queue_of(stream)));
        return cudaSuccess;
    });
}

cudaDeviceProp make_properties() {
    cudaDeviceProp p{};
    std::snprintf(p.name, sizeof p.name, "soft GPU");
    p.major = 9;
    p.minor = 0;
    p.multiProcessorCount = soft_gpu::multiprocessors;
    p.totalGlobalMem = Memory::total_bytes;
    p.totalConstMem = 64 << 10;
    p.sharedMemPerBlock = soft_gpu::shared_by_default;
    p.sharedMemPerBlockOptin = soft_gpu::shared_per_block;
    p.sharedMemPerMultiprocessor = soft_gpu::shared_per_multiprocessor;
    p.reservedSharedMemPerBlock = soft_gpu::shared_reserved;
    p.regsPerBlock = p.regsPerMultiprocessor = 64 << 10;
    p.warpSize = 32;
    p.maxThreadsPerBlock = soft_gpu::threads_per_block;
    p.maxThreadsPerMultiProcessor = soft_gpu::threads_per_multiprocessor;
    p.maxBlocksPerMultiProcessor = soft_gpu::blocks_per_multiprocessor;
    std::copy_n(soft_gpu::largest_block, 3, p.maxThreadsDim);
    std::copy_n(soft_gpu::largest_grid, 3, p.maxGridSize);
    p.memPitch = 0x7fffffff;
    p.textureAlignment = 512;
    p.l2CacheSize = 50 << 20;
    p.memoryBusWidth = 5120;
    p.asyncEngineCount = 3;
    p.unifiedAddressing = p.canMapHostMemory = p.concurrentKernels = 1;
    p.streamPrioritiesSupported = p.clusterLaunch = p.cooperativeLaunch = 1;
    return p;
}

const cudaDeviceProp& properties() {
    static const cudaDeviceProp only = make_properties();
    return only;
}

cudaError_t not_here(const char* call) {
    return guarded(call, [=] {
        soft_gpu::say(call, "not on this GPU");
        return cudaErrorNotSupported;
    });
}

}  // namespace

bool soft_gpu::is_stream(cudaStream_t stream) {
    return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread || streams().has(stream);
}

StreamOrder::Queue soft_gpu::queue_of(cudaStream_t stream) {
    return streams().has(stream) ? stream->queue : StreamOrder::default_queue;
}

extern "C" {

// The device. Whether there is one and what it has can be asked after a fault too.

cudaError_t cudaGetDeviceCount(int* count) {
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    return guarded("cudaSetDevice", [=] { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
    if (device != 0) return guarded("cudaGetDeviceProperties", [] { return cudaErrorInvalidDevice; });
    *out = properties();
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    if (device != 0) return guarded("cudaDeviceGetAttribute", [] { return cudaErrorInvalidDevice; });
    const cudaDeviceProp& p = properties();
    switch (attribute) {
        case cudaDevAttrComputeCapabilityMajor:
            *value = p.major;
            return cudaSuccess;
        case cudaDevAttrComputeCapabilityMinor:
            *value = p.minor;
            return cudaSuccess;
        case cudaDevAttrMultiProcessorCount:
            *value = p.multiProcessorCount;
            return cudaSuccess;
        case cudaDevAttrWarpSize:
            *value = p.warpSize;
            return cudaSuccess;
        case cudaDevAttrMaxThreadsPerBlock:
            *value = p.maxThreadsPerBlock;
            return cudaSuccess;
        case cudaDevAttrMaxSharedMemoryPerBlock:
            *value = static_cast<int>(p.sharedMemPerBlock);
            return cudaSuccess;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin:
            *value = static_cast<int>(p.sharedMemPerBlockOptin);
            return cudaSuccess;
        default:
            return not_here("cudaDeviceGetAttribute");
    }
}

cudaError_t cudaDeviceSynchronize() {
    return guarded("cudaDeviceSynchronize", [] { return StreamOrder::get().host_waits_for_all(), cudaSuccess; });
}

cudaError_t cudaProfilerStart() {
    return guarded("cudaProfilerStart", [] { return cudaSuccess; });
}

cudaError_t cudaProfilerStop() {
    return guarded("cudaProfilerStop", [] { return cudaSuccess; });
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
    return guarded("cudaGetDriverEntryPointByVersion", [=] {
        const bool known = std::strcmp(name, "cuTensorMapEncodeTiled") == 0;
        *function = known ? reinterpret_cast<void*>(&soft_gpu::encode_tiled) : nullptr;
        if (status) *status = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
        return cudaSuccess;
    });
}

// Streams.

cudaError_t cudaStreamCreate(cudaStream_t* out) { return make_stream("cudaStreamCreate", out, cudaStreamDefault); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
    return make_stream("cudaStreamCreateWithFlags", out, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int) {
    return make_stream("cudaStreamCreateWithPriority", out, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    if (least) *least = least_priority;
    if (greatest) *greatest = greatest_priority;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    return guarded(
        "cudaStreamDestroy",
        [=] {
            if (!streams().has(stream)) return cudaErrorInvalidResourceHandle;
            StreamOrder::get().close(stream->queue);
            return found(streams().end(stream));
        },
        On::any_device);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return wait_for_stream("cudaStreamSynchronize", stream); }
cudaError_t cudaStreamQuery(cudaStream_t stream) { return wait_for_stream("cudaStreamQuery", stream); }

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    const auto now = [=] {
        return guarded("cudaStreamWaitEvent", [=] {
            if (!soft_gpu::is_stream(stream) || !events().has(event)) return cudaErrorInvalidResourceHandle;
            StreamOrder::get().wait(soft_gpu::queue_of(stream), event->known);
            return cudaSuccess;
        });
    };
    Recording* const recording = Recording::under_way();
    if (!recording || !(Recording::has(stream) || recording->has(event))) return now();
    return guarded("cudaStreamWaitEvent", [=] { return recording->wait(stream, event, now); });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long*,
                                     cudaGraph_t*, const cudaGraphNode_t**, const cudaGraphEdgeData**, std::size_t*) {
    *status = soft_gpu::Recording::has(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return guarded("cudaStreamGetCaptureInfo", [=] { return found(soft_gpu::is_stream(stream)); });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
    static thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
    std::swap(*mode, current);
    return cudaSuccess;
}

// Events.

cudaError_t cudaEventCreate(cudaEvent_t* out) { return make_event("cudaEventCreate", out, cudaEventDefault); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned flags) {
    return make_event("cudaEventCreateWithFlags", out, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    return guarded(
        "cudaEventDestroy", [=] { return found(events().end(event)); }, On::any_device);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    const auto now = [=] {
        return guarded("cudaEventRecord", [=] {
            if (!events().has(event) || !soft_gpu::is_stream(stream)) return cudaErrorInvalidResourceHandle;
            event->recorded = true;
            event->known = StreamOrder::get().known_on(soft_gpu::queue_of(stream));
            event->at = Clock::now();
            return cudaSuccess;
        });
    };
    return Recording::has(stream) ? Recording::under_way()->record(event, stream, now) : now();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) { return wait_for_event("cudaEventSynchronize", event); }
cudaError_t cudaEventQuery(cudaEvent_t event) { return wait_for_event("cudaEventQuery", event); }

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
    return guarded("cudaEventElapsedTime", [=] {
        const auto usable = [](cudaEvent_t event) { return events().has(event) && event->timed && event->recorded; };
        if (!usable(from) || !usable(to)) return cudaErrorInvalidResourceHandle;
        *milliseconds = std::chrono::duration<float, std::milli>(to->at - from->at).count();
        return cudaSuccess;
    });
}

// What cuDNN's headers refer to.

cudaError_t cudaLibraryLoadData(cudaLibrary_t*, const void*, cudaJitOption*, void**, unsigned, cudaLibraryOption*,
                                void**, unsigned) {
    return not_here("cudaLibraryLoadData");
}
cudaError_t cudaLibraryUnload(cudaLibrary_t) { return not_here("cudaLibraryUnload"); }
cudaError_t cudaLibraryGetKernel(cudaKernel_t*, cudaLibrary_t, const char*) { return not_here("cudaLibraryGetKernel"); }
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t, cudaFuncAttribute, int, int) {
    return not_here("cudaKernelSetAttributeForDevice");
}
cudaError_t cudaUserObjectCreate(cudaUserObject_t*, void*, cudaHostFn_t, unsigned, unsigned) {
    return not_here("cudaUserObjectCreate");
}
cudaError_t cudaUserObjectRelease(cudaUserObject_t, unsigned) { return not_here("cudaUserObjectRelease"); }
cudaError_t cudaGraphRetainUserObject(cudaGraph_t, cudaUserObject_t, unsigned, unsigned) {
    return not_here("cudaGraphRetainUserObject");
}

}  // extern "C"
