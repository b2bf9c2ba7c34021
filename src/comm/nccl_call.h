// What a call of NCCL is given: tensors in NCCL's terms, the stream, and the words that name it. TERA_NCCL checks it.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "comm/nccl_library.h"
#include "core/cuda/gpu.h"
#include "core/lane.h"

#define TERA_NCCL(function, ...) check_nccl(nccl().function(__VA_ARGS__), #function)

namespace tera {

inline ncclDataType_t type_of(DType dtype) {
    switch (dtype) {
        case DType::f64:
            return ncclFloat64;
        case DType::f32:
            return ncclFloat32;
        case DType::bf16:
            return ncclBfloat16;
        case DType::f16:
            return ncclFloat16;
        case DType::i64:
            return ncclInt64;
        case DType::i32:
            return ncclInt32;
        default:
            return ncclUint8;
    }
}

inline std::size_t count_of(const ConstTensor& t) { return static_cast<std::size_t>(t.numel()); }

inline cudaStream_t stream_of(const Exec& exec) {
    return exec.lane == nullptr ? exec.gpu->stream : static_cast<cudaStream_t>(exec.lane->stream());
}

inline std::string text_of(const char* call, const ConstTensor& data, int ranks) {
    return cat(call, " of ", data.numel(), " ", name_of(data.dtype), " over ", ranks, " ranks");
}

}  // namespace tera
