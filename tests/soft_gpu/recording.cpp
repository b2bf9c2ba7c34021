#include "soft_gpu/recording.h"

#include <cuda_runtime_api.h>

#include <memory>
#include <set>

#include "soft_gpu/guard.h"
#include "soft_gpu/streams.h"

namespace soft_gpu {

Recording*& Recording::under_way() {
    static thread_local Recording* recording = nullptr;
    return recording;
}

void Recording::keep(cudaStream_t stream, const Work& work) {
    ++streams_[stream].given;
    work_.push_back(work);
}

cudaError_t Recording::give(cudaStream_t stream, const Work& work) {
    if (!has(stream)) return work();
    under_way()->keep(stream, work);
    return cudaSuccess;
}

cudaError_t Recording::record(cudaEvent_t event, cudaStream_t stream, const Work& work) {
    keep(stream, work);
    events_[event] = {stream, streams_[stream].given};
    return cudaSuccess;
}

cudaError_t Recording::wait(cudaStream_t stream, cudaEvent_t event, const Work& work) {
    const auto mark = events_.find(event);
    if (mark == events_.end()) return cudaErrorStreamCaptureIsolation;  // it tells of what is not in here
    keep(stream, work);
    if (stream == origin_) streams_[mark->second.stream].joined = mark->second.given;
    return cudaSuccess;
}

cudaError_t Recording::end(cudaStream_t stream) const {
    if (stream != origin_) return cudaErrorStreamCaptureUnmatched;
    for (const auto& [other, state] : streams_)
        if (other != origin_ && state.joined < state.given) return cudaErrorStreamCaptureUnjoined;
    return cudaSuccess;
}

cudaError_t Recording::play() const {
    for (const Work& work : work_)
        if (const cudaError_t error = work(); error != cudaSuccess) return error;
    return cudaSuccess;
}

namespace {

/// Handles that are out.
std::set<const Recording*>& handles() {
    static std::set<const Recording*> set;
    return set;
}
template <class Handle>
Recording* recording_of(Handle handle) {
    auto* recording = reinterpret_cast<Recording*>(handle);
    return handles().count(recording) ? recording : nullptr;
}
template <class Handle>
Handle handed_out(std::unique_ptr<Recording> recording) {
    handles().insert(recording.get());
    return reinterpret_cast<Handle>(recording.release());
}
cudaError_t give_back(Recording* recording) {
    if (handles().erase(recording) == 0) return cudaErrorInvalidValue;
    delete recording;
    return cudaSuccess;
}

}  // namespace
}  // namespace soft_gpu

using soft_gpu::guarded;
using soft_gpu::Recording;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    return guarded("cudaStreamBeginCapture", [=] {
        if (!stream || !soft_gpu::is_stream(stream)) return cudaErrorStreamCaptureUnsupported;
        if (Recording::under_way()) return cudaErrorIllegalState;
        Recording::under_way() = new Recording(stream);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* out) {
    return guarded("cudaStreamEndCapture", [=] {
        *out = nullptr;
        std::unique_ptr<Recording> recording(Recording::under_way());
        if (!recording) return cudaErrorIllegalState;
        Recording::under_way() = nullptr;
        const cudaError_t error = recording->end(stream);
        if (error == cudaSuccess) *out = soft_gpu::handed_out<cudaGraph_t>(std::move(recording));
        return error;
    });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
    return guarded("cudaGraphInstantiate", [=] {
        const Recording* recording = soft_gpu::recording_of(graph);
        if (!recording) return cudaErrorInvalidValue;
        *out = soft_gpu::handed_out<cudaGraphExec_t>(std::make_unique<Recording>(*recording));
        return cudaSuccess;
    });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
    Recording* recording = nullptr;
    const cudaError_t error = guarded("cudaGraphLaunch", [&] {
        recording = soft_gpu::recording_of(graph);
        return recording && soft_gpu::is_stream(stream) ? cudaSuccess : cudaErrorInvalidValue;
    });
    return error == cudaSuccess ? recording->play() : error;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    return guarded("cudaGraphDestroy", [=] { return soft_gpu::give_back(soft_gpu::recording_of(graph)); });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    return guarded("cudaGraphExecDestroy", [=] { return soft_gpu::give_back(soft_gpu::recording_of(graph)); });
}

}  // extern "C"
