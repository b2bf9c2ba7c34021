#include "train/batch_schedule.h"

#include <algorithm>

#include "core/error.h"

namespace tera {

BatchSchedule::BatchSchedule(const Sizes& sizes, std::optional<BatchRamp> ramp) : sizes_(sizes), ramp_(ramp) {
    TERA_CHECK(sizes.micro_batch > 0 && sizes.data_parallel > 0, "micro batch ", sizes.micro_batch, ", data parallel ",
               sizes.data_parallel);
    const std::int64_t unit = sizes.micro_batch * sizes.data_parallel;
    if (sizes.global_batch < unit || (!sizes.decrease_if_needed && sizes.global_batch % unit != 0)) {
        usage_error("global batch size ", sizes.global_batch, " is not divisible by micro-batch size ",
                    sizes.micro_batch, " * data-parallel size ", sizes.data_parallel);
    }
    if (!ramp) return;
    if (ramp->start <= 0 || ramp->increment <= 0 || ramp->samples <= 0) {
        usage_error("--rampup-batch-size: start, increment and samples must be positive");
    }
    const std::int64_t growth = sizes.global_batch - ramp->start;
    if (growth <= 0 || growth % ramp->increment != 0) {
        usage_error("--rampup-batch-size: steps of ", ramp->increment, " from ", ramp->start,
                    " never reach the global batch size ", sizes.global_batch);
    }
}

std::int64_t BatchSchedule::scheduled(std::int64_t consumed) const {
    if (!ramp_ || consumed > ramp_->samples) return sizes_.global_batch;
    // In floating point, as the reference does, so that the steps fall on the same sample.
    const std::int64_t increments = (sizes_.global_batch - ramp_->start) / ramp_->increment;
    const double per_increment = static_cast<double>(ramp_->samples) / static_cast<double>(increments);
    const auto steps = static_cast<std::int64_t>(static_cast<double>(consumed) / per_increment);
    return std::min(ramp_->start + steps * ramp_->increment, sizes_.global_batch);
}

StepBatch BatchSchedule::at(std::int64_t consumed) const {
    const std::int64_t unit = sizes_.micro_batch * sizes_.data_parallel;
    StepBatch step;
    step.global_batch = scheduled(consumed);
    step.running_batch = step.global_batch / unit * unit;
    step.micro_batches = step.running_batch / unit;
    const bool uneven = step.running_batch != step.global_batch;
    if ((uneven && !sizes_.decrease_if_needed) || step.micro_batches == 0) {
        usage_error("--rampup-batch-size: the batch of ", step.global_batch, " samples after ", consumed,
                    " samples is not divisible by micro-batch size ", sizes_.micro_batch, " * data-parallel size ",
                    sizes_.data_parallel,
                    step.micro_batches == 0 ? "" : "; --decrease-batch-size-if-needed rounds it down");
    }
    return step;
}

/// How many steps of `increment` samples from `consumed` on have the same scheduled batch, within the ramp. The ramp is
/// walked in such stretches: stepping through one of 10^15 samples would take for ever.
std::int64_t BatchSchedule::equal_steps(std::int64_t consumed, std::int64_t increment) const {
    const std::int64_t batch = scheduled(consumed);
    std::int64_t equal = 1, different = (ramp_->samples - consumed) / increment + 2;
    while (different - equal > 1) {
        const std::int64_t middle = equal + (different - equal) / 2;
        (scheduled(consumed + (middle - 1) * increment) == batch ? equal : different) = middle;
    }
    return equal;
}

std::vector<StepBatch> BatchSchedule::every_batch() const {
    std::vector<StepBatch> all;
    for (std::int64_t consumed = 0; ramp_ && consumed <= ramp_->samples;) {
        all.push_back(at(consumed));
        const std::int64_t batch = all.back().running_batch;
        consumed += equal_steps(consumed, batch) * batch;
    }
    all.push_back(full());
    return all;
}

std::int64_t BatchSchedule::iterations_for(std::int64_t train_samples) const {
    std::int64_t consumed = 0, iterations = 0;
    while (ramp_ && consumed <= ramp_->samples && consumed <= train_samples) {
        const std::int64_t batch = scheduled(consumed);
        const std::int64_t to_the_end = (std::min(ramp_->samples, train_samples) - consumed) / batch + 1;
        const std::int64_t steps = std::min(equal_steps(consumed, batch), to_the_end);
        consumed += steps * batch;
        iterations += steps;
    }
    if (train_samples > consumed) iterations += (train_samples - consumed) / sizes_.global_batch;
    return iterations;
}

std::int64_t BatchSchedule::consumed_after(std::int64_t iterations) const {
    std::int64_t consumed = 0;
    while (ramp_ && iterations > 0 && consumed <= ramp_->samples) {
        const std::int64_t batch = at(consumed).running_batch;
        const std::int64_t steps = std::min(iterations, equal_steps(consumed, batch));
        consumed += steps * batch;
        iterations -= steps;
    }
    return iterations > 0 ? consumed + iterations * at(consumed).running_batch : consumed;
}

}  // namespace tera
