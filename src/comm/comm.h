// Comm: the one interface through which ranks talk. Implementations: self (one rank); thread, mpi and nccl stand beside
// it. Axis names the directions of the mesh of ranks.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>

#include "core/exec.h"

namespace tera {

enum class Axis : std::uint8_t { tp, cp, dp, pp };

/// A set of mesh axes.
struct AxisSet {
    std::uint8_t bits = 0;
    AxisSet(std::initializer_list<Axis> axes) {
        for (Axis a : axes) bits = static_cast<std::uint8_t>(bits | (1u << static_cast<int>(a)));
    }
    bool has(Axis a) const { return (bits >> static_cast<int>(a)) & 1u; }
};

enum class Reduce : std::uint8_t { sum, max };

class Comm {
  public:
    virtual ~Comm() = default;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    /// Element-wise reduction over all ranks, in place.
    virtual void all_reduce(const Exec& exec, Tensor data, Reduce op) = 0;
    /// out = the ranks' inputs, one after the other.
    virtual void all_gather(const Exec& exec, ConstTensor in, Tensor out) = 0;
    /// out = this rank's piece of the sum of the ranks' inputs.
    virtual void reduce_scatter(const Exec& exec, ConstTensor in, Tensor out) = 0;
    virtual void barrier() = 0;
};

/// The world of one rank: reductions leave the data as it is, gathers copy.
std::unique_ptr<Comm> make_self_comm();

}  // namespace tera
