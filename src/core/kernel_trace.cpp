#include "core/kernel_trace.h"

#ifndef TERA_WITH_CUDA

#include "core/error.h"

namespace tera {

KernelTrace::KernelTrace() : why_not_("this program was built without CUDA") {}
void KernelTrace::start() { TERA_CHECK(ready(), why_not_); }
std::vector<DeviceWork> KernelTrace::stop() { throw Error("no trace was started: " + why_not_); }

}  // namespace tera

#endif
