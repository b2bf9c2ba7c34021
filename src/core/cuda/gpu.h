// Gpu: one device, the stream everything of a rank runs on, and the handles of the libraries.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <memory>
#include <string>

#include "core/memory.h"

namespace tera {

struct Gpu {
    /// UsageError, in one line, if there is no driver, no such device, or the device is too old.
    explicit Gpu(int device);
    /// A GPU that is not there, for dry runs: no stream, no libraries, no memory.
    struct OnPaper {};
    explicit Gpu(OnPaper);
    ~Gpu();
    Gpu(const Gpu&) = delete;
    Gpu& operator=(const Gpu&) = delete;

    const bool on_paper;
    int device;
    int multiprocessors = 0;
    bool hopper = true;  ///< of that generation; on paper too
    std::string name;
    std::size_t total_bytes = 0;
    cudaStream_t stream = nullptr;
    cublasLtHandle_t blas = nullptr;
    void* workspace = nullptr;
    static constexpr std::size_t workspace_bytes = std::size_t{64} << 20;
    std::size_t taken_bytes = workspace_bytes,
                most_taken_bytes = workspace_bytes;  ///< of device memory, by this program
    std::shared_ptr<void> gemm_plans, attention_plans, side_queue;
    int product_multiprocessors = 0;  ///< that matrix products may use; 0: all
    bool deterministic = false;       ///< the libraries may only use algorithms that always give the same bits

    void synchronize() const;
    void memory_info(std::size_t& free, std::size_t& total) const;
    /// Device memory, by plain allocations.
    MemorySource& memory() { return *memory_; }

  private:
    std::unique_ptr<MemorySource> memory_;
};

/// How many devices this process can use: 0 without a driver.
int gpu_count();
/// In the driver's words; empty if there is one.
std::string why_no_gpu();

}  // namespace tera
