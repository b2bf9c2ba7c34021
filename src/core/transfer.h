// Copies between host memory and wherever a tensor lives. They wait; for set-up, checkpoints and tests.
#pragma once

#include "core/exec.h"

namespace tera {

void copy_to_host(const Exec& exec, void* out, ConstTensor from);
void copy_from_host(const Exec& exec, Tensor to, const void* in);

}  // namespace tera
