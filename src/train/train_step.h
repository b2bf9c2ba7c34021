// One optimizer step: M micro-batches forward and backward, gradients looked at, weights updated.
//
//   objective   mean over all micro-batches of the step, on all ranks, of Σ_t mask loss / Σ_t mask, or with
//               per_token_loss Σ mask loss / Σ mask over the whole step
//   backward    gradients of loss_scale · objective (· Σ mask) accumulate over the micro-batches
//   overflow    a gradient that is not finite under a loss scaler: no update, the scale may shrink
//   update      gradient ← gradient / loss_scale · min(1, clip / (norm + 1e-6)), then the optimizer's rule
//
// On a GPU a step is only enqueued. What the host must know of it (loss, gradient norm, overflow) is copied behind the
// last backward pass, and the host waits for just that copy: it learns the outcome while the device updates the weights
// and enqueues the next step before that is done.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/readback.h"
#include "optim/loss_scaler.h"
#include "optim/optimizer.h"
#include "parallel/grad_sync.h"
#include "train/pipeline.h"

namespace tera {

struct StepRates {
    double learning_rate = 0;
    double weight_decay = 0;
    double decoupled_learning_rate = -1;  ///< < 0: none
};

struct StepOutcome {
    LossSum loss;                                 ///< over all micro-batches of all ranks
    bool skipped = false;                         ///< overflow: weights, optimizer and schedule stay as they were
    bool scale_at_minimum = false;                ///< skipped, and the loss scale cannot fall further
    std::optional<double> grad_norm, grad_zeros;  ///< before clipping, loss scale removed; absent when skipped

    double mean_loss() const { return loss.tokens > 0 ? loss.loss / loss.tokens : 0; }
};

/// The samples of some micro-batches, for messages.
struct SampleRange {
    std::int64_t first = -1, last = -1;
    void add(const MicroBatch& batch);
    std::string text() const;  ///< " (samples 96 to 103)", or "" if it is not known
};

class TrainStep {
  public:
    struct Settings {
        double clip_grad = 1;
        bool per_token_loss = false;
        bool check_for_nan = true;  ///< a loss or gradient that is not finite is an Error, and no update is made
        std::string loss_advice = {}, gradient_advice = {};  ///< "; lower --lr ...": what that Error ends with
        /// Called when the gradients of a step are complete, before the optimizer; may be empty.
        std::function<void()> with_gradients = {};
    };
    struct Parts {
        Pipeline& pipeline;
        GradSync& sync;
        Optimizer& optimizer;
        std::optional<LossScaler>& scaler;
        Timers& timers;
    };

    TrainStep(const Parts& parts, const Settings& settings);

    /// iteration: number of this step, for messages. Gradients are zero before and after.
    StepOutcome run(const MicroBatchSource& next, std::int64_t micro_batches, const StepRates& rates,
                    std::int64_t iteration);

  private:
    /// Forward and backward of this rank's micro-batches: loss and gradients accumulate. Returns Σ mask.
    double accumulate(const MicroBatchSource& next, std::int64_t micro_batches, std::int64_t iteration,
                      SampleRange& samples);
    /// Σ over the ranks that have other samples.
    double sum_over_dp(double x) const;
    bool on_cpu() const { return parts_.pipeline.workspace().engine().device() == Device::cpu; }

    Parts parts_;
    Settings settings_;
    Arena sums_memory_;
    Tensor sums_;  ///< [2] Σ mask loss and Σ mask of the step
    Readback loss_;
};

}  // namespace tera
