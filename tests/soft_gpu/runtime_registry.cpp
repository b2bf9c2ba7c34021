// Kernels. nvcc's code tells us its files of kernels before main begins, and which function of the host stands for
// which kernel; a launch comes with such a function, or with the handle that we gave out for it.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "soft_gpu/device_limits.h"
#include "soft_gpu/fat_binary.h"
#include "soft_gpu/guard.h"
#include "soft_gpu/launch.h"
#include "soft_gpu/recording.h"
#include "soft_gpu/streams.h"

using soft_gpu::guarded;
using soft_gpu::On;

namespace {

/// One object file's.
struct Binary {
    const void* wrapper;
    std::unique_ptr<soft_gpu::Module> module;  ///< from the first launch on
    std::vector<std::string> variables;        ///< of the device; the host cannot reach them
};

}  // namespace

struct CUkern_st {
    Binary* binary;
    std::string name;                         ///< as in the PTX
    std::optional<std::size_t> most_dynamic;  ///< bytes of shared memory that have been asked for
};

namespace {

using Kernel = CUkern_st;

struct Registry {
    std::vector<std::unique_ptr<Binary>> binaries;
    std::map<const void*, std::unique_ptr<Kernel>> by_stub;
    std::set<const void*> handles;
};

/// Never destroyed: the program's last calls come when it ends.
Registry& registry() {
    static Registry& only = *new Registry;
    return only;
}

/// By its function of the host or by its handle.
Kernel* find_kernel(const void* function) {
    Registry& all = registry();
    if (all.handles.contains(function)) return const_cast<Kernel*>(static_cast<const Kernel*>(function));
    const auto at = all.by_stub.find(function);
    return at == all.by_stub.end() ? nullptr : at->second.get();
}

/// Null, and why, if there is no such kernel or it cannot be translated. That concerns this kernel alone, so it is no
/// fault of the device.
const soft_gpu::Function* function_of(Kernel& kernel, cudaError_t& why) {
    why = cudaErrorNoKernelImageForDevice;
    try {
        Binary& binary = *kernel.binary;
        if (!binary.module) binary.module = std::make_unique<soft_gpu::Module>(soft_gpu::ptx_of(binary.wrapper));
        why = cudaErrorInvalidPtx;
        if (const soft_gpu::Function* function = binary.module->find(kernel.name)) return function;
        why = cudaErrorInvalidDeviceFunction;
        soft_gpu::say(kernel.name.c_str(), "there is no PTX of this name");
    } catch (const std::exception& error) {
        soft_gpu::say(kernel.name.c_str(), error.what());
    }
    return nullptr;
}

cudaError_t refused(const Kernel& kernel, cudaError_t error, const std::string& why) {
    soft_gpu::say(kernel.name.c_str(), "not launched: " + why);
    return error;
}

std::string text(const dim3& d) {
    return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " + std::to_string(d.z);
}

bool within(const dim3& d, const int (&largest)[3]) {
    const unsigned sizes[3] = {d.x, d.y, d.z};
    for (int i = 0; i < 3; ++i) {
        if (sizes[i] == 0 || sizes[i] > static_cast<unsigned>(largest[i])) return false;
    }
    return true;
}

/// Dynamic shared memory that a block may have.
std::size_t dynamic_limit(const Kernel& kernel, std::size_t fixed) {
    if (kernel.most_dynamic) return *kernel.most_dynamic;
    return soft_gpu::shared_by_default - std::min(fixed, soft_gpu::shared_by_default);
}

cudaError_t launch(Kernel* kernel, dim3 grid, dim3 block, void** args, std::size_t dynamic, cudaStream_t stream) {
    if (!kernel) return cudaErrorInvalidDeviceFunction;
    if (!soft_gpu::is_stream(stream)) return cudaErrorInvalidResourceHandle;
    cudaError_t why = cudaSuccess;
    const soft_gpu::Function* function = function_of(*kernel, why);
    if (!function) return why;
    const std::size_t threads = std::size_t{block.x} * block.y * block.z;
    if (!within(grid, soft_gpu::largest_grid))
        return refused(*kernel, cudaErrorInvalidConfiguration, "a grid of " + text(grid) + " blocks");
    if (!within(block, soft_gpu::largest_block) || threads > soft_gpu::threads_per_block)
        return refused(*kernel, cudaErrorInvalidConfiguration, "a block of " + text(block) + " threads");
    if (const unsigned most = soft_gpu::most_threads(*function); most != 0 && threads > most)
        return refused(*kernel, cudaErrorInvalidValue,
                       std::to_string(threads) + " threads, and its launch bounds allow " + std::to_string(most));
    const std::size_t fixed = soft_gpu::static_shared(*function);
    if (dynamic > dynamic_limit(*kernel, fixed) || fixed + dynamic > soft_gpu::shared_per_block)
        return refused(*kernel, cudaErrorInvalidValue,
                       std::to_string(fixed) + " + " + std::to_string(dynamic) + " bytes of shared memory");
    const soft_gpu::StreamOrder::Working here(soft_gpu::queue_of(stream), kernel->name.c_str());
    soft_gpu::run(*function, {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, dynamic}, args);
    return cudaSuccess;
}

cudaError_t guarded_launch(const char* call, const void* function, dim3 grid, dim3 block, void** args,
                           std::size_t dynamic, cudaStream_t stream) {
    const Kernel* named = nullptr;
    // Also after a fault: only to have the name.
    (void)guarded(
        call, [&] { return named = find_kernel(function), cudaSuccess; }, On::any_device);
    const char* const who = named ? named->name.c_str() : call;
    const auto give = [=](void** with) {
        return guarded(who, [=] { return launch(find_kernel(function), grid, block, with, dynamic, stream); });
    };
    if (!soft_gpu::Recording::has(stream)) return give(args);
    // The arguments are those of now.
    std::vector<std::vector<std::byte>> kept;
    const cudaError_t error = guarded(who, [&] {
        Kernel* const kernel = find_kernel(function);
        cudaError_t why = cudaErrorInvalidDeviceFunction;
        const soft_gpu::Function* const translated = kernel ? function_of(*kernel, why) : nullptr;
        if (!translated) return why;
        for (const std::size_t size : soft_gpu::parameter_sizes(*translated)) {
            const auto* const from = static_cast<const std::byte*>(args[kept.size()]);
            kept.emplace_back(from, from + size);
        }
        return cudaSuccess;
    });
    if (error != cudaSuccess) return error;
    return soft_gpu::Recording::give(stream, [give, kept]() mutable {
        std::vector<void*> places;
        for (std::vector<std::byte>& argument : kept) places.push_back(argument.data());
        return give(places.data());
    });
}

/// What stands between <<< and >>>, until the kernel's stub takes it.
struct Configuration {
    dim3 grid, block;
    std::size_t dynamic;
    cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;

}  // namespace

extern "C" {

// What nvcc's code calls. cuda_runtime_api.h does not declare it.

void** __cudaRegisterFatBinary(void* wrapper) {
    Binary* binary = nullptr;
    const auto body = [&] {
        binary = registry().binaries.emplace_back(new Binary{wrapper, nullptr, {}}).get();
        return cudaSuccess;
    };
    (void)guarded("__cudaRegisterFatBinary", body, On::any_device);
    return reinterpret_cast<void**>(binary);
}

void __cudaRegisterFatBinaryEnd(void**) {}

/// When the program ends, and with it what is kept here.
void __cudaUnregisterFatBinary(void**) {}

char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void** binary, const char* stub, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
    const auto body = [=] {
        auto& place = registry().by_stub[stub];
        place.reset(new Kernel{reinterpret_cast<Binary*>(binary), name, {}});
        registry().handles.insert(place.get());
        return cudaSuccess;
    };
    (void)guarded("__cudaRegisterFunction", body, On::any_device);
}

void __cudaRegisterVar(void** binary, char*, char*, const char* name, int, std::size_t, int, int) {
    const auto body = [=] {
        reinterpret_cast<Binary*>(binary)->variables.emplace_back(name);
        return cudaSuccess;
    };
    (void)guarded("__cudaRegisterVar", body, On::any_device);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t dynamic, cudaStream_t stream) {
    configurations.push_back({grid, block, dynamic, stream});
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* dynamic, void* stream) {
    if (configurations.empty()) return cudaErrorMissingConfiguration;
    const Configuration last = configurations.back();
    configurations.pop_back();
    *grid = last.grid;
    *block = last.block;
    *dynamic = last.dynamic;
    *static_cast<cudaStream_t*>(stream) = last.stream;
    return cudaSuccess;
}

/// Asked for once per stub, so also after a fault.
cudaError_t __cudaGetKernel(cudaKernel_t* out, const void* stub) {
    const auto body = [=] {
        *out = find_kernel(stub);
        return *out ? cudaSuccess : cudaErrorInvalidDeviceFunction;
    };
    return guarded("__cudaGetKernel", body, On::any_device);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, std::size_t dynamic,
                               cudaStream_t stream) {
    return guarded_launch("__cudaLaunchKernel", kernel, grid, block, args, dynamic, stream);
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args, std::size_t dynamic,
                             cudaStream_t stream) {
    return guarded_launch("cudaLaunchKernel", function, grid, block, args, dynamic, stream);
}

// What can be asked about a kernel.

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
    return guarded("cudaFuncSetAttribute", [=] {
        Kernel* kernel = find_kernel(function);
        if (!kernel) return cudaErrorInvalidDeviceFunction;
        if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
        if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0) return cudaErrorInvalidValue;
        cudaError_t why = cudaSuccess;
        const soft_gpu::Function* translated = function_of(*kernel, why);
        if (!translated) return why;
        const std::size_t bytes = static_cast<std::size_t>(value);
        if (soft_gpu::static_shared(*translated) + bytes > soft_gpu::shared_per_block) return cudaErrorInvalidValue;
        kernel->most_dynamic = bytes;
        return cudaSuccess;
    });
}

