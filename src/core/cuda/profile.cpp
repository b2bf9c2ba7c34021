// NVTX is a header: the first call looks for a tool (NVTX_INJECTION64_PATH), and without one a domain is a null
// pointer.
#include "core/profile.h"

#include <cuda_profiler_api.h>

#include <cstdio>

#include "core/cuda/check.h"

#if __has_include(<nvtx3/nvToolsExt.h>)

#include <nvtx3/nvToolsExt.h>

namespace tera {
namespace {

nvtxDomainHandle_t domain() {
    static const nvtxDomainHandle_t handle = nvtxDomainCreateA("teratron");
    return handle;
}

}  // namespace

bool profile::listening() { return domain() != nullptr; }

void profile::push(const char* name, std::int64_t number, const char* after) {
    char text[96];
    const char* gap = *after == '\0' ? "" : " ";
    if (number < 0)
        std::snprintf(text, sizeof text, "%s%s%s", name, gap, after);
    else
        std::snprintf(text, sizeof text, "%s %lld%s%s", name, static_cast<long long>(number), gap, after);
    nvtxEventAttributes_t event{};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = text;
    nvtxDomainRangePushEx(domain(), &event);
}

void profile::pop() { nvtxDomainRangePop(domain()); }

}  // namespace tera

#else

namespace tera {

bool profile::listening() { return false; }
void profile::push(const char*, std::int64_t, const char*) {}
void profile::pop() {}

}  // namespace tera

#endif

namespace tera {

void profiler_start() { TERA_CUDA(cudaProfilerStart()); }
void profiler_stop() { TERA_CUDA(cudaProfilerStop()); }

}  // namespace tera
