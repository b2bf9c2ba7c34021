// A rank on a GPU beside one on the CPU. Tests that need it call need_gpu() first and skip without one.
#pragma once

#include <gtest/gtest.h>

#include "core/cuda/gpu.h"
#include "core/transfer.h"
#include "support/world.h"

#define NEED_GPU() \
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU in this machine"

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

    static constexpr std::int64_t guard = 64;  // elements before and after, to see writes outside

    /// A copy on the GPU of a tensor on the CPU, between sentinels.
    Tensor up(ConstTensor host) {
        std::size_t item = size_of(host.dtype), around = static_cast<std::size_t>(guard) * item;
        Tensor whole = store.tensor(DType::u8, {static_cast<std::int64_t>(host.bytes() + 2 * around)});
        std::vector<std::byte> bytes(whole.bytes(), std::byte{0x5a});
        std::memcpy(bytes.data() + around, host.data, host.bytes());
        copy_from_host(ctx.temp, whole, bytes.data());
        guarded_.push_back({whole, around});
        return Tensor(whole.data + around, host.dtype, Device::cuda, host.shape);
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
        for (auto& [whole, around] : guarded_) {
            std::vector<std::byte> bytes(whole.bytes());
            copy_to_host(ctx.temp, bytes.data(), whole);
            for (std::size_t i = 0; i < around; ++i) {
                ASSERT_EQ(bytes[i], std::byte{0x5a}) << "written before a tensor";
                ASSERT_EQ(bytes[bytes.size() - 1 - i], std::byte{0x5a}) << "written after a tensor";
            }
        }
    }

  private:
    struct Guarded {
        Tensor whole;
        std::size_t around;
    };
    std::vector<Guarded> guarded_;
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
