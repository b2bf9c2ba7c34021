// What one device does of an optimizer step (optim/optimizer.h says what each call means).
#pragma once

#include <memory>

#include "optim/optimizer.h"

namespace tera {

class OptimizerBackend {
  public:
    virtual ~OptimizerBackend() = default;
    /// Returns the sums of this rank that may be added to those of others (RanksMeasured::sums) before agreed() comes.
    virtual Tensor measure(const Exec& exec) = 0;
    virtual void agreed(const Exec& exec) = 0;
    /// Updates one group. `measured`: measure() was called for this step.
    virtual void step(const Exec& exec, const UpdateRule& rule, const StepArgs& args, bool measured, int group) = 0;
    /// What measure() found, after agreed().
    virtual GradStats grads() = 0;
    /// Main weights in halves become `numbers` (f32), as near as their values, which stay, allow.
    virtual void keep_rest(const Exec& exec, const SplitTensor& main, ConstTensor numbers) const = 0;
};

/// They keep a reference to the tensors. Memory the backend needs itself comes from `arena`.
std::unique_ptr<OptimizerBackend> make_cpu_optimizer(const OptimizerTensors& tensors);
std::unique_ptr<OptimizerBackend> make_cuda_optimizer(const OptimizerTensors& tensors, Arena& arena, const Exec& exec);

}  // namespace tera
