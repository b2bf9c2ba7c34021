// The functions of NCCL that are used, from the library as this machine has it.
#pragma once

#include <nccl.h>

#include <string>

namespace tera {

struct NcclLibrary {
    decltype(&ncclGetUniqueId) new_id = nullptr;
    decltype(&ncclCommInitRank) init_rank = nullptr;
    decltype(&ncclCommAbort) abort = nullptr;
    decltype(&ncclAllReduce) all_reduce = nullptr;
    decltype(&ncclAllGather) all_gather = nullptr;
    decltype(&ncclReduceScatter) reduce_scatter = nullptr;
    decltype(&ncclBroadcast) broadcast = nullptr;
    decltype(&ncclSend) send = nullptr;
    decltype(&ncclRecv) recv = nullptr;
    decltype(&ncclGroupStart) group_start = nullptr;
    decltype(&ncclGroupEnd) group_end = nullptr;
    decltype(&ncclGetErrorString) error_text = nullptr;
    decltype(&ncclGetLastError) last_error = nullptr;
};

/// Loaded once. UsageError if there is none.
const NcclLibrary& nccl();

/// Throws, with NCCL's own words, unless `status` is success.
void check_nccl(ncclResult_t status, const char* call);

}  // namespace tera
