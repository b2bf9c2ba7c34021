// Optimizer: main weights in fp32, the rule's state beside them, and one pass over memory per step.
//
//   value dtype   main weights
//   f32, f64      the values themselves
//   bf16          fp32, of which the values are the upper halves; the lower ones are here (main_weights.h)
//   f16           fp32 copies, rounded to the values in the same pass that updates them
//
// A step is three calls:
//   measure   looks at all gradients: sum of squares, zeros, the first that is not finite
//   step      factor = grad_factor · min(1, clip_norm / (norm · grad_factor + 1e-6)), then the rule with factor · grad;
//             reads weight, state and gradient once, writes weight, state, value and (if asked) the zeroed gradient;
//             one that a product will overwrite (Param::grad_by_product) is only marked as old
//   finish    what measure found
// On the GPU the first two only enqueue: clipping and skipping are decided there from what measure left in its memory,
// and finish waits for those numbers, not for the update. Every element is computed alone and sums have a fixed order,
// so the result is the same bits for any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nn/param.h"
#include "optim/clip.h"
#include "optim/main_weights.h"
#include "optim/update_rule.h"

namespace tera {

/// A tensor that must outlive the process: by the parameter's global name and what it is of it.
struct OptimizerTensor {
    std::string param;
    std::string kind;  ///< "master" (absent where the values are the main weights), "exp_avg", ...
    SplitTensor tensor;
    /// Of this rank's piece of the parameter; the first of the elements that are here, where not all are.
    std::int64_t begin = 0;
};

class OptimizerBackend;

/// What a step works on, in the order of the parameters.
struct OptimizerTensors {
    std::vector<ParamSlice> slices;
    std::vector<SplitTensor> main;
    std::vector<std::vector<Tensor>> states;  ///< [state][slice]
    std::vector<char> decoupled;              ///< takes StepArgs::decoupled_lr
    SliceGroups groups;                       ///< of the slices
    std::vector<ParamSlice> counted;          ///< what measure looks at
};

struct StepArgs {
    double lr = 0;
    double weight_decay = 0;  ///< for parameters with Param::weight_decay
    double grad_factor = 1;   ///< every gradient is multiplied by it first: 1/loss scale, 1/tokens
    bool zero_grad = true;
    double decoupled_lr = -1;      ///< for parameters named in use_decoupled_lr; < 0: lr
    double clip_norm = 0;          ///< 0: gradients are not clipped; else measure() must have come before
    bool skip_not_finite = false;  ///< leave weights and state as they are if a gradient is not finite (likewise)
};

struct StepResult {
    GradStats grads;  ///< zeros if measure() was not called for this step
    bool skipped = false;
};

class Optimizer {
  public:
    /// Main weights are the parameters' values at first; memory for them and the state comes from `arena`.
    Optimizer(std::unique_ptr<UpdateRule> rule, const std::vector<Param*>& params, Arena& arena, const Exec& exec);
    /// On several ranks: this one updates `owned` and looks at the gradients of `counted`; what all ranks of
    /// `agreement` (null: only this one) see is added up, and all of them clip and skip alike. A step updates `owned`
    /// group by group.
    struct Share {
        std::vector<ParamSlice> owned, counted;
        Comm* agreement = nullptr;
        SliceGroups groups = {};
    };
    Optimizer(std::unique_ptr<UpdateRule> rule, Share share, Arena& arena, const Exec& exec);
    ~Optimizer();

    void measure(const Exec& exec);
    /// t of this step is steps() + 1. finish() must follow before the next. `updated` (may be empty) is called for each
    /// group, in their order, when its update has been enqueued and that of the next has not; also if none is made.
    void step(const Exec& exec, const StepArgs& args, const std::function<void(int group)>& updated = {});
    /// Counts the step unless it was skipped.
    StepResult finish(const Exec& exec);

    /// Steps taken so far.
    std::int64_t steps() const { return steps_; }
    void set_steps(std::int64_t steps) { steps_ = steps; }

    std::vector<OptimizerTensor> state() const;
    /// The main weights, wherever they are, in the order of the parameters.
    const std::vector<SplitTensor>& main_weights() const { return tensors_.main; }
    /// Main weights of slices of what this rank updates, in their order.
    std::vector<SplitTensor> main_of(const std::vector<ParamSlice>& slices) const;

    /// Main weights that are not the values are drawn anew in their own precision; the values must have been drawn with
    /// the same seed (init_params) and are what these round to. Copied from the values, every main weight would start
    /// in the middle of what rounds to its value, and the first small updates would change nothing, then all at once.
    void draw_main(const Exec& exec, std::uint64_t seed);
    /// After the values were loaded.
    void copy_values_to_main(const Exec& exec);

    /// Marks the parameters that take StepArgs::decoupled_lr.
    void use_decoupled_lr(const std::vector<const Param*>& params);

    static std::int64_t state_bytes(const UpdateRule& rule, const std::vector<ParamSlice>& slices);

  private:
    std::unique_ptr<UpdateRule> rule_;
    OptimizerTensors tensors_;
    std::unique_ptr<OptimizerBackend> backend_;  ///< refers to tensors_
    Comm* agreement_;
    std::int64_t steps_ = 0;
    bool measured_ = false, stepped_ = false, may_skip_ = false;
};

}  // namespace tera
