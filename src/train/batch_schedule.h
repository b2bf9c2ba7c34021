// How many samples a step takes and in how many micro-batches, as a function of the samples consumed so far.
//
//   constant   G
//   ramp-up    G(n) = start + floor(n / (ramp / k)) * increment with k = (G - start) / increment, until n > ramp; then
//   G
//
// A batch must split evenly over micro_batch * data_parallel samples; with `decrease_if_needed` it is rounded down to
// such a multiple and the rest counts as skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tera {

/// Growth of the batch from `start` in steps of `increment` over the first `samples` samples.
struct BatchRamp {
    std::int64_t start = 0, increment = 0, samples = 0;
};

/// What one step takes.
struct StepBatch {
    std::int64_t global_batch = 0;   // what the schedule asks for
    std::int64_t running_batch = 0;  // what is trained on: a multiple of micro_batch * data_parallel
    std::int64_t micro_batches = 0;  // per data-parallel rank
    std::int64_t skipped() const { return global_batch - running_batch; }
};

class BatchSchedule {
  public:
    struct Sizes {
        std::int64_t global_batch = 0, micro_batch = 0, data_parallel = 1;
        bool decrease_if_needed = false;
    };

    /// UsageError if the sizes do not divide or the ramp does not end at the global batch.
    explicit BatchSchedule(const Sizes& sizes, std::optional<BatchRamp> ramp = std::nullopt);

    /// The step that begins after `consumed` samples. UsageError if a ramp stage does not divide (without decrease).
    StepBatch at(std::int64_t consumed) const;
    /// Of the full global batch.
    StepBatch full() const { return at(ramp_ ? ramp_->samples + 1 : 0); }
    /// The batches on the way up and the full one. UsageError if any does not divide.
    std::vector<StepBatch> every_batch() const;

    /// Iterations that `train_samples` samples last; a last partial batch is left out.
    std::int64_t iterations_for(std::int64_t train_samples) const;

    /// Samples consumed after `iterations` steps from the start.
    std::int64_t consumed_after(std::int64_t iterations) const;

  private:
    std::int64_t scheduled(std::int64_t consumed) const;
    std::int64_t equal_steps(std::int64_t consumed, std::int64_t increment) const;

    Sizes sizes_;
    std::optional<BatchRamp> ramp_;
};

}  // namespace tera
