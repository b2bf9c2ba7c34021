#if defined(TERA_WITH_CUDA) && __has_include(<nccl.h>)

#include "comm/nccl_library.h"

#include <dlfcn.h>

#include <vector>

#include "core/error.h"

#ifndef TERA_CUDA_LIBRARY_DIR
#define TERA_CUDA_LIBRARY_DIR ""
#endif

namespace tera {
namespace {

NcclLibrary load() {
    void* file = nullptr;
    std::string problem;
    for (const char* name : {"libnccl.so.2", TERA_CUDA_LIBRARY_DIR "/libnccl.so.2", "libnccl.so"}) {
        file = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (file != nullptr) break;
        if (problem.empty()) problem = dlerror();
    }
    if (file == nullptr) {
        usage_error("several GPUs need NCCL, and libnccl.so.2 does not load (", problem,
                    "); install the package libnccl2, or name its folder in LD_LIBRARY_PATH");
    }
    NcclLibrary library;
    const auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(file, name));
        if (function == nullptr) usage_error("libnccl.so.2 has no ", name, ": NCCL 2.13 or newer is needed");
    };
    find(library.new_id, "ncclGetUniqueId");
    find(library.init_rank, "ncclCommInitRank");
    find(library.abort, "ncclCommAbort");
    find(library.all_reduce, "ncclAllReduce");
    find(library.all_gather, "ncclAllGather");
    find(library.reduce_scatter, "ncclReduceScatter");
    find(library.broadcast, "ncclBroadcast");
    find(library.send, "ncclSend");
    find(library.recv, "ncclRecv");
    find(library.group_start, "ncclGroupStart");
    find(library.group_end, "ncclGroupEnd");
    find(library.error_text, "ncclGetErrorString");
    find(library.last_error, "ncclGetLastError");
    return library;
}

}  // namespace

const NcclLibrary& nccl() {
    static const NcclLibrary library = load();
    return library;
}

void check_nccl(ncclResult_t status, const char* call) {
    if (status == ncclSuccess) return;
    const std::string detail = nccl().last_error(nullptr);
    if (detail.find("Duplicate GPU") != detail.npos) {
        usage_error(detail,
                    "; start as many ranks as there are GPUs, or share them with `teratron launch local --share-gpus`");
    }
    throw Error(cat(call, ": ", nccl().error_text(status), detail.empty() ? "" : ": ", detail));
}

}  // namespace tera

#endif
