// The CUDA half of core/transfer.h; no CUDA header is needed to include this.
#pragma once

#include <cstddef>

namespace tera {

struct Exec;
void cuda_copy_to_host(const Exec& exec, void* out, const std::byte* from, std::size_t bytes);
void cuda_copy_from_host(const Exec& exec, std::byte* to, const void* in, std::size_t bytes);

}  // namespace tera
