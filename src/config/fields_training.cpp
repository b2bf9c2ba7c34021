// The flag list: batches, optimizer, schedules, precision, recompute, evaluation, exits.
#include "config/fields.h"

namespace tera {
namespace {

void add_batch_fields(FieldList& list) {
    using C = RunConfig;
    list.group("batches and length of the run", ResumeRule::training);
    list.add("micro-batch-size", &C::micro_batch_size, "samples per model replica and forward pass")
        .alias("batch-size")
        .on_resume(ResumeRule::free);
    list.add("global-batch-size", &C::global_batch_size,
             "samples per step; default micro-batch size * data-parallel size");
    list.add("rampup-batch-size", &C::rampup_batch_size,
             "START INCREMENT SAMPLES: grow the batch to --global-batch-size")
        .values({0, 3});
    list.add("decrease-batch-size-if-needed", &C::decrease_batch_size_if_needed,
             "round a batch down to what the replicas can share evenly, and count the rest as skipped");
    list.unbound(FlagStatus::later, "a batch schedule in tokens is not built; use --rampup-batch-size",
                 {{"step-batch-size-schedule", "s"}}, false);
    list.add("train-iters", &C::train_iters, "iterations in all (or --train-samples)").on_resume(ResumeRule::schedule);
    list.add("train-samples", &C::train_samples, "samples in all (or --train-iters)").on_resume(ResumeRule::schedule);
    list.add("calculate-per-token-loss", &C::calculate_per_token_loss,
             "every token of the global batch weighs the same");
    list.add("iterations-to-skip", &C::iterations_to_skip, "iterations whose batch is read but not trained on")
        .values(ArgCount::one_or_more())
        .prints("[]");
    list.add("no-check-for-nan-in-loss-and-grad", &C::check_for_nan_in_loss_and_grad,
             "do not stop at a NaN in loss or gradient")
        .off()
        .as("check_for_nan_in_loss_and_grad");
    list.group("evaluation and exits");
    list.add("eval-iters", &C::eval_iters, "batches per evaluation; 0: never evaluate");
    list.add("eval-interval", &C::eval_interval, "iterations between evaluations");
    list.add("skip-train", &C::skip_train, "only evaluate");
    list.add("exit-interval", &C::exit_interval, "save and exit when the iteration is a multiple of this");
    list.add("exit-duration-in-mins", &C::exit_duration_in_mins, "save and exit after so many minutes");
    list.add("exit-signal-handler", &C::exit_signal_handler, "save and exit on SIGTERM (log format swiss: SIGUSR2)");
    list.add("trigger-path", &C::trigger_path, "folder polled for the files `save` and `exit`")
        .prints("/dev/null")
        .not_from_core();
    list.unbound(FlagStatus::refused, "use --eval-iters; a fixed loss as test mode is not built", {{"test-mode", "T"}});
}

void add_optimizer_fields(FieldList& list) {
    using C = RunConfig;
    list.group("optimizer", ResumeRule::training);
    list.add("optimizer", &C::optimizer, "update rule")
        .one_of({"adam", "sgd", "lamb", "mylamb", "mylamb2", "mylamb3", "lambtp", "lans", "ademamix", "muon",
                 "dist_muon", "lion", "ptadam", "ptadamw", "myadam", "myadamw", "adan"})
        .later_for({"lamb", "mylamb", "mylamb2", "mylamb3", "lambtp", "lans", "muon", "dist_muon", "lion", "ptadam",
                    "ptadamw", "myadam", "myadamw", "adan"},
                   "only adam, ademamix and sgd are built; use one of them");
    list.add("weight-decay", &C::weight_decay, "decoupled weight decay; never on biases and norms")
        .on_resume(ResumeRule::schedule);
    list.add("start-weight-decay", &C::start_weight_decay, "weight decay at the start").on_resume(ResumeRule::schedule);
    list.add("end-weight-decay", &C::end_weight_decay, "weight decay at the end").on_resume(ResumeRule::schedule);
    list.add("weight-decay-incr-style", &C::weight_decay_incr_style, "how it grows in between")
        .one_of({"constant", "linear", "cosine"})
        .on_resume(ResumeRule::schedule);
    list.add("clip-grad", &C::clip_grad, "bound of the global gradient norm; 0: none");
    list.add("adam-beta1", &C::adam_beta1, "decay of the first moment");
    list.add("adam-beta2", &C::adam_beta2, "decay of the second moment");
    list.add("adam-eps", &C::adam_eps, "added to the root of the second moment");
    list.add("sgd-momentum", &C::sgd_momentum, "momentum of sgd");
    list.add("ademamix-alpha", &C::ademamix_alpha, "ademamix: weight of the slow average")
        .prints("5")

        .not_from_core();
    list.add("ademamix-beta3", &C::ademamix_beta3, "ademamix: decay of the slow average").not_from_core();
    list.add("ademamix-alpha-warmup", &C::ademamix_alpha_warmup,
             "ademamix: iterations until alpha is full; none if not positive")

        .not_from_core();
    list.add("ademamix-beta3-warmup", &C::ademamix_beta3_warmup,
             "ademamix: iterations until beta3 is full; none if not positive")

        .not_from_core();
    list.add("alpha", &C::lamb_alpha, "mylamb3: extra learning rate of large tensors")
        .as("alpha")
        .later("the LAMB family is not built; use --optimizer adam")
        .not_from_core();
    list.add("solution", &C::lambtp_solution, "lambtp: how norms are agreed over tensor ranks")
        .prints("0")
        .later("the LAMB family is not built; use --optimizer adam")
        .not_from_core();
    list.unbound(FlagStatus::later, "this optimizer is not built; use --optimizer adam",
                 {{"adan-beta3", "f=0.999"},
                  {"lion-beta1", "f=0.95"},
                  {"lion-beta2", "f=0.98"},
                  {"muon-momentum", "f=0.9"},
                  {"muon-nesterov", "T"},
                  {"muon-no-split-qkv", "F muon_split_qkv"},
                  {"muon-num-ns-steps", "i=5"},
                  {"muon-scale-mode", "s=spectral"},
                  {"muon-extra-scale-factor", "f=1.0"},
                  {"muon-tp-mode", "s=blockwise"},
                  {"muon-fp32-matmul-prec", "s=medium"},
                  {"muon-coefficient-type", "s=quintic"},
                  {"muon-scalar-optimizer", "s=adam"},
                  {"muon-use-syrk", "T"}},
                 false);
}

void add_schedule_fields(FieldList& list) {
    using C = RunConfig;
    list.group("learning rate", ResumeRule::schedule);
    list.add("lr", &C::lr, "peak learning rate");
    list.add("min-lr", &C::min_lr, "floor of the learning rate");
    list.add("lr-decay-style", &C::lr_decay_style, "shape of the decay")
        .one_of({"constant", "linear", "cosine", "inverse-square-root", "WSD"});
    list.add("lr-decay-iters", &C::lr_decay_iters, "iterations of warm-up and decay; default --train-iters");
    list.add("lr-decay-samples", &C::lr_decay_samples, "the same in samples; default --train-samples");
    list.add("lr-wsd-decay-iters", &C::lr_wsd_decay_iters, "WSD: iterations of the final decay");
    list.add("lr-wsd-decay-samples", &C::lr_wsd_decay_samples, "WSD: samples of the final decay");
    list.add("lr-wsd-decay-style", &C::lr_wsd_decay_style, "WSD: shape of the final decay")
        .one_of({"exponential", "linear", "cosine", "minus_sqrt", "1-sqrt"});
    list.add("lr-warmup-fraction", &C::lr_warmup_fraction, "linear warm-up over this share of the decay length")
        .alias("warmup");
    list.add("lr-warmup-iters", &C::lr_warmup_iters, "linear warm-up in iterations").prints("0");
    list.add("lr-warmup-samples", &C::lr_warmup_samples, "linear warm-up in samples").prints("0");
    list.add("lr-warmup-init", &C::lr_warmup_init, "learning rate the warm-up starts from");
    list.add("override-opt_param-scheduler", &C::override_opt_param_scheduler,
             "at resume: the schedule of the command line")
        .alias("override-opt-param-scheduler")
        .alias("override-lr-scheduler")
        .on_resume(ResumeRule::free);
    list.add("use-checkpoint-opt_param-scheduler", &C::use_checkpoint_opt_param_scheduler,
             "at resume: the schedule of the checkpoint")
        .alias("use-checkpoint-opt-param-scheduler")
        .alias("use-checkpoint-lr-scheduler")
        .on_resume(ResumeRule::free);
    list.add("decoupled-lr", &C::decoupled_lr, "peak learning rate of embedding and output matrix");
    list.add("decoupled-min-lr", &C::decoupled_min_lr, "its floor");
}

void add_precision_fields(FieldList& list) {
    using C = RunConfig;
    list.group("precision", ResumeRule::training);
    list.add("fp16", &C::fp16, "fp16 weights and activations, fp32 main weights, dynamic loss scale");
    list.add("bf16", &C::bf16, "bf16 weights and activations, fp32 main weights");
    list.add("grad-reduce-in-bf16", &C::grad_reduce_in_bf16, "accumulate and reduce gradients in bf16")
        .later("gradients are accumulated in fp32; leave it out");
    list.add("accumulate-allreduce-grads-in-fp32", &C::accumulate_allreduce_grads_in_fp32,
             "accumulate and reduce gradients in fp32");
    list.add("loss-scale", &C::loss_scale, "constant loss scale; a power of two");
    list.add("initial-loss-scale", &C::initial_loss_scale, "dynamic loss scale at the start").prints("4294967296");
    list.add("min-loss-scale", &C::min_loss_scale, "floor of the dynamic loss scale");
    list.add("loss-scale-window", &C::loss_scale_window, "clean iterations before the scale doubles").prints("1000");
    list.add("hysteresis", &C::hysteresis, "overflows tolerated before the scale halves");
    list.add("main-grads-dtype", &C::main_grads_dtype,
             "number format in which the gradients of weight matrices are accumulated; others are fp32")
        .one_of({"fp32", "bf16"});
    list.unbound(FlagStatus::later, "main weights and moments are fp32 here; leave it out",
                 {{"main-params-dtype", "s{fp32|fp16}=fp32"},
                  {"exp-avg-dtype", "s{fp32|fp16|fp8}=fp32"},
                  {"exp-avg-sq-dtype", "s{fp32|fp16|fp8}=fp32"}});
    list.unbound(FlagStatus::inert,
                 "the optimizer reads its dtypes from the four --…-dtype flags; the switch itself adds nothing",
                 {{"use-precision-aware-optimizer", "T"}});
    list.unbound(FlagStatus::inert, "matrix products accumulate in fp32 always",
                 {{"disable-bf16-reduced-precision-matmul", "T"}});
}

void add_recompute_fields(FieldList& list) {
    using C = RunConfig;
    list.group("activation recompute");
    list.add("recompute-granularity", &C::recompute_granularity, "selective: the attention core; full: whole layers")
        .one_of({"full", "selective"});
    list.unbound(FlagStatus::implemented, "short for --recompute-granularity selective",
                 {{"recompute-activations", "T"}});
    list.add("recompute-method", &C::recompute_method, "full: chunks of layers, or the first layers of a stage")
        .one_of({"uniform", "block"});
    list.add("recompute-num-layers", &C::recompute_num_layers, "uniform: layers per chunk; block: layers recomputed")
        .alias("checkpoint-num-layers");
    list.add("recompute-modules", &C::recompute_modules, "selective: which modules; only core_attn is built");
    list.add("keep-mlp-activations", &C::keep_mlp_activations,
             "keep what leaves the MLP's activation for the backward pass, which else computes it again: faster, more "
             "memory");
    list.unbound(FlagStatus::implemented, "older way to say --recompute-granularity full --recompute-method uniform",
                 {{"checkpoint-activations", "T"}});
    list.add("distribute-saved-activations", &C::distribute_saved_activations,
             "full: each tensor rank keeps a part of what layers are recomputed from")
        .alias("distribute-checkpointed-activations");
}

}  // namespace

void add_training_fields(FieldList& list) {
    add_batch_fields(list);
    add_optimizer_fields(list);
    add_schedule_fields(list);
    add_precision_fields(list);
    add_recompute_fields(list);
}

}  // namespace tera
