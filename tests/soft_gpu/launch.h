// What the runtime asks of the machine: kernels by name, and to run one.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace soft_gpu {

struct Dim3 {
    unsigned x = 1, y = 1, z = 1;
    std::size_t count() const { return std::size_t{x} * y * z; }
};

struct Launch {
    Dim3 grid, block;
    std::size_t dynamic_shared = 0;
};

struct Function;  // a kernel, translated (program.h)

/// The kernels of one file of PTX. They are translated when they are asked for first.
class Module {
  public:
    explicit Module(std::string ptx);
    ~Module();
    /// Null if there is none of this name.
    const Function* find(std::string_view name);

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

/// Sizes of a kernel's parameters, in order; shared memory that it declares; the most threads of a block, or 0.
std::vector<std::size_t> parameter_sizes(const Function& f);
std::size_t static_shared(const Function& f);
unsigned most_threads(const Function& f);

/// Runs it to its end; args as for cudaLaunchKernel. Throws Fault.
void run(const Function& f, const Launch& launch, void** args);

}  // namespace soft_gpu
