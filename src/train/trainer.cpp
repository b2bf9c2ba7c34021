// The training loop.
#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "core/error.h"
#include "model/flops.h"
#include "optim/clip.h"
#include "train/evaluate.h"
#include "train/model_from_flags.h"
#include "train/plan.h"
#include "train/timeline.h"

namespace tera {
namespace {

/// Bytes of a line such as "VmRSS:    1234 kB" in /proc/self/status; 0 if it is not there.
double process_bytes(const std::string& key) {
    std::ifstream in("/proc/self/status");
    std::string word;
    while (in >> word) {
        if (word != key + ":") continue;
        double kilobytes = 0;
        in >> kilobytes;
        return kilobytes * 1024;
    }
    return 0;
}

const std::vector<std::string> step_timers = {"forward-backward", "forward-compute",          "backward-compute",
                                              "batch-generator",  "optimizer-clip-main-grad", "optimizer-inner-step",
                                              "optimizer"};

}  // namespace

bool Trainer::run() {
    try {
        const bool trained = set_up_and_train();
        if (gpu_world_) gpu_world_->barrier();  // nobody ends a communicator that another still uses
        return trained;
    } catch (...) {
        if (gpu_world_) gpu_world_->abandon();  // else the GPU waits for ranks that will not come
        throw;
    }
}

bool Trainer::set_up_and_train() {
    try {
        set_up();
    } catch (...) {
        if (triggers_.on()) {
            print("An error has been detected; Canceling pending scheduled jobs.");
            triggers_.touch_exit();
        }
        throw;
    }
    if (config_.skip_train) {
        print("skipping training (--skip-train is on) ...");
        finish(false);
        return true;
    }
    print("training ...");
    if (!train()) return false;
    print_time("after training is done");
    finish(true);
    return true;
}

bool Trainer::train() {
    print_time("before the start of training step");
    std::int64_t micro_batches = batches_->at(state_.consumed_train_samples).micro_batches;
    interval_.start_clock();
    while (state_.iteration < train_iters_) {
        const StepBatch batch = batches_->at(state_.consumed_train_samples);
        if (batch.micro_batches != micro_batches && state_.iteration != 0) save();
        micro_batches = batch.micro_batches;
        const auto& skips = config_.iterations_to_skip;
        if (std::find(skips.begin(), skips.end(), state_.iteration) != skips.end()) {
            skip_one(batch);
            continue;
        }
        if (profile_.before_step(state_.iteration)) begin_profile();
        train_one(batch);
        if (profile_.after_step(state_.iteration)) end_profile();
        const bool evaluate_now = config_.eval_interval > 0 && state_.iteration % config_.eval_interval == 0;
        if (evaluate_now && evaluates(Split::valid)) evaluate_and_print(Split::valid, EvalPlace::training);
        if (act_on_verdict()) {
            if (profile_.close()) end_profile();
            return false;
        }
    }
    if (profile_.close()) end_profile();
    interval_.stop_clock();
    return true;
}

void Trainer::begin_profile() {
    print(cat("> profiling from iteration ", state_.iteration + 1));
    if (config_.profile_timeline.empty()) return;
    trace_.emplace();
    std::string problem = trace_->why_not();
    try {  // for want of a timeline no run of weeks should end
        if (trace_->ready()) return trace_->start();
    } catch (const std::exception& e) {
        problem = e.what();
    }
    options_.print(cat("> no timeline: ", problem));
    trace_.reset();
}

void Trainer::end_profile() {
    print(cat("> profiled to iteration ", state_.iteration));
    if (!trace_) return;
    try {
        options_.print("> timeline in " + write_timeline(config_.profile_timeline, trace_->stop(), config_.rank));
    } catch (const std::exception& e) {
        options_.print(cat("> no timeline: ", e.what()));
    }
    trace_.reset();
}

StepRates Trainer::rates() const {
    const auto n = static_cast<double>(state_.schedule_samples);
    StepRates rates{schedule_.learning_rate(n), schedule_.weight_decay(n)};
    if (config_.decoupled_lr) {
        rates.decoupled_learning_rate =
            schedule_.learning_rate(n, *config_.decoupled_lr, config_.decoupled_min_lr.value_or(0));
    }
    return rates;
}

void Trainer::train_one(const StepBatch& batch) {
    if (options_.begin_step) options_.begin_step(state_.iteration + 1);
    const StepOutcome outcome = step_->run([&]() -> const MicroBatch& { return data_->next(Split::train); },
                                           batch.micro_batches, rates(), state_.iteration + 1);
    state_.iteration += 1;
    state_.consumed_train_samples += batch.running_batch;
    state_.skipped_train_samples += batch.skipped();
    if (!outcome.skipped) state_.schedule_samples += batch.running_batch;
    state_.floating_point_operations += flops_per_step(
        flops_formula_of(config_.log_format), flops_shape(config_, config_.padded_vocab_size), batch.running_batch);
    interval_.add(outcome);
    if (outcome.scale_at_minimum && !at_smallest_scale_) warn_of_smallest_scale(outcome);
    at_smallest_scale_ = outcome.scale_at_minimum;
    const bool first = format_ == LogFormat::core_head && state_.iteration == first_iteration_ + 1;
    if (state_.iteration % config_.log_interval == 0 || first) log_step(batch, outcome);
}

void Trainer::warn_of_smallest_scale(const StepOutcome& outcome) {
    const bool finite = std::isfinite(outcome.mean_loss());
    print(cat("WARNING: iteration ", state_.iteration, " updates nothing, and the loss scale cannot fall further: ",
              finite ? "gradients overflow" : "the loss is not finite", "; ",
              advice_on_smallest_scale(config_, finite)));
}

void Trainer::skip_one(const StepBatch& batch) {
    for (std::int64_t m = 0; m < batch.micro_batches; ++m) data_->next(Split::train);
    state_.iteration += 1;
    state_.consumed_train_samples += batch.running_batch;
    state_.skipped_train_samples += batch.running_batch;
}

void Trainer::log_step(const StepBatch& batch, const StepOutcome& outcome) {
    StepReport r;
    interval_.fill(r, state_.iteration % config_.log_interval != 0);
    const StepRates now = rates();
    r.time = TimeStamp::now();
    r.iteration = state_.iteration;
    r.train_iters = train_iters_;
    r.consumed_samples = state_.consumed_train_samples;
    r.skipped_samples = state_.skipped_train_samples;
    r.learning_rate = now.learning_rate;
    if (config_.decoupled_lr) r.decoupled_learning_rate = now.decoupled_learning_rate;
    r.global_batch_size = batch.running_batch;
    r.loss_scale = parts_->scaler() ? parts_->scaler()->scale() : 1;
    r.fp16 = config_.fp16;
    // Before 0.8 the norm was known only where it was needed for clipping.
    if (!is_old(format_) || config_.clip_grad > 0) r.grad_norm = outcome.grad_norm;
    r.num_zeros = outcome.grad_zeros;
    r.num_zeros_asked = config_.log_num_zeros_in_grad;
    if (config_.log_params_norm) r.params_norm = params_norm();
    r.seq_length = config_.seq_length;
    r.world_size = config_.world_size;
    const double seconds = r.elapsed_ms / 1000;
    const FlopsShape shape = flops_shape(config_, config_.padded_vocab_size);
    const double flops = flops_per_step(flops_formula_of(config_.log_format), shape, batch.running_batch);
    if (config_.log_throughput) r.throughput = throughput_tflops(flops, seconds, config_.world_size);
    if (format_ == LogFormat::jsc) r.jsc_tflops = throughput_tflops(flops, seconds, config_.world_size);
    print(training_line(format_, r));
    metrics_->step(r, static_cast<double>(batch.running_batch * config_.seq_length) / seconds);
    if (!memory_printed_ && now.learning_rate > 0) print_memory();
    if (config_.timing_log_level > 0) report_timers(step_timers, static_cast<double>(config_.log_interval));
}

void Trainer::report_timers(const std::vector<std::string>& names, double normalizer) {
    print_block(timers_.report(mesh_->world(), workspace_.ctx().temp, names, config_.timing_log_option, normalizer));
}

double Trainer::params_norm() {
    const Exec exec = workspace_.ctx().temp;
    const GradSync& sync = parts_->sync();
    double squares = measure_tensors(exec, parts_->optimizer().main_of(sync.counted())).sum_squares;
    sync.norm_group().all_reduce(exec, tensor_over(&squares, {1}), Reduce::sum);
    return std::sqrt(squares);
}

void Trainer::print_memory() {
    memory_printed_ = true;
    if (!is_old(format_)) {
        const TheoreticalModel model{
            .layers = config_.num_layers,
            .hidden = config_.hidden_size,
            .heads = config_.num_attention_heads,
            .query_groups = config_.num_query_groups,
            .kv_channels = config_.kv_channels,
            .ffn = config_.ffn_hidden_size,
            .padded_vocab = config_.padded_vocab_size,
            .gated = config_.swiglu,
            .untied = config_.untie_embeddings_and_output_weights,
            .distributed_optimizer = config_.use_distributed_optimizer,
            .tensor = config_.tensor_model_parallel_size,
            .pipeline = config_.pipeline_model_parallel_size,
            .data = config_.data_parallel_size,
            .with_activations = config_.sequence_parallel && config_.recompute_granularity == "selective",
            .sequence = config_.seq_length,
            .micro_batch = config_.micro_batch_size,
            .micro_batches = batches_->at(state_.consumed_train_samples).micro_batches,
            .virtual_stages = config_.virtual_pipeline_model_parallel_size.value_or(0)};
        for (const std::string& line : theoretical_memory_lines(model)) print(line);
    }
    const auto fixed = static_cast<double>(parts_->weights_bytes() + parts_->optimizer_bytes() + memory_plan_.tables +
                                           memory_plan_.batches + memory_plan_.libraries);
    MemoryReport memory{fixed + static_cast<double>(workspace_.used()), fixed + static_cast<double>(workspace_.peak()),
                        process_bytes("VmRSS"), process_bytes("VmHWM")};
    if (engine_.device() != Device::cpu) {
        memory.reserved = static_cast<double>(engine_.taken().now);
        memory.max_reserved = static_cast<double>(engine_.taken().most);
    }
    if (first_copy()) options_.print(memory_line(config_.rank, state_.iteration, memory));
}

/// How things stand, the same on every rank: what one has seen, all know.
ControlInput Trainer::control_input() {
    const bool look = state_.iteration % config_.log_interval == 0;
    const auto seen = [](bool yes) { return yes ? 1.0 : 0.0; };
    double all[] = {seen(signal_ && signal_->seen()), minutes(), seen(look && triggers_.save_asked()),
                    seen(look && triggers_.exit_asked())};
    mesh_->world().all_reduce(workspace_.ctx().temp, tensor_over(all, {4}), Reduce::max);
    return {.iteration = state_.iteration,
            .signal = all[0] > 0,
            .minutes = all[1],
            .save_trigger = all[2] > 0,
            .exit_trigger = all[3] > 0};
}

bool Trainer::act_on_verdict() {
    const ControlSettings settings{.can_save = !config_.save.empty(),
                                   .save_interval = config_.save_interval,
                                   .exit_interval = config_.exit_interval,
                                   .exit_minutes = config_.exit_duration_in_mins,
                                   .log_interval = config_.log_interval,
                                   .signal_name = format_ == LogFormat::swiss ? "SIGUSR2" : "SIGTERM",
                                   .exit_trigger = triggers_.exit_path()};
    const Verdict verdict = judge(settings, control_input());
    if (verdict.save) save();
    if (verdict.remove_save_trigger && leads()) triggers_.remove_save();
    if (verdict.stop) print_time(verdict.message);
    return verdict.stop;
}

void Trainer::evaluate_and_print(Split split, EvalPlace place) {
    interval_.stop_clock();
    timers_.start("evaluate");
    // Fewer samples than asked for where the ranks cannot share the batch (--decrease-batch-size-if-needed).
    const std::int64_t of_all_ranks = config_.micro_batch_size * config_.data_parallel_size;
    const std::int64_t micro_batches = config_.global_batch_size / of_all_ranks;
    const std::int64_t per_iteration = micro_batches * of_all_ranks;
    EvaluationRequest request{config_.eval_iters, micro_batches};
    if (place != EvalPlace::training) {
        print(cat("Evaluating on ", config_.eval_iters * per_iteration, " samples"));
        request.progress = [&](std::int64_t i) {
            if (!is_old(format_) || i % config_.log_interval == 0)
                print(cat("Evaluating iter ", i, "/", config_.eval_iters));
        };
    }
    const LossSum sum = evaluate(
        *pipeline_, [&]() -> const MicroBatch& { return data_->next(split); }, request);
    if (split == Split::valid) state_.consumed_valid_samples += config_.eval_iters * per_iteration;
    const NamedLosses losses = {{"lm loss", sum.tokens > 0 ? sum.loss / sum.tokens : 0}};
    timers_.stop("evaluate");
    report_timers({"evaluate"});
    for (const std::string& line : evaluation_lines(format_, place, state_.iteration, losses)) print(line);
    metrics_->evaluation(state_.iteration, split == Split::test ? "test" : "validation", losses);
    interval_.start_clock();
}

CheckpointRanks Trainer::checkpoint_ranks() const {
    if (options_.world == nullptr) return {};
    // With the distributed optimizer every rank has its own part, else the copies have all of it.
    const bool gives = config_.use_distributed_optimizer || first_copy();
    return {options_.world, gives ? parts_->sync().counted() : std::vector<ParamSlice>{}};
}

void Trainer::save() {
    if (config_.save.empty() || saved_at_ == state_.iteration) return;
    interval_.stop_clock();
    timers_.start("save-checkpoint");
    print(checkpoint_lines_.saving(state_.iteration, config_.save));
    parts_->sync().settle(workspace_.ctx().temp);
    const CheckpointState state =
        checkpoint_state_of(state_, {config_, schedule_, parts_->scaler(), parts_->optimizer().steps()});
    const SaveReport report =
        save_checkpoint({parts_->model_config(), parts_->params(), parts_->optimizer().state(), tokenizer_->files(),
                         tokenizer_->eod(), state, workspace_.ctx().temp, checkpoint_ranks()},
                        {.folder = config_.save,
                         .optimizer = !config_.no_save_optim,
                         .keep_last = config_.keep_last,
                         .keep_every = config_.keep_every});
    print(checkpoint_lines_.saved(state_.iteration, config_.save));
    for (const std::string& notice : report.notices) print(notice);
    saved_at_ = state_.iteration;
    timers_.stop("save-checkpoint");
    report_timers({"save-checkpoint"});
    const double tokens = static_cast<double>(state_.consumed_train_samples) * static_cast<double>(config_.seq_length);
    progress_->saved(state_.iteration, state_.floating_point_operations, tokens);
    interval_.start_clock();
}

void Trainer::finish(bool trained) {
    if (trained && state_.iteration != 0) save();
    if (evaluates(Split::valid)) evaluate_and_print(Split::valid, EvalPlace::end_validation);
    if (evaluates(Split::test)) evaluate_and_print(Split::test, EvalPlace::end_test);
    if (triggers_.on() && trained) {
        print(cat("Training finished after ", state_.iteration, " iterations; Canceling pending scheduled jobs."));
        triggers_.touch_exit();
    }
}

}  // namespace tera
