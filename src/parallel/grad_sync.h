// GradSync: what ranks do with the gradients between the last backward pass and the optimizer, and with the values
// after it.
//
//   1  sums over tp, where Param::sum_grad_over says so: parameters that are whole on every rank and see its rows only
//   2  sums over the ranks that hold the same unit of a cut parameter (a key/value head with fewer of them than ranks)
//   3  sums over dp and cp, a buffer at a time: all-reduce, or with the distributed optimizer reduce-scatter, after
//   which
//      rank r of R has the sums of elements [r n/R, (r+1) n/R) of a buffer of n
//   4  after the update, with the distributed optimizer: all-gather of the values, and the gradients are zeroed
//
// Overlapped, a buffer is reduced as soon as the last backward pass of a step has filled it, and gathered until the
// next forward pass reads it, on a queue of its own beside the computing. Parameters of two pipeline stages wait for
// the end of the step. With gather_in_update the optimizer updates buffer after buffer, and the gathering of one begins
// while the next is updated.
//
// Averages are taken in the loss (train/train_step.h), so here are only sums. With one rank nothing happens.
#pragma once

#include <map>
#include <vector>

#include "comm/mesh.h"
#include "core/lane.h"
#include "nn/param.h"

namespace tera {

class GradSync final : public ParamObserver {
  public:
    struct Settings {
        bool distributed_optimizer = false;
        bool overlap_reduce = false, overlap_gather = false;
        bool gather_in_update = false;  ///< of one buffer while the optimizer updates the next
        std::int64_t bucket = 0;  ///< elements of a buffer where something overlaps; 0: 40 million, or 1 for each rank
    };
    /// How allocate_params is to cut the buffers.
    static ParamBuffers cut(const MeshShape& shape, const Settings& settings);

    /// The mesh must outlive it; `buffers` as allocate_params gave them for `params`. exec: where the model runs, with
    /// memory for what lives shortly.
    GradSync(const Mesh& mesh, const std::vector<Param*>& params, std::vector<ParamBuffer> buffers,
             const Settings& settings, const Engine& engine, const Exec& exec);

    /// Whom a model must tell of its parameters; null if nothing overlaps.
    ParamObserver* observer() { return settings_.overlap_reduce ? this : nullptr; }
    void before_use(const Param& param) override;
    void gradient_done(const Param& param) override;

    /// After the last backward pass of a step.
    void finish_gradients(const Exec& exec);
    /// After the optimizer has updated a group of groups() and zeroed the gradients that it owns of it.
    void updated(const Exec& exec, int number);
    /// Before values are read by anyone who does not tell the observer.
    void settle(const Exec& exec);

    /// What this rank updates, in the model's order.
    const std::vector<ParamSlice>& owned() const { return owned_; }
    /// How the optimizer is to update them: on all ranks of a buffer the same groups, whatever each owns of them.
    const SliceGroups& groups() const { return groups_; }
    /// What this rank counts in norms and other sums over all parameters: over the ranks of norm_group() each element
    /// once.
    const std::vector<ParamSlice>& counted() const { return counted_; }
    /// The ranks whose sums make up the whole model's.
    Comm& norm_group() const;

  private:
    /// Where a buffer is between two steps.
    struct Progress {
        int group = 0;            ///< of groups()
        std::size_t to_come = 0;  ///< parameters whose gradients are not done
        bool deferred = false;    ///< reduced at the end of the step
        bool reduced = false, gathering = false;
        Lane::Mark gathered;
    };

    void reduce(const Exec& exec, std::size_t buffer);
    void sum_over_tp(const Exec& exec, const ParamBuffer& buffer);
    void sum_copies(const Exec& exec, const Param& param);
    Tensor piece_of(const Tensor& buffer) const;
    Comm& group() const { return mesh_.over({Axis::dp, Axis::cp}); }
    bool distributed() const { return settings_.distributed_optimizer; }
    bool gathers() const { return distributed() && group().size() > 1; }

    const Mesh& mesh_;
    std::vector<ParamBuffer> buffers_;
    Settings settings_;
    Exec exec_;
    std::vector<ParamSlice> owned_, counted_;
    SliceGroups groups_;                                   ///< of what is owned
    std::vector<std::vector<std::size_t>> gathered_with_;  ///< by group: its buffers in the order of gathering
    Lane lane_;
    Lane::Mark reduced_;
    std::vector<Progress> progress_;                 ///< by buffer
    std::map<const Param*, std::size_t> buffer_of_;  ///< of every parameter
};

}  // namespace tera
