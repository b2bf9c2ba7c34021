#include "soft_gpu/guard.h"

#include "soft_gpu/memory.h"

#include <cuda_runtime_api.h>
#include <cxxabi.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>

namespace soft_gpu {
namespace {

struct State {
    std::recursive_mutex mutex;
    bool spoilt = false;  ///< by a fault: every later call fails, as a real device's do
    int faults = 0;
};

/// Never destroyed: the program's last calls come when it ends.
State& state() {
    static State& only = *new State;
    return only;
}

thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

std::string demangled(const char* name) {
    const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name, nullptr, nullptr, nullptr),
                                                           &std::free);
    return text ? text.get() : name;
}

void say(const char* who, const std::string& text) {
    std::fprintf(stderr, "soft GPU: %s: %s\n", demangled(who).c_str(), text.c_str());
}

cudaError_t guarded(const char* who, const std::function<cudaError_t()>& body, On device) {
    State& all = state();
    const std::lock_guard lock(all.mutex);
    if (all.spoilt && device == On::sound_device) return cudaErrorIllegalAddress;
    cudaError_t result = cudaSuccess;
    try {
        result = body();
    } catch (const std::exception& error) {
        say(who, error.what());
        all.spoilt = true;
        ++all.faults;
    }
    if (all.spoilt) return cudaErrorIllegalAddress;
    if (result != cudaSuccess) last_error = result;
    return result;
}

extern "C" int soft_gpu_faults() {
    const std::lock_guard lock(state().mutex);
    return state().faults;
}

extern "C" void soft_gpu_forget_faults() {
    const std::lock_guard lock(state().mutex);
    state().spoilt = false;
    last_error = cudaSuccess;
}

extern "C" void soft_gpu_forget_written(void* data, std::size_t bytes) {
    guarded("soft_gpu_forget_written", [&] {
        if (bytes > 0) Memory::get().forget_written(data, bytes);
        return cudaSuccess;
    });
}

}  // namespace soft_gpu

namespace {

struct ErrorText {
    cudaError_t error;
    const char *name, *text;
};

constexpr ErrorText error_texts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice", "no kernel image for this device"},
    {cudaErrorInvalidPtx, "cudaErrorInvalidPtx", "PTX that cannot be translated"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
};

const ErrorText* find_text(cudaError_t error) {
    for (const ErrorText& each : error_texts) {
        if (each.error == error) return &each;
    }
    return nullptr;
}

cudaError_t current_error() {
    soft_gpu::State& all = soft_gpu::state();
    const std::lock_guard lock(all.mutex);
    return all.spoilt ? cudaErrorIllegalAddress : soft_gpu::last_error;
}

}  // namespace

extern "C" {

const char* cudaGetErrorString(cudaError_t error) {
    const ErrorText* known = find_text(error);
    return known ? known->text : "unrecognized error code";
}

const char* cudaGetErrorName(cudaError_t error) {
    const ErrorText* known = find_text(error);
    return known ? known->name : "unrecognized error code";
}

cudaError_t cudaPeekAtLastError() { return current_error(); }

cudaError_t cudaGetLastError() {
    const cudaError_t error = current_error();
    soft_gpu::last_error = cudaSuccess;
    return error;
}

}  // extern "C"
