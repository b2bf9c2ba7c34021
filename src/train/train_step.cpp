#include "train/train_step.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/profile.h"
#include "ops/convert.h"

namespace tera {
namespace {

double tokens_of(const MicroBatch& batch) {
    double tokens = 0;
    for (std::int64_t t = 0; t < batch.S * batch.B; ++t) tokens += static_cast<double>(batch.loss_mask[t]);
    return tokens;
}

}  // namespace

void SampleRange::add(const MicroBatch& batch) {
    if (batch.sample == nullptr || batch.B == 0) return;
    const auto [low, high] = std::minmax_element(batch.sample, batch.sample + batch.B);
    first = first < 0 ? *low : std::min(first, *low);
    last = std::max(last, *high);
}

std::string SampleRange::text() const { return first < 0 ? "" : cat(" (samples ", first, " to ", last, ")"); }

TrainStep::TrainStep(const Parts& parts, const Settings& settings)
    : parts_(parts),
      settings_(settings),
      sums_memory_(Arena::Kind::real, parts.pipeline.workspace().engine().memory()),
      sums_(loss_sums(parts.pipeline.workspace().engine().exec(sums_memory_, parts.pipeline.workspace().pool()))),
      loss_(sums_.bytes(), parts.pipeline.workspace().engine().gpu()) {}

double TrainStep::accumulate(const MicroBatchSource& next, std::int64_t micro_batches, std::int64_t iteration,
                             SampleRange& samples) {
    Timers::Scope timer(parts_.timers, "forward-backward", 1);
    const double loss_scale = parts_.scaler ? parts_.scaler->scale() : 1;
    const double all = static_cast<double>(micro_batches * parts_.pipeline.mesh().shape().dp);
    double tokens = 0;
    Pipeline::Work work{next, micro_batches, sums_};
    work.grad_scale = [&](const MicroBatch& batch) {
        samples.add(batch);
        const double count = tokens_of(batch);
        tokens += count;
        return settings_.per_token_loss ? loss_scale : loss_scale * (1 / (std::max(count, 1.0) * all));
    };
    work.loss_known = [&](std::int64_t m, const MicroBatch& batch) {
        // A GPU tells at the end of the step.
        if (!settings_.check_for_nan || !on_cpu() || std::isfinite(sums_.ptr<double>()[0])) return;
        SampleRange these;
        these.add(batch);
        throw Error(cat("found NaN in local forward loss calculation: lm loss is ", sums_.ptr<double>()[0],
                        " in iteration ", iteration, ", micro-batch ", m + 1, " of ", micro_batches, these.text(),
                        settings_.loss_advice));
    };
    parts_.pipeline.train(work);
    return tokens;
}

double TrainStep::sum_over_dp(double x) const {
    Comm& dp = parts_.pipeline.mesh().dp();
    if (dp.size() == 1) return x;
    dp.all_reduce(parts_.pipeline.workspace().ctx().temp, tensor_over(&x, {1}), Reduce::sum);
    return x;
}

StepOutcome TrainStep::run(const MicroBatchSource& next, std::int64_t micro_batches, const StepRates& rates,
                           std::int64_t iteration) {
    const ProfileRange range("step", iteration);
    SampleRange samples;
    const double tokens = accumulate(next, micro_batches, iteration, samples);
    const Exec exec = parts_.pipeline.workspace().ctx().temp;
    parts_.sync.finish_gradients(exec);
    if (settings_.with_gradients) settings_.with_gradients();
    parts_.pipeline.share(exec, sums_);
    loss_.start(exec, sums_);
    ops::fill_zero(exec, sums_);

    Timers::Scope timer(parts_.timers, "optimizer", 1);
    const ProfileRange optimizer_range("optimizer");
    parts_.timers.start("optimizer-clip-main-grad", 1);
    parts_.optimizer.measure(exec);
    parts_.timers.stop("optimizer-clip-main-grad");
    double factor = parts_.scaler ? parts_.scaler->inverse() : 1;  // of the scale that backward used
    if (settings_.per_token_loss) factor /= std::max(sum_over_dp(tokens), 1.0);
    parts_.timers.start("optimizer-inner-step", 1);
    parts_.optimizer.step(exec,
                          {.lr = rates.learning_rate,
                           .weight_decay = rates.weight_decay,
                           .grad_factor = factor,
                           .zero_grad = true,
                           .decoupled_lr = rates.decoupled_learning_rate,
                           .clip_norm = settings_.clip_grad,
                           .skip_not_finite = parts_.scaler.has_value() || settings_.check_for_nan},
                          [&](int group) { parts_.sync.updated(exec, group); });
    parts_.timers.stop("optimizer-inner-step");

    const StepResult result = parts_.optimizer.finish(exec);
    const auto* sums = static_cast<const double*>(loss_.wait());
    StepOutcome outcome;
    outcome.loss = {sums[0], sums[1]};
    if (settings_.check_for_nan && !std::isfinite(outcome.loss.loss)) {
        throw Error(cat("found NaN in local forward loss calculation: lm loss is ", outcome.loss.loss, " in iteration ",
                        iteration, samples.text(), settings_.loss_advice));
    }
    if (settings_.check_for_nan && !result.grads.finite()) {
        const Param* bad = result.grads.not_finite;
        throw Error(cat("found NaN in local grad norm: the gradient of ", bad ? bad->name : "another rank",
                        " is not finite in iteration ", iteration, samples.text(), settings_.gradient_advice));
    }
    outcome.skipped = result.skipped;
    if (parts_.scaler) {
        outcome.scale_at_minimum = outcome.skipped && parts_.scaler->at_minimum();
        parts_.scaler->update(outcome.skipped);
    }
    if (outcome.skipped) return outcome;
    outcome.grad_norm = result.grads.norm() * factor;
    outcome.grad_zeros = static_cast<double>(result.grads.zeros);
    return outcome;
}

}  // namespace tera
