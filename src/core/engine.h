// Engine: the device that a rank computes on, opened once and shared by everything the rank owns. A plain view of it
// for code that must not see CUDA's headers.
#pragma once

#include <memory>
#include <string>

#include "core/exec.h"

namespace tera {

class Engine {
  public:
    /// The CPU.
    Engine();
    /// A device; `index` counts this machine's GPUs. UsageError, in one line, if there is no driver, no such GPU, or it
    /// is too old, or the build has no CUDA.
    explicit Engine(Device device, int index = 0);
    /// A GPU that need not be there, for dry runs alone. UsageError if the build has no CUDA.
    static Engine on_paper();
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    Device device() const { return gpu_ ? Device::cuda : Device::cpu; }
    Gpu* gpu() const { return gpu_; }
    MemorySource& memory() const;
    Exec exec(Arena& arena, ThreadPool& pool) const { return {device(), &arena, &pool, gpu_}; }

    /// "NVIDIA H200", or "CPU".
    std::string name() const;
    /// Waits until everything enqueued so far is done.
    void synchronize() const;

    struct Memory {
        std::size_t free = 0, total = 0;
    };
    /// Of the GPU, as the driver sees it; zeros on the CPU.
    Memory memory_info() const;
    /// From now on the same input gives the same bits in every run (--deterministic-mode). The CPU always does.
    void set_deterministic(bool on) const;
    /// What the engine itself took: the scratch memory of the libraries.
    std::size_t own_bytes() const;
    /// Device memory that this program has taken, and the most it had; zeros on the CPU. The driver's context and
    /// NCCL's buffers come on top.
    struct Taken {
        std::size_t now = 0, most = 0;
    };
    Taken taken() const;

    /// The GPU of a rank by its number on the machine; where a process sees one only (as under `srun
    /// --gpus-per-task=1`), that one.
    static int gpu_of_rank(int local_rank) { return gpus() == 1 ? 0 : local_rank; }
    /// How many GPUs this process can use: 0 without a driver or without CUDA in the build.
    static int gpus();
    /// Why there is none to use; empty if there is one, or if the program was built for CPUs.
    static std::string why_no_gpu();

  private:
    explicit Engine(std::shared_ptr<Gpu> gpu);

    Gpu* gpu_ = nullptr;
    std::shared_ptr<Gpu> owner_;
};

/// "cpu", "cuda", or "" for what is there. UsageError for anything else, naming --device.
Device device_named(const std::string& name);

}  // namespace tera
