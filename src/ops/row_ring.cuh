// RowRing: rows of three tensors on their way into shared memory, several rounds ahead of their use. Hopper's copy
// engine moves whole rows; before it every thread copies its own sixteen bytes of each.
#pragma once

#include <cuda_pipeline.h>

#include "ops/cuda_types.cuh"

namespace tera::ops::cuda {

/// A round is R neighbouring rows of n elements, a pack for each thread. Every thread of a block makes all calls, and a
/// slot is asked for again only behind a barrier that comes after its last use.
template <class T, int R, int ahead>
class RowRing {
  public:
    static constexpr int inputs = 3;

    static std::size_t bytes(std::int64_t n) { return std::size_t{ahead} * inputs * R * sizeof(T) * n; }

    __device__ RowRing(unsigned char* memory, unsigned long long* arrived, const T* const (&from)[inputs],
                       std::int64_t rows, int n)
        : memory_(memory), arrived_(arrived), rows_(rows), n_(n) {
#pragma unroll
        for (int k = 0; k < inputs; ++k) from_[k] = from[k];
#if __CUDA_ARCH__ >= 900
        if (threadIdx.x == 0) {
            for (int slot = 0; slot < ahead; ++slot)
                asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(arrived_ + slot)) : "memory");
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        }
        __syncthreads();
#endif
    }

    /// Asks for the rows from r0 on; there may be fewer left than R, or none.
    __device__ void fetch(std::int64_t r0, int slot) {
        const int rows = static_cast<int>(rows_ - r0 < R ? rows_ - r0 : R);
#if __CUDA_ARCH__ >= 900
        if (threadIdx.x != 0 || rows <= 0) return;
        const unsigned bytes = static_cast<unsigned>(rows * n_) * sizeof(T), bar = shared(arrived_ + slot);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the slot has been read
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(inputs * bytes)
                     : "memory");
#pragma unroll
        for (int k = 0; k < inputs; ++k)
            asm volatile(
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                    shared(row(slot, k, 0))),
                "l"(from_[k] + r0 * n_), "r"(bytes), "r"(bar)
                : "memory");
#else
        const int at = static_cast<int>(threadIdx.x) * Raw<T>::n;
#pragma unroll
        for (int k = 0; k < inputs; ++k)
#pragma unroll
            for (int q = 0; q < R; ++q)
                if (q < rows && at < n_)
                    __pipeline_memcpy_async(row(slot, k, q) + at, from_[k] + (r0 + q) * n_ + at, 16);
        __pipeline_commit();
#endif
    }

    /// Until what was asked for into the slot is there; `turn` counts the slot's uses.
    __device__ void wait([[maybe_unused]] int slot, [[maybe_unused]] unsigned turn) const {
#if __CUDA_ARCH__ >= 900
        asm volatile(
            "{\n"
            ".reg .pred there;\n"
            "again: mbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;\n"
            "@!there bra again;\n"
            "}" ::"r"(shared(arrived_ + slot)),
            "r"(turn & 1)
            : "memory");
#else
        __pipeline_wait_prior(ahead - 1);
#endif
    }

    /// The calling thread's pack of row q of an input.
    __device__ Raw<T> pack(int slot, int input, int q) const {
        return load_raw(row(slot, input, q) + threadIdx.x * Raw<T>::n);
    }

  private:
    __device__ T* row(int slot, int input, int q) const {
        return reinterpret_cast<T*>(memory_) + ((slot * inputs + input) * R + q) * n_;
    }
    __device__ static unsigned shared(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

    unsigned char* memory_;
    unsigned long long* arrived_;  ///< [ahead], in shared memory
    const T* from_[inputs];
    std::int64_t rows_;
    int n_;
};

}  // namespace tera::ops::cuda
