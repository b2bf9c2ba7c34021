// The checks and derived values of Megatron's argument validation, and a few of ours where Megatron would go on
// silently with something else than was asked. Each function handles one subject; the order matters only where noted.
#include <cmath>

#include "config/checks.h"
#include "config/ranges.h"
#include "config/run_config.h"
#include "config/validate_model.h"

namespace tera {
namespace {

using namespace checks;

void derive_layout(RunConfig& c, int64_t world_size) {
    require_positive(world_size, "--world-size");
    require_positive(c.tensor_model_parallel_size, "--tensor-model-parallel-size");
    require_positive(c.pipeline_model_parallel_size, "--pipeline-model-parallel-size");
    require_positive(c.context_parallel_size, "--context-parallel-size");
    require_positive(c.expert_model_parallel_size, "--expert-model-parallel-size");
    if (c.expert_model_parallel_size != 1)
        usage_error("--expert-model-parallel-size needs --num-experts, which is not built");
    const int64_t tp = c.tensor_model_parallel_size, pp = c.pipeline_model_parallel_size, cp = c.context_parallel_size;
    if (tp > world_size || pp > world_size || cp > world_size || world_size % (tp * pp * cp) != 0) {
        usage_error("world size ", world_size, " is not a multiple of tensor ", tp, " * pipeline ", pp, " * context ",
                    cp, " = ", tp * pp * cp, " ranks; change --world-size or the layout");
    }
    c.world_size = world_size;
    c.data_parallel_size = world_size / (tp * pp * cp);
    if (c.sequence_parallel && tp == 1) {
        notice(c, "Disabling sequence parallelism because tensor model parallelism is disabled");
        c.sequence_parallel = false;
    }
}

void check_context(const RunConfig& c) {
    const std::vector<std::string>& types = c.cp_comm_type;
    if (types.size() != 1 && static_cast<int64_t>(types.size()) != c.num_layers) {
        usage_error("--cp-comm-type names ", types.size(), " types for ", c.num_layers,
                    " layers: give one, or one for each layer");
    }
    for (const std::string& type : types) {
        if (type != "p2p" && type != "allgather")
            usage_error("--cp-comm-type ", type, " is not built; use p2p or allgather");
        if (type != types[0]) {
            usage_error("--cp-comm-type ", types[0], " and ", type,
                        ": different types for different layers are not built; use one for all");
        }
    }
}

/// "8 layers and the embedding": what is split over the stages.
std::string counted_layers(const RunConfig& c) {
    const bool embedding = c.account_for_embedding_in_pipeline_split, loss = c.account_for_loss_in_pipeline_split;
    return cat(c.num_layers, " layers",
               embedding && loss ? ", the embedding and the loss"
               : embedding       ? " and the embedding"
               : loss            ? " and the loss"
                                 : "");
}

void derive_pipeline(RunConfig& c) {
    const int64_t pp = c.pipeline_model_parallel_size;
    c.virtual_pipeline_model_parallel_size.reset();
    if (c.kind == ModelKind::t5 && pp > 1) {
        usage_error("T5 with --pipeline-model-parallel-size ", pp,
                    " is not built: encoder and decoder share one stage; use 1");
    }
    if (c.num_layers_per_virtual_pipeline_stage && c.num_virtual_stages_per_pipeline_rank) {
        usage_error(
            "give only one of --num-layers-per-virtual-pipeline-stage and --num-virtual-stages-per-pipeline-rank");
    }
    const bool explicit_ends = c.decoder_first_pipeline_num_layers || c.decoder_last_pipeline_num_layers;
    if (explicit_ends && (c.account_for_embedding_in_pipeline_split || c.account_for_loss_in_pipeline_split)) {
        usage_error(
            "--account-for-embedding/loss-in-pipeline-split and --decoder-first/last-pipeline-num-layers exclude each "
            "other");
    }
    if (c.num_layers_per_virtual_pipeline_stage) {
        if (explicit_ends)
            usage_error("with --decoder-first/last-pipeline-num-layers use --num-virtual-stages-per-pipeline-rank");
        require_positive(*c.num_layers_per_virtual_pipeline_stage, "--num-layers-per-virtual-pipeline-stage");
        const int64_t layers =
            c.num_layers + c.account_for_embedding_in_pipeline_split + c.account_for_loss_in_pipeline_split;
        if (layers % pp != 0)
            usage_error(counted_layers(c), " do not split evenly over --pipeline-model-parallel-size ", pp);
        if (layers / pp % *c.num_layers_per_virtual_pipeline_stage != 0)
            usage_error(counted_layers(c), " over ", pp, " pipeline stages make ", layers / pp,
                        " on each, which is not divisible by --num-layers-per-virtual-pipeline-stage ",
                        *c.num_layers_per_virtual_pipeline_stage);
        c.virtual_pipeline_model_parallel_size = layers / pp / *c.num_layers_per_virtual_pipeline_stage;
    } else if (c.num_virtual_stages_per_pipeline_rank) {
        require_positive(*c.num_virtual_stages_per_pipeline_rank, "--num-virtual-stages-per-pipeline-rank");
        c.virtual_pipeline_model_parallel_size = *c.num_virtual_stages_per_pipeline_rank;
    }
    if (c.virtual_pipeline_model_parallel_size == 1) c.virtual_pipeline_model_parallel_size.reset();
    if (!c.virtual_pipeline_model_parallel_size) c.overlap_p2p_comm = false;
    if (c.overlap_p2p_comm_warmup_flush && !c.overlap_p2p_comm) {
        usage_error("--overlap-p2p-communication-warmup-flush is for interleaved pipelines",
                    c.virtual_pipeline_model_parallel_size ? " without --no-overlap-p2p-communication"
                                                           : "; give --num-layers-per-virtual-pipeline-stage");
    }
    if (!c.virtual_pipeline_model_parallel_size) return;
    if (c.microbatch_group_size_per_vp_stage.value_or(pp) < pp) {
        usage_error("--microbatch-group-size-per-virtual-pipeline-stage ", *c.microbatch_group_size_per_vp_stage,
                    " must be at least ", pp, ", the number of pipeline stages");
    }
    const int64_t fewest = given(c, "overlap_p2p_comm") && !c.overlap_p2p_comm ? 3 : 2;
    if (pp < fewest) {
        usage_error("an interleaved pipeline needs --pipeline-model-parallel-size of at least ", fewest,
                    fewest == 3 ? " with --no-overlap-p2p-communication" : "", ", not ", pp);
    }
}

void check_deferral(const RunConfig& c) {
    if (c.defer_embedding_wgrad_compute && c.pipeline_model_parallel_size == 1)
        usage_error("--defer-embedding-wgrad-compute is for pipelines; give --pipeline-model-parallel-size 2 or more");
}

void derive_batches(RunConfig& c) {
    require_positive(c.micro_batch_size, "--micro-batch-size");
    const int64_t per_step = c.micro_batch_size * c.data_parallel_size;
    if (c.global_batch_size == 0) {
        c.global_batch_size = per_step;
        notice(c, cat("setting global batch size to ", per_step));
    }
    require_positive(c.global_batch_size, "--global-batch-size");
    if (!c.decrease_batch_size_if_needed && c.global_batch_size % per_step != 0) {
        usage_error("--global-batch-size ", c.global_batch_size, " is not divisible by micro-batch size ",
                    c.micro_batch_size, " * data-parallel size ", c.data_parallel_size, " = ", per_step);
    }
    if (c.global_batch_size < per_step) {
        usage_error("--global-batch-size ", c.global_batch_size, " is less than one micro-batch on each of the ",
                    c.data_parallel_size, " data-parallel ranks (", per_step, ")");
    }
    if (!c.rampup_batch_size.empty()) {
        if (c.rampup_batch_size.size() != 3)
            usage_error("--rampup-batch-size needs three values: START INCREMENT SAMPLES");
        if (!c.train_samples) usage_error("--rampup-batch-size needs --train-samples");
        const int64_t start = c.rampup_batch_size[0], increment = c.rampup_batch_size[1];
        if (start >= c.global_batch_size || (c.global_batch_size - start) % increment != 0) {
            usage_error("--rampup-batch-size: steps of ", increment, " from ", start,
                        " never reach --global-batch-size ", c.global_batch_size);
        }
    }
}

void check_length(const RunConfig& c) {
    const int64_t first_batch = c.rampup_batch_size.empty() ? c.global_batch_size : c.rampup_batch_size[0];
    if (c.train_samples && !c.decrease_batch_size_if_needed && *c.train_samples < first_batch) {
        usage_error("--train-samples ", *c.train_samples, " is less than one batch of ", first_batch,
                    " samples, so that nothing would be trained; give more samples or a smaller --global-batch-size");
    }
    if (c.train_iters && c.train_samples) usage_error("--train-iters and --train-samples exclude each other");
    if (c.train_iters) {
        if (c.lr_decay_samples)
            usage_error("--lr-decay-samples needs --train-samples; with --train-iters use --lr-decay-iters");
        if (c.lr_wsd_decay_samples)
            usage_error("--lr-wsd-decay-samples needs --train-samples; with --train-iters use --lr-wsd-decay-iters");
        if (c.lr_warmup_samples != 0)
            usage_error("--lr-warmup-samples needs --train-samples; with --train-iters use --lr-warmup-iters");
    }
    if (c.train_samples) {
        if (c.lr_decay_iters)
            usage_error("--lr-decay-iters needs --train-iters; with --train-samples use --lr-decay-samples");
        if (c.lr_wsd_decay_iters)
            usage_error("--lr-wsd-decay-iters needs --train-iters; with --train-samples use --lr-wsd-decay-samples");
        if (c.lr_warmup_iters != 0)
            usage_error("--lr-warmup-iters needs --train-iters; with --train-samples use --lr-warmup-samples");
    }
    if (c.lr_warmup_fraction && (c.lr_warmup_iters != 0 || c.lr_warmup_samples != 0)) {
        usage_error("--lr-warmup-fraction excludes --lr-warmup-iters and --lr-warmup-samples");
    }
    if (c.profile && c.profile_step_end <= c.profile_step_start) {
        usage_error("--profile-step-end ", c.profile_step_end, " must be after --profile-step-start ",
                    c.profile_step_start);
    }
}

void derive_optimizer(RunConfig& c) {
    if (c.lr && c.min_lr > *c.lr) usage_error("--min-lr ", c.min_lr, " is larger than --lr ", *c.lr);
    if (c.decoupled_lr && c.decoupled_min_lr.value_or(0) > *c.decoupled_lr) {
        usage_error("--decoupled-min-lr ", *c.decoupled_min_lr, " is larger than --decoupled-lr ", *c.decoupled_lr);
    }
    if (c.lr_decay_style == "WSD" && c.train_iters && !c.lr_wsd_decay_iters)
        usage_error("--lr-decay-style WSD needs --lr-wsd-decay-iters");
    if (c.lr_decay_style == "WSD" && c.train_samples && !c.lr_wsd_decay_samples) {
        usage_error("--lr-decay-style WSD with --train-samples needs --lr-wsd-decay-samples");
    }
    const bool constant = c.weight_decay_incr_style == "constant";
    if (constant) {
        if (given(c, "start_weight_decay") || given(c, "end_weight_decay")) {
            usage_error("--start-weight-decay and --end-weight-decay need --weight-decay-incr-style linear or cosine");
        }
        c.start_weight_decay = c.end_weight_decay = c.weight_decay;
    } else if (!c.start_weight_decay || !c.end_weight_decay) {
        usage_error("--weight-decay-incr-style ", c.weight_decay_incr_style,
                    " needs --start-weight-decay and --end-weight-decay");
    }
    if (c.override_opt_param_scheduler && c.use_checkpoint_opt_param_scheduler) {
        usage_error("--override-opt_param-scheduler and --use-checkpoint-opt_param-scheduler exclude each other");
    }
}

void derive_precision(RunConfig& c) {
    if (!c.profile_timeline.empty() && !c.profile)
        usage_error("--profile-timeline draws the steps that --profile marks; give that too");
    if (c.fp16 && c.bf16) usage_error("--fp16 and --bf16 exclude each other");
    if (c.enable_cuda_graph && !c.cuda_graph) usage_error("--enable-cuda-graph and --no-cuda-graph exclude each other");
    c.params_dtype = c.fp16 ? "float16" : c.bf16 ? "bfloat16" : "float32";
    if (c.fp16 && !c.loss_scale && c.check_for_nan_in_loss_and_grad) {
        c.check_for_nan_in_loss_and_grad = false;
        notice(
            c,
            "WARNING: Setting args.check_for_nan_in_loss_and_grad to False since dynamic loss scaling is being used");
    }
    if (c.main_grads_dtype == "bf16") {
        notice(c, "gradients of weight matrices are accumulated in bf16, all others in fp32 (--main-grads-dtype bf16)");
    } else if (c.bf16 && c.grad_reduce_in_bf16) {
        c.accumulate_allreduce_grads_in_fp32 = false;
    } else if (c.bf16 && !c.accumulate_allreduce_grads_in_fp32) {
        c.accumulate_allreduce_grads_in_fp32 = true;
        notice(c, "accumulate and all-reduce gradients in fp32 for bfloat16 data type.");
    }
    if (c.loss_scale_window != std::floor(c.loss_scale_window))
        usage_error("--loss-scale-window ", c.loss_scale_window, ": must be a whole number of iterations");
    if (c.main_grads_dtype == "bf16" && !c.bf16) usage_error("--main-grads-dtype bf16 needs --bf16");
    if (c.grad_reduce_in_bf16 && !c.bf16) usage_error("--grad-reduce-in-bf16 needs --bf16");
    if (c.fp16_lm_cross_entropy && !c.fp16) usage_error("--fp16-lm-cross-entropy needs --fp16");
    if (c.fp32_residual_connection && !c.fp16 && !c.bf16)
        usage_error("--fp32-residual-connection needs --fp16 or --bf16");
    if (c.initial_loss_scale < c.min_loss_scale) {
        usage_error("--initial-loss-scale ", c.initial_loss_scale, " is less than --min-loss-scale ", c.min_loss_scale);
    }
}

void derive_recompute(RunConfig& c) {
    if (c.recompute_granularity == "full") {
        if (c.recompute_method.empty())
            usage_error("--recompute-granularity full needs --recompute-method uniform or block");
        if (c.recompute_num_layers == 0) usage_error("--recompute-granularity full needs --recompute-num-layers");
    } else if (!c.recompute_method.empty()) {
        usage_error("--recompute-method needs --recompute-granularity full");
    } else if (c.recompute_granularity == "selective" && c.recompute_num_layers > 0) {
        usage_error("--recompute-num-layers ", c.recompute_num_layers,
                    " is for --recompute-granularity full; with selective, leave it out");
    } else if (c.recompute_num_layers > 0) {
        notice(c, cat("--recompute-num-layers ", c.recompute_num_layers,
                      " changes nothing without --recompute-granularity full"));
    }
    if (!c.recompute_modules.empty() && c.recompute_granularity != "selective") {
        usage_error("--recompute-modules needs --recompute-granularity selective");
    }
    if (c.distribute_saved_activations && (c.tensor_model_parallel_size == 1 || c.recompute_granularity != "full")) {
        usage_error("--distribute-saved-activations needs tensor parallelism and --recompute-granularity full");
    }
    if (c.distribute_saved_activations && c.sequence_parallel) {
        usage_error(
            "--distribute-saved-activations is for tensor parallelism without --sequence-parallel, with which every "
            "rank keeps its own part anyway; leave it out");
    }
    const int64_t elements = c.seq_length / c.context_parallel_size * c.micro_batch_size * c.hidden_size;
    if (c.distribute_saved_activations && elements % c.tensor_model_parallel_size != 0) {
        usage_error("--distribute-saved-activations: ", elements, " elements of a layer's input do not split over ",
                    c.tensor_model_parallel_size, " tensor ranks");
    }
}

void derive_data(RunConfig& c) {
    if (c.tokenizer_type.empty())
        c.tokenizer_type = c.kind == ModelKind::gpt ? "GPT2BPETokenizer" : "BertWordPieceLowerCase";
    if (c.dataloader_type.empty()) c.dataloader_type = "single";
    const bool by_split = !c.train_data_path.empty() || !c.valid_data_path.empty() || !c.test_data_path.empty();
    const int sources =
        !c.data_path.empty() + !c.data_args_path.empty() + by_split + !c.per_split_data_args_path.empty();
    if (sources > 1) {
        usage_error(
            "give the data once: --data-path, --data-args-path, --train/valid/test-data-path or "
            "--per-split-data-args-path");
    }
    if (sources > 0 && c.mock_data) usage_error("--mock-data and data files exclude each other");
    const bool shared = !c.data_path.empty() || !c.data_args_path.empty();
    if (shared && c.split.empty()) {
        c.split = "969, 30, 1";
        notice(c,
               "WARNING: Please specify --split when using --data-path. Using legacy default value of \"969, 30, 1\"");
    }
    if (!shared && sources > 0 && given(c, "split"))
        usage_error("--split needs --data-path: the data is already given per split");
}

void check_checkpoint(RunConfig& c) {
    if (!c.save.empty() && !c.save_interval) usage_error("--save needs --save-interval");
    if (c.save.empty() && c.save_interval) notice(c, "--save-interval without --save: nothing will be saved");
    if (c.keep_every > 0 && c.keep_last == 0)
        usage_error("--keep-every needs --keep-last: without it every checkpoint is kept");
    if (c.ckpt_step && c.load.empty() && c.pretrained_checkpoint.empty()) usage_error("--ckpt-step needs --load");
    if (c.finetune && c.load.empty() && c.pretrained_checkpoint.empty()) usage_error("--finetune needs --load");
    if (c.overlap_param_gather && !(c.use_distributed_optimizer && c.overlap_grad_reduce)) {
        usage_error("--overlap-param-gather needs --use-distributed-optimizer and --overlap-grad-reduce");
    }
    if (c.overlap_param_gather_with_optimizer_step && !c.overlap_param_gather) {
        usage_error(
            "--overlap-param-gather-with-optimizer-step needs --use-distributed-optimizer and --overlap-param-gather");
    }
}

}  // namespace

void validate_and_derive(RunConfig& config, int64_t world_size) {
    check_ranges(config);
    check_proportions(config, world_size);
    derive_layout(config, world_size);
    derive_model(config);
    check_context(config);
    derive_pipeline(config);
    check_deferral(config);
    derive_batches(config);
    check_length(config);
    derive_optimizer(config);
    derive_precision(config);
    derive_recompute(config);
    derive_data(config);
    check_checkpoint(config);
}

}  // namespace tera
