// KernelTrace: what the GPU did and when, from the driver's own records (CUPTI's activity interface).
//
// libcupti comes with the CUDA toolkit. It is loaded when the first trace is asked for, so the program starts and runs
// without it; then, and in a build without CUDA, ready() is false and why_not() says in a few words what is missing.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tera {

struct DeviceWork {
    enum class Kind : std::uint8_t { kernel, copy, fill };
    Kind kind = Kind::kernel;
    std::string name;                        ///< of a kernel, demangled; else "copy host to device" and such
    std::uint64_t start_ns = 0, end_ns = 0;  /// on the GPU's clock
    std::array<int, 3> grid{};               ///< thread blocks; zeros for copies
    std::uint32_t stream = 0;
    std::uint64_t bytes = 0;  ///< moved or filled
};

class KernelTrace {
  public:
    KernelTrace();
    bool ready() const { return why_not_.empty(); }
    const std::string& why_not() const { return why_not_; }

    /// Only when ready(). Kernels may still run at the same time; each costs a little more while it is recorded.
    void start();
    /// Waits for the device; everything it did since start(), by time.
    std::vector<DeviceWork> stop();

  private:
    std::string why_not_;
};

}  // namespace tera
