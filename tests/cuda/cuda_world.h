// A rank on a GPU beside one on the CPU. Tests that need it call need_gpu() first and skip without one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "core/cuda/gpu.h"
#include "core/transfer.h"
#include "support/world.h"

#define NEED_GPU() \
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU in this machine"

/// Of the GPU in software: these bytes have no value. Null on others.
extern "C" void soft_gpu_forget_written(void* data, std::size_t bytes) __attribute__((weak));

namespace tera::test {

struct CudaWorld {
    Gpu gpu{0};
    ThreadPool pool{2};
    Arena keep{Arena::Kind::real, gpu.memory()}, temp{Arena::Kind::real, gpu.memory()},
        redo{Arena::Kind::real, gpu.memory()}, store{Arena::Kind::real, gpu.memory()};
    Ctx ctx{exec(keep), exec(temp), exec(redo)};

    Exec exec(Arena& arena) { return {Device::cuda, &arena, &pool, &gpu}; }
    void reset() {
        gpu.synchronize();
        keep.reset();
        temp.reset();
        redo.reset();
    }

    /// Whatever is written behind a tensor, by us or by a library, is seen when its memory is given back.
    CudaWorld() {
        constexpr int mark = 0x5a;
        Arena::Fence fence;
        fence.bytes = 256;
        fence.put = [this](std::byte* at, std::size_t bytes) {
            EXPECT_EQ(cudaMemsetAsync(at, mark, bytes, gpu.stream), cudaSuccess);
        };
        fence.check = [this](std::byte* at, std::size_t bytes) {
            std::vector<std::byte> found(bytes);
            if (cudaMemcpyAsync(found.data(), at, bytes, cudaMemcpyDeviceToHost, gpu.stream) != cudaSuccess ||
                cudaStreamSynchronize(gpu.stream) != cudaSuccess) {
                ADD_FAILURE() << cudaGetErrorString(cudaGetLastError());
                return;
            }
            const auto written =
                std::find_if(found.begin(), found.end(), [](std::byte b) { return b != std::byte{mark}; });
            EXPECT_EQ(written, found.end()) << written - found.begin() << " bytes behind the end of a tensor";
        };
        if (soft_gpu_forget_written) fence.handed_out = soft_gpu_forget_written;
        for (Arena* arena : {&keep, &temp, &redo, &store}) arena->set_fence(fence);
    }

    /// A copy on the GPU of a tensor on the CPU.
    Tensor up(ConstTensor host) {
        Tensor t = store.tensor(host.dtype, host.shape);
        copy_from_host(ctx.temp, t, host.data);
        return t;
    }
    template <class T>
    T* up(const std::vector<T>& host) {
        Tensor t = store.tensor(DType::u8, {static_cast<std::int64_t>(host.size() * sizeof(T))});
        copy_from_host(ctx.temp, t, host.data());
        return reinterpret_cast<T*>(t.data);
    }
    std::vector<double> down(ConstTensor t) {
        std::vector<std::byte> bytes(t.bytes());
        copy_to_host(ctx.temp, bytes.data(), t);
        ConstTensor host(TensorView<const std::byte>{bytes.data(), t.dtype, Device::cpu, t.shape});
        return values(host);
    }
    void expect_sentinels() {
        for (const Arena* arena : {&keep, &temp, &redo, &store}) arena->check_fences();
    }
};

/// Largest error allowed relative to the largest value: a few roundings of the type.
inline double cuda_bound(DType t) {
    switch (t) {
        case DType::f64:
            return 1e-12;
        case DType::f32:
            return 1e-5;
        case DType::f16:
            return 4e-3;
        default:
            return 2e-2;
    }
}

}  // namespace tera::test
