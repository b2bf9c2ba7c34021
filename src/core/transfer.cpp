#include "core/transfer.h"

#include <cstring>

#ifdef TERA_WITH_CUDA
#include "core/cuda/transfer.h"
#endif

namespace tera {

void copy_to_host([[maybe_unused]] const Exec& exec, void* out, ConstTensor from) {
#ifdef TERA_WITH_CUDA
    if (from.device == Device::cuda) return cuda_copy_to_host(exec, out, from.data, from.bytes());
#endif
    if (from.bytes()) std::memcpy(out, from.data, from.bytes());
}

void copy_from_host([[maybe_unused]] const Exec& exec, Tensor to, const void* in) {
#ifdef TERA_WITH_CUDA
    if (to.device == Device::cuda) return cuda_copy_from_host(exec, to.data, in, to.bytes());
#endif
    if (to.bytes()) std::memcpy(to.data, in, to.bytes());
}

}  // namespace tera
