#include "nn/param.h"

#include <cmath>

#include "core/rng.h"
#include "ops/convert.h"

namespace tera {

Shape Param::local_shape(int tp_size) const {
    Shape local = full_shape;
    if (shard.dim < 0) return local;
    std::int64_t whole = full_shape[shard.dim];
    TERA_CHECK(whole % tp_size == 0, name, " ", full_shape, " over ", tp_size, " ranks");
    local[shard.dim] = whole / tp_size;
    return local;
}

void allocate_params(const std::vector<Param*>& params, Arena& arena, DType value_dtype, DType grad_dtype) {
    for (Param* p : params) {
        p->value = arena.tensor(value_dtype, p->local_shape(1));
        p->grad = arena.zeros(grad_dtype, p->local_shape(1));
    }
}

namespace {

template <class T>
void draw(const Exec& exec, const Param& p, std::uint64_t seed) {
    T* out = p.value.ptr<T>();
    std::int64_t n = p.value.numel();
    std::uint64_t stream = hash_name(p.name);
    auto scale = static_cast<float>(p.init.value);
    bool normal = p.init.kind == Init::Kind::normal;
    parallel_for(exec, (n + 3) / 4, 1 << 13, [&](std::int64_t g0, std::int64_t g1) {
        for (std::int64_t g = g0; g < g1; ++g) {
            U32x4 words = weight_words(seed, stream, static_cast<std::uint64_t>(g));
            F32x4 values;
            if (normal)
                values = normals(words);
            else
                for (int i = 0; i < 4; ++i) values.v[i] = fmaf(static_cast<float>(words.v[i]), 0x1p-31f, -1.0f);
            for (std::int64_t i = 4 * g, lane = 0; lane < 4 && i < n; ++i, ++lane) out[i] = T(values.v[lane] * scale);
        }
    });
}

}  // namespace

void init_params(const std::vector<Param*>& params, const Exec& exec, std::uint64_t seed) {
    for (Param* p : params)
        dispatch_float(p->value.dtype, [&](auto zero) {
            using T = decltype(zero);
            if (p->init.kind != Init::Kind::constant) return draw<T>(exec, *p, seed);
            auto value = static_cast<T>(static_cast<float>(p->init.value));
            std::fill_n(p->value.ptr<T>(), p->value.numel(), value);
        });
}

void zero_grads(const std::vector<Param*>& params, const Exec& exec) {
    for (Param* p : params) ops::fill_zero(exec, p->grad);
}

}  // namespace tera
