#include "core/engine.h"

#include "core/error.h"

#ifdef TERA_WITH_CUDA
#include "core/cuda/gpu.h"
#endif

namespace tera {

Device device_named(const std::string& name) {
    if (name.empty()) return Engine::gpus() > 0 ? Device::cuda : Device::cpu;
    if (name != "cpu" && name != "cuda") usage_error("--device ", name, ": must be cpu or cuda");
    return name == "cuda" ? Device::cuda : Device::cpu;
}

Engine::Engine() = default;
Engine::Engine(std::shared_ptr<Gpu> gpu) : gpu_(gpu.get()), owner_(std::move(gpu)) {}
Engine::~Engine() = default;

#ifdef TERA_WITH_CUDA

Engine::Engine(Device device, int index) : Engine(device == Device::cpu ? nullptr : std::make_shared<Gpu>(index)) {}
Engine Engine::on_paper() { return Engine(std::make_shared<Gpu>(Gpu::OnPaper{})); }

MemorySource& Engine::memory() const { return gpu_ ? gpu_->memory() : host_memory(); }
std::string Engine::name() const { return gpu_ ? gpu_->name : "CPU"; }
void Engine::synchronize() const {
    if (gpu_) gpu_->synchronize();
}
Engine::Memory Engine::memory_info() const {
    Memory memory;
    if (gpu_) gpu_->memory_info(memory.free, memory.total);
    return memory;
}
void Engine::set_deterministic(bool on) const {
    if (gpu_) gpu_->deterministic = on;
}
std::size_t Engine::own_bytes() const { return gpu_ ? Gpu::workspace_bytes : 0; }
Engine::Taken Engine::taken() const { return gpu_ ? Taken{gpu_->taken_bytes, gpu_->most_taken_bytes} : Taken{}; }
int Engine::gpus() { return gpu_count(); }
std::string Engine::why_no_gpu() { return tera::why_no_gpu(); }

#else

namespace {

[[noreturn]] void no_cuda() {
    usage_error("--device cuda: this program was built without CUDA; build it where nvcc is (scripts/build.sh) or ",
                "use --device cpu");
}

}  // namespace

Engine::Engine(Device device, int) {
    if (device != Device::cpu) no_cuda();
}
Engine Engine::on_paper() { no_cuda(); }

MemorySource& Engine::memory() const { return host_memory(); }
std::string Engine::name() const { return "CPU"; }
void Engine::synchronize() const {}
Engine::Memory Engine::memory_info() const { return {}; }
void Engine::set_deterministic(bool) const {}
std::size_t Engine::own_bytes() const { return 0; }
Engine::Taken Engine::taken() const { return {}; }
int Engine::gpus() { return 0; }
std::string Engine::why_no_gpu() { return ""; }

#endif

}  // namespace tera
