// Matrices as Hopper's copy engine wants them described.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "core/error.h"

namespace tera {

inline auto find_encode() {
    using Encode = decltype(&cuTensorMapEncodeTiled);
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found) !=
        cudaSuccess)
        return Encode{};
    return reinterpret_cast<Encode>(function);
}

/// A matrix of bf16 in rows that are `step` elements apart, taken in boxes of so many columns and rows.
inline CUtensorMap map_of(const void* data, std::int64_t columns, std::int64_t rows, std::int64_t step, int box_columns,
                          int box_rows, bool swizzled) {
    static const auto encode = find_encode();
    TERA_CHECK(encode != nullptr, "the driver cannot describe matrices to the copy engine");
    CUtensorMap map{};
    const cuuint64_t size[2] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
    const cuuint64_t bytes[1] = {static_cast<cuuint64_t>(step) * 2};
    const cuuint32_t box[2] = {static_cast<cuuint32_t>(box_columns), static_cast<cuuint32_t>(box_rows)};
    const cuuint32_t every[2] = {1, 1};
    const CUresult result =
        encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(data), size, bytes, box, every,
               CU_TENSOR_MAP_INTERLEAVE_NONE, swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    TERA_CHECK(result == CUDA_SUCCESS, "a matrix of ", rows, " x ", columns, " for the copy engine: error ",
               static_cast<int>(result));
    return map;
}

}  // namespace tera
