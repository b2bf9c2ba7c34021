// A matrix product, and work that mostly moves memory, side by side: on a GPU some multiprocessors are left to the
// mover while the product keeps the others. Products run at the power limit, so a few multiprocessors less hardly slow
// them.
#pragma once

#include <functional>

#include "core/exec.h"

namespace tera::ops {

/// Neither needs what the other writes, and the product takes no scratch memory. `bytes`: what the mover reads and
/// writes; below some dozens of MiB they run one after the other, as on the CPU.
void product_beside(const Exec& exec, const std::function<void()>& product, std::size_t bytes,
                    const std::function<void()>& mover);

}  // namespace tera::ops
