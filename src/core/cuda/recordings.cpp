#include "core/cuda/recordings.h"

#include "core/cuda/check.h"
#include "core/cuda/gpu.h"

namespace tera::cuda {

Recordings::~Recordings() {
    cudaStreamSynchronize(gpu_.stream);
    for (const auto& [key, recording] : recordings_)
        if (recording) cudaGraphExecDestroy(recording);
}

bool Recordings::play(const Key& key) {
    const auto found = recordings_.find(key);
    if (found == recordings_.end() || !found->second) return false;
    TERA_CUDA(cudaGraphLaunch(found->second, gpu_.stream));
    return true;
}

bool Recordings::record(const Key& key, const std::function<void()>& give) {
    if (!able_) return false;
    if (const auto found = recordings_.find(key); found == recordings_.end()) {
        std::size_t made = 0;
        for (const auto& [other, recording] : recordings_) made += recording != nullptr;
        if (recordings_.size() - made >= most_remembered)
            std::erase_if(recordings_, [](const auto& entry) { return entry.second == nullptr; });
        able_ = made < most;
        recordings_[key] = nullptr;
        return false;
    }
    std::size_t left = 0, total = 0;
    gpu_.memory_info(left, total);
    if (left < least_left_) {
        able_ = false;
        return false;
    }
    // Relaxed: what the host does meanwhile is its own business; only this stream is recorded, and what forks from it.
    if (cudaStreamBeginCapture(gpu_.stream, cudaStreamCaptureModeRelaxed) != cudaSuccess) {
        cudaGetLastError();
        able_ = false;
        return false;
    }
    cudaGraph_t graph = nullptr;
    try {
        give();
    } catch (...) {
        cudaStreamEndCapture(gpu_.stream, &graph);
        if (graph) cudaGraphDestroy(graph);
        throw;
    }
    TERA_CUDA(cudaStreamEndCapture(gpu_.stream, &graph));
    cudaGraphExec_t recording = nullptr;
    const cudaError_t status = cudaGraphInstantiate(&recording, graph, 0);
    cudaGraphDestroy(graph);
    if (status == cudaErrorMemoryAllocation)
        usage_error("the GPU has no memory left to record a micro-batch; add --no-cuda-graph");
    TERA_CUDA(status);
    recordings_[key] = recording;
    return play(key);
}

}  // namespace tera::cuda
