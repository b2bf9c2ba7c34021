// Optimizer: main weights in fp32, the rule's state beside them, and one pass over memory per step.
//
//   value dtype   main weights
//   f32, f64      the values themselves
//   bf16, f16     fp32 copies, rounded to the values in the same pass that updates them
//
// A step reads weight, state and gradient once and writes weight, state, value and (if asked) the zeroed gradient.
// Every element is computed alone, so the result is the same bits for any number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn/param.h"
#include "optim/pieces.h"
#include "optim/update_rule.h"

namespace tera {

/// A tensor that must outlive the process: by the parameter's global name and what it is of it.
struct OptimizerTensor {
    std::string param;
    std::string kind;  ///< "master" (absent where the values are the main weights), "exp_avg", ...
    Tensor tensor;
};

class Optimizer {
  public:
    struct StepArgs {
        double lr = 0;
        double weight_decay = 0;  ///< for parameters with Param::weight_decay
        double grad_factor = 1;   ///< every gradient is multiplied by it first: 1/loss scale, 1/tokens, clipping
        bool zero_grad = true;
        double decoupled_lr = -1;  ///< for parameters named in use_decoupled_lr; < 0: lr
    };

    /// Main weights are cloned from the parameters' values; memory for them and the state comes from `arena`.
    Optimizer(std::unique_ptr<UpdateRule> rule, std::vector<Param*> params, Arena& arena, const Exec& exec);

    void step(const Exec& exec, const StepArgs& args);

    /// Steps taken so far: t of the next step is steps() + 1.
    std::int64_t steps() const { return steps_; }
    void set_steps(std::int64_t steps) { steps_ = steps; }

    std::vector<OptimizerTensor> state() const;
    /// The main weights, whether they are copies or the values themselves, in the order of the parameters.
    const std::vector<Tensor>& main_weights() const { return main_; }
    const std::vector<Param*>& params() const { return params_; }

    /// After the values were loaded or initialised anew.
    void copy_values_to_main(const Exec& exec);
    /// After the main weights were loaded.
    void copy_main_to_values(const Exec& exec);

    /// Marks the parameters that take StepArgs::decoupled_lr.
    void use_decoupled_lr(const std::vector<const Param*>& params);

    static std::int64_t state_bytes(const UpdateRule& rule, const std::vector<Param*>& params);

  private:
    template <class T>
    void step_piece(const Piece& piece, const StepArgs& args) const;

    std::unique_ptr<UpdateRule> rule_;
    std::vector<Param*> params_;
    std::vector<Piece> pieces_;
    std::vector<Tensor> main_;
    std::vector<std::vector<Tensor>> states_;  ///< [state][parameter]
    std::vector<char> decoupled_;              ///< [parameter]
    std::int64_t steps_ = 0;
};

}  // namespace tera
