// What the copy engine is told about a matrix: our own words in the 128 bytes of a CUtensorMap.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace soft_gpu {

struct TensorMap {
    std::uint64_t magic;
    std::byte* address;
    std::uint64_t sizes[2];      ///< columns and rows, in elements: the inner one first
    std::uint64_t stride_bytes;  ///< from a row to the next
    std::uint32_t box[2];
    std::uint32_t element_bytes;
    std::uint32_t swizzle;  ///< 0: none, 1: 128 bytes
};
static_assert(sizeof(TensorMap) <= sizeof(CUtensorMap));

/// A Fault if nobody has written one there.
const TensorMap& tensor_map_at(const void* map);

/// Stands in for cuTensorMapEncodeTiled, and has its arguments.
CUresult encode_tiled(CUtensorMap* out, CUtensorMapDataType type, cuuint32_t rank, void* address,
                      const cuuint64_t* sizes, const cuuint64_t* stride_bytes, const cuuint32_t* box,
                      const cuuint32_t* element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                      CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);

}  // namespace soft_gpu
