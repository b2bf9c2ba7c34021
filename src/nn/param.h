// Param: a named weight with its gradient. Everything that walks parameters (initialisation, optimizer, clipping,
// checkpoints, counting) does so through a model's visit(f) and goes by name, never by index.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/comm.h"
#include "core/exec.h"

namespace tera {

/// A part of a dimension that is shared out on its own. It is made of `units` equal things that are not cut (heads; by
/// default every index is one). Where there are fewer of them than ranks, neighbouring ranks hold the same one.
struct ShardSegment {
    std::int64_t size, units;
    ShardSegment(std::int64_t s) : size(s), units(s) {}
    ShardSegment(std::int64_t s, std::int64_t u) : size(s), units(u) {}
};

/// How a rank's piece is cut from the full tensor along `dim`. The dimension is first divided into `segments` (for a
/// fused matrix such as [q; k; v] or [gate; up]; none: it is one); a rank holds its share of each. dim < 0: replicated.
struct ShardSpec {
    int dim = -1;
    std::vector<ShardSegment> segments;
};

/// This rank among those that share out tensors.
struct TpPlace {
    int rank = 0, size = 1;
};

/// A rank's share of one segment: indices [full_begin, full_begin + count) of the full tensor's dimension, which stand
/// from local_begin on in the rank's piece.
struct ShardPiece {
    std::int64_t full_begin = 0, local_begin = 0, count = 0;
    int copies = 1, copy = 0;  ///< so many ranks hold the same, and this is which of them
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
    /// The gradient is written by matrix products alone: it may be kept in bf16, and the first product of a step may
    /// overwrite what it held.
    bool grad_by_product = false;
    TpPlace tp{};  ///< whose piece this is
    /// A parameter that two pipeline stages use: `owner` on the first, a copy on the last; gradients are summed over
    /// both.
    enum class Tie : std::uint8_t { none, owner, copy };
    Tie tie = Tie::none;
    Tensor value{};            ///< local piece, training dtype
    Tensor grad{};             ///< local piece, accumulates (+=)
    bool grad_is_old = false;  ///< it holds what is left of a step that is over, and counts as zero

    Shape local_shape() const;
    /// What of the full tensor is here; one piece with everything where it is replicated (dimension 0 then).
    std::vector<ShardPiece> pieces() const;
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

/// Elements [begin, begin + count) of a rank's piece of a parameter, as they lie in memory.
struct ParamSlice {
    Param* param = nullptr;
    std::int64_t begin = 0, count = 0;

    bool whole() const { return count == param->value.numel(); }
    /// Of the parameter's own shape if it is whole, else flat.
    Tensor value() const { return of(param->value); }
    Tensor grad() const { return of(param->grad); }

  private:
    Tensor of(const Tensor& t) const { return whole() ? t : Tensor(t.reshape({t.numel()}).slice(begin, count)); }
};
std::vector<ParamSlice> whole_slices(const std::vector<Param*>& params);

/// Slices of a list that are worked on together, one group after the other.
struct SliceGroups {
    int count = 1;             ///< a group may have no slice
    std::vector<int> of = {};  ///< each slice's; empty: all are in group 0
};

/// Neighbouring elements of a slice that are neighbours in the full tensor too.
struct ElementRun {
    std::int64_t local, full, count;  ///< first in the slice, first in the full tensor, how many
};
std::vector<ElementRun> runs_of(const ParamSlice& slice);

/// The parameters whose gradients have one dtype, one after the other in memory, values and gradients alike. The last
/// of the model comes first, so that backward fills the gradients in order.
struct ParamBuffer {
    Tensor values, grads;  ///< [n]; between parameters and at the end there may be unused elements
    std::vector<Param*> params;
    std::vector<std::int64_t> begins;  ///< where each parameter's elements start
};

/// How memory for parameters is cut.
struct ParamBuffers {
    int pieces = 1;           ///< a buffer is as long as a multiple of so many equal pieces
    std::int64_t bucket = 0;  ///< a buffer is full with so many elements; 0: it never is
    bool tied_apart = false;  ///< parameters that two stages use have buffers of their own
};
/// Gives every parameter memory for its value and its zeroed gradient.
std::vector<ParamBuffer> allocate_params(const std::vector<Param*>& params, Arena& arena, DType value_dtype,
                                         GradDTypes grad_dtypes, const ParamBuffers& cut = {});

/// Draws initial values as a function of (seed, parameter name, global index).
void init_params(const std::vector<Param*>& params, const Exec& exec, std::uint64_t seed);
/// The same for part of one, into memory of any number format.
void init_slice(const ParamSlice& slice, Tensor to, const Exec& exec, std::uint64_t seed);

/// Is told of parameters while a model runs; calls come in the order in which the work is enqueued.
class ParamObserver {
  public:
    virtual ~ParamObserver() = default;
    /// The next work of a forward pass reads the parameter.
    virtual void before_use(const Param& param) = 0;
    /// The backward pass has added all it will to the parameter's gradient.
    virtual void gradient_done(const Param& param) = 0;
};

void zero_grads(const std::vector<Param*>& params, const Exec& exec);

/// weight.grad += dyᵀ x, and db += Σ_t dy_t if it is there.
void add_product_grad(const Exec& exec, Param& weight, ConstTensor dy, ConstTensor x, Tensor db = {});

}  // namespace tera
