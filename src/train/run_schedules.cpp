#include "train/run_schedules.h"

#include "core/error.h"
#include "train/training_parts.h"

namespace tera {

BatchSchedule make_batch_schedule(const RunConfig& config) {
    const BatchSchedule::Sizes sizes = {config.global_batch_size, config.micro_batch_size, config.data_parallel_size,
                                        config.decrease_batch_size_if_needed};
    if (config.rampup_batch_size.empty()) return BatchSchedule(sizes);
    const std::vector<int64_t>& ramp = config.rampup_batch_size;
    TERA_CHECK(ramp.size() == 3, ramp.size(), " values");
    return BatchSchedule(sizes, BatchRamp{ramp[0], ramp[1], ramp[2]});
}

void check_batches(const RunConfig& config) {
    PipelineShape shape = pipeline_shape_from(config);
    for (const StepBatch& batch : make_batch_schedule(config).every_batch()) {
        if (shape.chunks == 1) continue;  // any number will do
        shape.micro_batches = batch.micro_batches;
        try {
            (void)schedule_1f1b(shape, 0);
        } catch (const UsageError& e) {
            if (batch.global_batch == config.global_batch_size) throw;
            usage_error("--rampup-batch-size: the batch of ", batch.global_batch, " samples: ", e.what());
        }
    }
}

std::optional<std::int64_t> training_iterations(const RunConfig& config) {
    if (config.train_samples) return make_batch_schedule(config).iterations_for(*config.train_samples);
    return config.train_iters;
}

LrSchedule make_lr_schedule(const RunConfig& config) {
    if (!config.lr) usage_error("--lr is required");
    if (!config.train_iters && !config.train_samples)
        usage_error("give the length of the run with --train-iters or --train-samples");
    LrSchedule schedule;
    schedule.init_lr = config.lr_warmup_init;
    schedule.max_lr = *config.lr;
    schedule.min_lr = config.min_lr;
    schedule.style = parse_lr_decay(config.lr_decay_style);
    schedule.wsd_style = parse_wsd_decay(config.lr_wsd_decay_style);
    schedule.start_wd = config.start_weight_decay.value_or(config.weight_decay);
    schedule.end_wd = config.end_weight_decay.value_or(config.weight_decay);
    schedule.wd_style = parse_wd_growth(config.weight_decay_incr_style);
    // Iterations and samples are whole numbers; only a warm-up given as a share may be fractional.
    const auto real = [](std::int64_t n) { return static_cast<double>(n); };
    if (config.train_iters) {
        const std::int64_t batch = config.global_batch_size;
        schedule.decay_steps = real(config.lr_decay_iters.value_or(*config.train_iters) * batch);
        schedule.warmup_steps = real(config.lr_warmup_iters * batch);
        schedule.wsd_steps = real(config.lr_wsd_decay_iters.value_or(0) * batch);
        schedule.wd_steps = real(*config.train_iters * batch);
    } else {
        schedule.decay_steps = real(config.lr_decay_samples.value_or(*config.train_samples));
        schedule.warmup_steps = real(config.lr_warmup_samples);
        schedule.wsd_steps = real(config.lr_wsd_decay_samples.value_or(0));
        schedule.wd_steps = real(*config.train_samples);
    }
    if (config.lr_warmup_fraction) schedule.warmup_steps = *config.lr_warmup_fraction * schedule.decay_steps;
    schedule.check();
    return schedule;
}

}  // namespace tera
