#include "nn/param.h"

#include "core/rng.h"
#include "ops/convert.h"
#include "ops/init.h"

namespace tera {

Shape Param::local_shape(int tp_size) const {
    Shape local = full_shape;
    if (shard.dim < 0) return local;
    std::int64_t whole = full_shape[shard.dim];
    TERA_CHECK(whole % tp_size == 0, name, " ", full_shape, " over ", tp_size, " ranks");
    local[shard.dim] = whole / tp_size;
    return local;
}

void allocate_params(const std::vector<Param*>& params, Arena& arena, DType value_dtype, GradDTypes grad_dtypes) {
    for (Param* p : params) {
        p->value = arena.tensor(value_dtype, p->local_shape(1));
        p->grad = arena.zeros(p->grad_by_product ? grad_dtypes.products : grad_dtypes.others, p->local_shape(1));
    }
}

void init_params(const std::vector<Param*>& params, const Exec& exec, std::uint64_t seed) {
    for (Param* p : params) {
        if (p->init.kind == Init::Kind::constant)
            ops::fill_constant(exec, p->value, p->init.value);
        else
            ops::fill_random(exec, p->value,
                             {p->init.kind == Init::Kind::normal, p->init.value, seed, hash_name(p->name)});
    }
}

void zero_grads(const std::vector<Param*>& params, const Exec& exec) {
    for (Param* p : params) ops::fill_zero(exec, p->grad);
}

}  // namespace tera
