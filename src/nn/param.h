// Param: a named weight with its gradient. Everything that walks parameters (initialisation, optimizer, clipping,
// checkpoints, counting) does so through a model's visit(f) and goes by name, never by index.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/comm.h"
#include "core/exec.h"

namespace tera {

/// How a rank's piece is cut from the full tensor along `dim`. The dimension is first divided into `segments` (for a
/// fused matrix such as [q; k; v] or [gate; up]); a rank holds its share of each. dim < 0: replicated.
struct ShardSpec {
    int dim = -1;
    std::vector<std::int64_t> segments;
};

struct Init {
    enum class Kind : std::uint8_t { constant, normal, uniform };
    Kind kind = Kind::constant;
    double value = 0;  ///< the constant, the standard deviation, or the bound of the symmetric interval
};

struct Param {
    std::string name;       ///< global: "layers.17.mlp.down.weight", whatever the stage or rank
    Shape full_shape;       ///< of the whole tensor over all ranks
    ShardSpec shard;        ///< how this rank's piece is cut
    AxisSet sum_grad_over;  ///< mesh axes over which the local gradient is still a partial sum; must be said
    bool weight_decay;      ///< false for biases and other 1-D tensors
    Init init;
    bool grad_by_product = false;  ///< the gradient is written by matrix products alone, so it may be kept in bf16
    Tensor value{};                ///< local piece, training dtype
    Tensor grad{};                 ///< local piece, accumulates (+=)

    Shape local_shape(int tp_size) const;
};

/// All parameters of a model (anything with visit) as a list of pointers, in visiting order.
template <class Model>
std::vector<Param*> params_of(Model& model) {
    std::vector<Param*> list;
    model.visit([&](Param& p) { list.push_back(&p); });
    return list;
}

/// Number formats of gradients: of those that matrix products write (Param::grad_by_product), and of the others, which
/// is the accumulation dtype of the values.
struct GradDTypes {
    DType products, others;
    GradDTypes(DType all) : products(all), others(all) {}
    GradDTypes(DType of_products, DType of_others) : products(of_products), others(of_others) {}
};

/// Gives every parameter memory for its value and its zeroed gradient.
void allocate_params(const std::vector<Param*>& params, Arena& arena, DType value_dtype, GradDTypes grad_dtypes);

/// Draws initial values as a function of (seed, parameter name, global index).
void init_params(const std::vector<Param*>& params, const Exec& exec, std::uint64_t seed);

void zero_grads(const std::vector<Param*>& params, const Exec& exec);

}  // namespace tera