/// By threads and shared memory. How many registers a thread would have is not known.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int threads,
                                                                   std::size_t dynamic, unsigned) {
    return guarded("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [=] {
        Kernel* kernel = find_kernel(function);
        if (!kernel) return cudaErrorInvalidDeviceFunction;
        if (!blocks || threads <= 0) return cudaErrorInvalidValue;
        cudaError_t why = cudaSuccess;
        const soft_gpu::Function* translated = function_of(*kernel, why);
        if (!translated) return why;
        const std::size_t fixed = soft_gpu::static_shared(*translated);
        const unsigned bound = soft_gpu::most_threads(*translated);
        const int most = bound ? static_cast<int>(bound) : soft_gpu::threads_per_block;
        *blocks = 0;
        if (threads > most || dynamic > dynamic_limit(*kernel, fixed)) return cudaSuccess;
        const int whole_warps = (threads + 31) / 32 * 32;
        const int by_threads = soft_gpu::threads_per_multiprocessor / whole_warps;
        const int by_shared =
            static_cast<int>(soft_gpu::shared_per_multiprocessor / (fixed + dynamic + soft_gpu::shared_reserved));
        *blocks = std::min({by_threads, by_shared, soft_gpu::blocks_per_multiprocessor});
        return cudaSuccess;
    });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                          std::size_t dynamic) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, dynamic, 0);
}

}  // extern "C"
