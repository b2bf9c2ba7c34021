#include "ops/rope.h"

#include "ops/dispatch.h"

namespace tera::ops {

TERA_BACKENDS(void rope(const Exec& exec, Tensor qkv, const RopeTable& table, const std::int32_t* positions,
                        RopeHeads heads, bool inverse))

void rope(const Exec& exec, Tensor qkv, const RopeTable& table, const std::int32_t* positions, RopeHeads heads,
          bool inverse) {
    TERA_CHECK(heads.rotated * heads.head_dim <= qkv.cols() && 2 * table.cos.cols() <= heads.head_dim, "qkv ",
               qkv.shape, ", table ", table.cos.shape);
    TERA_DISPATCH(exec, rope(exec, qkv, table, positions, heads, inverse));
}

}  // namespace tera::ops
