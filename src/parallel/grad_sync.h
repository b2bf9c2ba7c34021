// GradSync: what ranks do with the gradients between the last backward pass and the optimizer, and with the values
// after it.
//
//   1  sums over tp, where Param::sum_grad_over says so: parameters that are whole on every rank and see its rows only
//   2  sums over the ranks that hold the same unit of a cut parameter (a key/value head with fewer of them than ranks)
//   3  sums over dp and cp, a buffer at a time: all-reduce, or with the distributed optimizer reduce-scatter, after
//   which
//      rank r of R has the sums of elements [r n/R, (r+1) n/R) of a buffer of n
//   4  after the step, with the distributed optimizer: all-gather of the values, and the gradients are zeroed
//
// Averages are taken in the loss (train/train_step.h), so here are only sums. With one rank nothing happens.
#pragma once

#include <vector>

#include "comm/mesh.h"
#include "nn/param.h"

namespace tera {

class GradSync {
  public:
    /// The mesh must outlive it; `buffers` as allocate_params gave them for `params`, in pieces() pieces.
    GradSync(const Mesh& mesh, const std::vector<Param*>& params, std::vector<ParamBuffer> buffers,
             bool distributed_optimizer);

    /// Into how many equal pieces buffers are cut.
    static int pieces(const MeshShape& shape, bool distributed_optimizer) {
        return distributed_optimizer ? shape.dp * shape.cp : 1;
    }

    /// After the last backward pass of a step.
    void finish_gradients(const Exec& exec);
    /// After the optimizer, which zeroed the gradients that it owns.
    void finish_step(const Exec& exec);

    /// What this rank updates, in the model's order.
    const std::vector<ParamSlice>& owned() const { return owned_; }
    /// What this rank counts in norms and other sums over all parameters: over the ranks of norm_group() each element
    /// once.
    const std::vector<ParamSlice>& counted() const { return counted_; }
    /// The ranks whose sums make up the whole model's.
    Comm& norm_group() const;

  private:
    void sum_over_tp(const Exec& exec);
    void sum_copies(const Exec& exec, const Param& param);
    Tensor piece_of(const Tensor& buffer) const;

    const Mesh& mesh_;
    std::vector<ParamBuffer> buffers_;
    bool distributed_;
    std::vector<ParamSlice> owned_, counted_;
};

}  // namespace tera
