#include "soft_gpu/tensor_map.h"

#include <cstring>

#include "soft_gpu/guard.h"
#include "soft_gpu/memory.h"

namespace soft_gpu {
namespace {

constexpr std::uint64_t map_magic = 0x70616d726f736e74u;

CUresult refused(CUresult result, const char* why) {
    say("cuTensorMapEncodeTiled", why);
    return result;
}

std::uint32_t bytes_of(CUtensorMapDataType type) {
    switch (type) {
        case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
        case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
            return 2;
        case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
            return 4;
        default:
            return 0;
    }
}

/// What the real one refuses too; null if there is nothing.
const char* fault_of(const TensorMap& map) {
    if (reinterpret_cast<std::uintptr_t>(map.address) % 16 != 0) return "the address is no multiple of 16";
    if (map.stride_bytes % 16 != 0) return "the stride is no multiple of 16 bytes";
    if (map.stride_bytes >= std::uint64_t{1} << 40) return "a stride of 2^40 bytes or more";
    for (int i = 0; i < 2; ++i) {
        if (map.sizes[i] == 0 || map.sizes[i] > std::uint64_t{1} << 32) return "a size of 0 or above 2^32";
        if (map.box[i] == 0 || map.box[i] > 256) return "a box of 0 or more than 256 elements";
    }
    const std::uint32_t inner_bytes = map.box[0] * map.element_bytes;
    if (inner_bytes % 16 != 0) return "a row of the box is no multiple of 16 bytes";
    if (map.swizzle && inner_bytes > 128) return "a row of the box has more bytes than are swizzled";
    return nullptr;
}

}  // namespace

const TensorMap& tensor_map_at(const void* map) {
    if (reinterpret_cast<std::uintptr_t>(map) % alignof(TensorMap) != 0) throw Fault("a tensor map is not aligned");
    const TensorMap& found = *static_cast<const TensorMap*>(map);
    if (found.magic != map_magic) throw Fault("where a tensor map should be is none");
    return found;
}

CUresult encode_tiled(CUtensorMap* out, CUtensorMapDataType type, cuuint32_t rank, void* address,
                      const cuuint64_t* sizes, const cuuint64_t* stride_bytes, const cuuint32_t* box,
                      const cuuint32_t* element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                      CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
    if (!out || !address || !sizes || !stride_bytes || !box || !element_strides)
        return refused(CUDA_ERROR_INVALID_VALUE, "a null pointer");
    if (reinterpret_cast<std::uintptr_t>(out) % 64 != 0)
        return refused(CUDA_ERROR_INVALID_VALUE, "the map itself is not aligned to 64 bytes");
    if (rank != 2) return refused(CUDA_ERROR_NOT_SUPPORTED, "only matrices are known here");
    if (bytes_of(type) == 0) return refused(CUDA_ERROR_NOT_SUPPORTED, "only f16, bf16 and f32 are known here");
    if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE ||
        element_strides[0] != 1 || element_strides[1] != 1)
        return refused(CUDA_ERROR_NOT_SUPPORTED, "interleaving, strides of elements and fills are not known here");
    if (swizzle != CU_TENSOR_MAP_SWIZZLE_NONE && swizzle != CU_TENSOR_MAP_SWIZZLE_128B)
        return refused(CUDA_ERROR_NOT_SUPPORTED, "only the swizzle of 128 bytes is known here");
    const TensorMap map{.magic = map_magic,
                        .address = static_cast<std::byte*>(address),
                        .sizes = {sizes[0], sizes[1]},
                        .stride_bytes = stride_bytes[0],
                        .box = {box[0], box[1]},
                        .element_bytes = bytes_of(type),
                        .swizzle = swizzle == CU_TENSOR_MAP_SWIZZLE_128B};
    if (const char* why = fault_of(map)) return refused(CUDA_ERROR_INVALID_VALUE, why);
    std::memset(out, 0, sizeof *out);
    std::memcpy(out, &map, sizeof map);
    return CUDA_SUCCESS;
}

}  // namespace soft_gpu
