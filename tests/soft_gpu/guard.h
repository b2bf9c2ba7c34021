// One lock around the whole GPU, and what becomes of a Fault: a line on stderr, and an error that stays.
#pragma once

#include <driver_types.h>

#include <cstddef>
#include <functional>
#include <string>

namespace soft_gpu {

/// Where a call is made: on a device that works, or also after a fault, because it gives something back.
enum class On { sound_device, any_device };

/// The body of a call, alone on the device. Its error is kept for cudaGetLastError. `who` is the call, or a kernel's
/// mangled name: it stands before the text of a Fault.
cudaError_t guarded(const char* who, const std::function<cudaError_t()>& body, On device = On::sound_device);

/// A kernel's name as it was written; other names as they are.
std::string demangled(const char* name);
/// One line on stderr.
void say(const char* who, const std::string& text);

/// For tests of the soft GPU itself: how many faults there have been; and to go on after one, with the count kept.
extern "C" int soft_gpu_faults();
extern "C" void soft_gpu_forget_faults();
/// For tests that hand out parts of an allocation: what was written there before does not count.
extern "C" void soft_gpu_forget_written(void* data, std::size_t bytes);

}  // namespace soft_gpu
