// The flag list: how the work is spread over ranks.
#include "config/fields.h"

namespace tera {
namespace {

const char* const no_experts = "experts are not built";
const char* const timing_only = "it changes when data moves, never what is computed";

void add_layout_fields(FieldList& list) {
    using C = RunConfig;
    list.group("layout");
    list.add("tensor-model-parallel-size", &C::tensor_model_parallel_size, "tensor-parallel ranks")
        .alias("model-parallel-size");
    list.add("pipeline-model-parallel-size", &C::pipeline_model_parallel_size, "pipeline stages");
    list.add("context-parallel-size", &C::context_parallel_size, "ranks that share a sequence");
    list.add("cp-comm-type", &C::cp_comm_type,
             "how attention gets the keys of other context ranks: p2p (around a ring) or allgather")
        .values(ArgCount::one_or_more());
    list.add("expert-model-parallel-size", &C::expert_model_parallel_size, "ranks that share the experts")
        .later(no_experts);
    list.add("sequence-parallel", &C::sequence_parallel,
             "norms and dropout on slices of the sequence (with tensor parallelism)");
    list.add("num-layers-per-virtual-pipeline-stage", &C::num_layers_per_virtual_pipeline_stage,
             "interleaved pipeline: layers per chunk");
    list.add("num-virtual-stages-per-pipeline-rank", &C::num_virtual_stages_per_pipeline_rank,
             "interleaved pipeline: chunks per stage");
    list.add("microbatch-group-size-per-virtual-pipeline-stage", &C::microbatch_group_size_per_vp_stage,
             "interleaved pipeline: micro-batches per chunk and turn")
        .as("microbatch_group_size_per_vp_stage");
    list.add("decoder-first-pipeline-num-layers", &C::decoder_first_pipeline_num_layers, "layers of the first stage");
    list.add("decoder-last-pipeline-num-layers", &C::decoder_last_pipeline_num_layers, "layers of the last stage");
    list.add("account-for-embedding-in-pipeline-split", &C::account_for_embedding_in_pipeline_split,
             "the embedding counts as a layer of the first stage");
    list.add("account-for-loss-in-pipeline-split", &C::account_for_loss_in_pipeline_split,
             "the loss counts as a layer of the last stage");
    list.add("no-overlap-p2p-communication", &C::overlap_p2p_comm,
             "interleaved pipeline: receive from other stages only when it is needed")
        .off()
        .as("overlap_p2p_comm");
    list.add("overlap-p2p-communication-warmup-flush", &C::overlap_p2p_comm_warmup_flush,
             "interleaved pipeline: receive ahead also before and after forwards and backwards take turns")
        .as("overlap_p2p_comm_warmup_flush");
    list.add("no-async-tensor-model-parallel-allreduce", &C::async_tensor_model_parallel_allreduce,
             "tensor parallel: do not compute gradients of weights while those of activations travel")
        .off()
        .as("async_tensor_model_parallel_allreduce");
    list.add("defer-embedding-wgrad-compute", &C::defer_embedding_wgrad_compute,
             "the last stage computes the gradient of the output matrix when its other work is done");
    list.add("wgrad-deferral-limit", &C::wgrad_deferral_limit, "of at most so many micro-batches; 0: of all");
    list.add("use-distributed-optimizer", &C::use_distributed_optimizer,
             "share the optimizer state over data-parallel ranks");
    list.add("overlap-grad-reduce", &C::overlap_grad_reduce, "reduce gradients while the backward pass runs");
    list.add("overlap-param-gather", &C::overlap_param_gather, "gather parameters while the forward pass runs");
    list.add("overlap-param-gather-with-optimizer-step", &C::overlap_param_gather_with_optimizer_step,
             "begin to gather a bucket of parameters while the optimizer updates the next");
    list.add("ddp-bucket-size", &C::ddp_bucket_size, "elements per bucket of gradients");
    list.add("use-tp-pp-dp-mapping", &C::use_tp_pp_dp_mapping, "ranks ordered tensor, pipeline, data");
    list.add("distributed-timeout-minutes", &C::distributed_timeout_minutes, "outer bound on one collective");
    list.add("local-rank", &C::local_rank, "rank on this machine; default LOCAL_RANK").alias("local_rank").prints("0");
    list.add("world-size", &C::world_size, "ranks in all; default WORLD_SIZE").prints("1").not_from_core();
    list.add("rank", &C::rank,
             "number of this process, where no launcher says it; with --world-size, --master-addr and --master-port, "
             "which win over the environment")
        .prints("0")
        .not_from_core();
    list.add("master-addr", &C::master_addr, "host of rank 0; default MASTER_ADDR").not_from_core();
    list.add("master-port", &C::master_port, "port of it at which the ranks meet; default MASTER_PORT").not_from_core();
}

void add_inert_fields(FieldList& list) {
    list.unbound(FlagStatus::inert, timing_only,
                 {{"no-align-grad-reduce", "F align_grad_reduce"},
                  {"ddp-num-buckets", "i"},
                  {"ddp-pad-buckets-for-high-nccl-busbw", "T"},
                  {"ddp-average-in-collective", "T"},
                  {"no-align-param-gather", "F align_param_gather"},
                  {"no-scatter-gather-tensors-in-pipeline", "F scatter_gather_tensors_in_pipeline"},
                  {"use-ring-exchange-p2p", "T"},
                  {"no-gradient-reduce-div-fusion", "F gradient_reduce_div_fusion"},
                  {"suggested-communication-unit-size", "i"},
                  {"tp-comm-overlap", "T"},
                  {"tp-comm-overlap-cfg", "s"},
                  {"disable-tp-comm-overlap-ag", "F tp_comm_overlap_ag"},
                  {"disable-tp-comm-overlap-rs", "F tp_comm_overlap_rs"},
                  {"tp-comm-overlap-rs-dgrad", "T"},
                  {"disable-tp-comm-bulk-dgrad", "F tp_comm_bulk_dgrad"},
                  {"disable-tp-comm-bulk-wgrad", "F tp_comm_bulk_wgrad"},
                  {"tp-comm-bootstrap-backend", "s{nccl|mpi|gloo}=nccl"},
                  {"disable-tp-comm-split-ag", "F tp_comm_split_ag"},
                  {"disable-tp-comm-split-rs", "F tp_comm_split_rs"},
                  {"pipeline-model-parallel-comm-backend", "s{nccl|ucc}"},
                  {"nccl-communicator-config-path", "s"},
                  {"train-sync-interval", "i"}});
    list.unbound(FlagStatus::inert, "the program chooses its own transport between ranks",
                 {{"distributed-backend", "s{nccl|gloo}=nccl"},
                  {"disable-gloo-process-groups", "F enable_gloo_process_groups"},
                  {"lazy-mpu-init", "s"}});
    list.unbound(FlagStatus::inert, "there is one data-parallel engine with contiguous buckets",
                 {{"DDP-impl", "s{local|torch}=local"},
                  {"use-contiguous-buffers-in-ddp", "T"},
                  {"no-delay-grad-reduce", "F delay_grad_reduce"}},
                 false);
    list.unbound(FlagStatus::inert, timing_only,
                 {{"overlap-p2p-communication", "T > overlap_p2p_communication_deprecated"},
                  {"async-tensor-model-parallel-allreduce", "T > async_tensor_model_parallel_allreduce_deprecated"},
                  {"use-nccl-ub", "T"},
                  {"disable-symmetric-registration", "T"},
                  {"create-all-gather-group", "T"},
                  {"ddp-reduce-scatter-with-fp32-accumulation", "T"}},
                 false);
}

void add_refused_fields(FieldList& list) {
    list.unbound(FlagStatus::refused, "fully sharded data parallelism is not built; use --use-distributed-optimizer",
                 {{"use-custom-fsdp", "T"},
                  {"init-model-with-meta-device", "T"},
                  {"data-parallel-sharding-strategy", "s{no_shard|optim|optim_grads|optim_grads_params}=no_shard"},
                  {"keep-fp8-transpose-cache-when-using-custom-fsdp", "T"},
                  {"use-torch-fsdp2", "T"}});
    list.unbound(FlagStatus::refused, "fully sharded data parallelism is not built; use --use-distributed-optimizer",
                 {{"use-megatron-fsdp", "T"},
                  {"enable-full-sharding-in-hsdp", "?"},
                  {"fsdp-db-use-persist-buf-on-alloc-fail", "?"},
                  {"fsdp-double-buffer", "?"},
                  {"fsdp-manual-registration", "?"},
                  {"megatron-fsdp-enable-fine-grained-param-gather", "?"},
                  {"megatron-fsdp-grad-comm-dtype", "?"},
                  {"megatron-fsdp-main-grads-dtype", "?"},
                  {"megatron-fsdp-main-params-dtype", "?"},
                  {"megatron-fsdp-max-pool-double-buffer", "?"},
                  {"megatron-fsdp-version", "?"},
                  {"outer-dp-sharding-strategy", "?"},
                  {"torch-fsdp2-no-reshard-after-forward", "?"},
                  {"keep-fp8-transpose-cache", "?"},
                  {"no-use-layer-wise-param-layout", "?"},
                  {"gtp-expert-remat-nccl-ub", "?"},
                  {"gtp-remat-nccl-ub", "?"},
                  {"gtp-remat-reduce-scatter-with-fp32-accumulation", "?"}},
                 false);
    list.unbound(FlagStatus::refused, "encoder and decoder share one layout; leave it out",
                 {{"encoder-tensor-model-parallel-size", "i=0"},
                  {"encoder-pipeline-model-parallel-size", "i=0"},
                  {"pipeline-model-parallel-split-rank", "i"}});
    list.unbound(FlagStatus::refused, "this way to split the work is not built; leave it out",
                 {{"hierarchical-context-parallel-sizes", "i+"},
                  {"num-distributed-optimizer-instances", "i=1"},
                  {"replication", "T"},
                  {"replication-jump", "i"},
                  {"replication-factor", "i=2"}});
    list.unbound(FlagStatus::refused, "this way to split the work is not built; leave it out",
                 {{"pipeline-model-parallel-layout", "?"},
                  {"standalone-embedding-stage", "?"},
                  {"expert-parallel", "?"},
                  {"fake-process-group", "?"},
                  {"ddp-param-name-patterns-for-fp32-local-accumulation", "?"}},
                 false);
}

}  // namespace

void add_parallel_fields(FieldList& list) {
    add_layout_fields(list);
    add_inert_fields(list);
    add_refused_fields(list);
}

}  // namespace tera
