// The flag list: core 0.12 flags for models and services that are not built. Each is refused by name, but only with a
// value other than its default, so that launchers which spell out defaults still work.
#include "config/fields.h"

namespace tera {
namespace {

void add_precision_formats(FieldList& list) {
    list.group("8-bit floating point");
    list.unbound(FlagStatus::refused, "8-bit training is not built; use --bf16",
                 {{"fp8-format", "s{e4m3|hybrid} > fp8"},
                  {"fp8-recipe", "s{tensorwise|delayed|mxfp8}=delayed"},
                  {"fp8-margin", "i=0"},
                  {"fp8-interval", "i=1"},
                  {"fp8-amax-history-len", "i=1"},
                  {"fp8-amax-compute-algo", "s{most_recent|max}=most_recent"},
                  {"no-fp8-wgrad", "F fp8_wgrad"},
                  {"fp8-param-gather", "T"},
                  {"first-last-layers-bf16", "T"},
                  {"num-layers-at-start-in-bf16", "i=1"},
                  {"num-layers-at-end-in-bf16", "i=1"}});
}

void add_inference(FieldList& list) {
    list.group("inference");
    list.unbound(FlagStatus::refused, "this belongs to an inference server; use `teratron generate`",
                 {{"inference-batch-times-seqlen-threshold", "i=-1"},
                  {"max-tokens-to-oom", "i=12000"},
                  {"output-bert-embeddings", "T"},
                  {"bert-embedder-type", "s{megatron|huggingface}=megatron"},
                  {"flash-decode", "T"},
                  {"inference-max-requests", "i=8 > inference_max_batch_size"},
                  {"inference-max-seq-length", "i=2560"},
                  {"inference-dynamic-batching", "T"},
                  {"inference-dynamic-batching-buffer-size-gb", "f=40.0"},
                  {"inference-dynamic-batching-buffer-guaranteed-fraction", "f=0.2"},
                  {"inference-dynamic-batching-buffer-overflow-factor", "f"},
                  {"inference-dynamic-batching-max-requests-override", "i"},
                  {"inference-dynamic-batching-max-tokens-override", "i"}});
}

void add_other_models(FieldList& list) {
    list.group("models that are not built", ResumeRule::shape);
    list.unbound(FlagStatus::refused, "retrieval models (Retro, ICT, biencoders) are not built",
                 {{"retro-project-dir", "s"},
                  {"retro-add-retriever", "T"},
                  {"retro-cyclic-train-iters", "i"},
                  {"retro-encoder-layers", "i=2"},
                  {"retro-encoder-hidden-dropout", "f=0.1"},
                  {"retro-encoder-attention-dropout", "f=0.1"},
                  {"retro-num-neighbors", "i=2"},
                  {"retro-num-retrieved-chunks", "i=2"},
                  {"retro-attention-gate", "f=1"},
                  {"retro-no-verify-neighbor-count", "F retro_verify_neighbor_count"},
                  {"retriever-seq-length", "i=256"},
                  {"ict-head-size", "i"},
                  {"biencoder-projection-dim", "i=0"},
                  {"biencoder-shared-query-context-model", "T"},
                  {"ict-load", "s"},
                  {"bert-load", "s"},
                  {"titles-data-path", "s"},
                  {"query-in-block-prob", "f=0.1"},
                  {"use-one-sent-docs", "T"},
                  {"evidence-data-path", "s"},
                  {"retriever-report-topk-accuracies", "i+=[]"},
                  {"retriever-score-scaling", "T"},
                  {"block-data-path", "s"},
                  {"embedding-path", "s"},
                  {"indexer-batch-size", "i=128"},
                  {"indexer-log-interval", "i=1000"}});
    list.unbound(FlagStatus::refused, "vision models are not built",
                 {{"num-classes", "i=1000"},
                  {"img-h", "i=224"},
                  {"img-w", "i=224"},
                  {"num-channels", "i=3"},
                  {"patch-dim", "i=16"},
                  {"classes-fraction", "f=1.0"},
                  {"data-per-class-fraction", "f=1.0"},
                  {"head-lr-mult", "f=1.0"},
                  {"vision-pretraining", "T"},
                  {"vision-pretraining-type", "s{classify|inpaint|dino}=classify"},
                  {"vision-backbone-type", "s{vit|mit|swin}=vit"},
                  {"swin-backbone-type", "s{tiny|base|h3}=tiny"},
                  {"mask-type", "s{random|row}=random"},
                  {"mask-factor", "f=1.0"},
                  {"iter-per-epoch", "i=1250"},
                  {"dino-local-img-size", "i=96"},
                  {"dino-local-crops-number", "i=10"},
                  {"dino-head-hidden-size", "i=2048"},
                  {"dino-bottleneck-size", "i=256"},
                  {"dino-freeze-last-layer", "f=1"},
                  {"dino-norm-last-layer", "T"},
                  {"dino-warmup-teacher-temp", "f=0.04"},
                  {"dino-teacher-temp", "f=0.07"},
                  {"dino-warmup-teacher-temp-epochs", "i=30"},
                  {"mrope-section", "i+"}});
    list.unbound(FlagStatus::refused, "multi-latent attention and multi-token prediction are not built",
                 {{"multi-latent-attention", "T"},
                  {"mtp-num-layers", "i"},
                  {"mtp-loss-scaling-factor", "f=0.1"},
                  {"q-lora-rank", "i"},
                  {"kv-lora-rank", "i=32"},
                  {"qk-head-dim", "i=128"},
                  {"qk-pos-emb-head-dim", "i=64"},
                  {"v-head-dim", "i=128"},
                  {"rotary-scaling-factor", "f=1.0"},
                  {"mscale", "f=1.0"},
                  {"mscale-all-dim", "f=1.0"}});
    list.unbound(
        FlagStatus::refused, "layers that differ from one another are not built",
        {{"heterogeneous-layers-config-path", "s"}, {"heterogeneous-layers-config-encoded-json", "s"}, {"spec", "s*"}});
    list.unbound(FlagStatus::refused, "Mamba and hybrid models are not built",
                 {{"hybrid-attention-ratio", "f=0.0"},
                  {"hybrid-mlp-ratio", "f=0.0"},
                  {"hybrid-override-pattern", "s"},
                  {"mamba-state-dim", "i=128"},
                  {"mamba-head-dim", "i=64"},
                  {"mamba-num-groups", "i=8"},
                  {"is-hybrid-model", "T"}});
}

void add_experts(FieldList& list) {
    list.group("mixture of experts", ResumeRule::shape);
    list.unbound(FlagStatus::refused, "mixture-of-experts models are not built",
                 {{"expert-tensor-parallel-size", "i"},
                  {"num-experts", "i"},
                  {"moe-layer-freq", "s=1"},
                  {"moe-ffn-hidden-size", "i"},
                  {"moe-shared-expert-intermediate-size", "i"},
                  {"moe-shared-expert-overlap", "T"},
                  {"moe-grouped-gemm", "T"},
                  {"moe-use-legacy-grouped-gemm", "T"},
                  {"moe-layer-recompute", "T"},
                  {"moe-extended-tp", "T"},
                  {"moe-use-upcycling", "T"},
                  {"moe-router-load-balancing-type", "s{aux_loss|seq_aux_loss|global_aux_loss|sinkhorn|none}=aux_loss"},
                  {"moe-router-dtype", "s{fp32|fp64}"},
                  {"moe-router-score-function", "s{softmax|sigmoid}=softmax"},
                  {"moe-router-topk", "i=2"},
                  {"moe-router-pre-softmax", "T"},
                  {"moe-router-num-groups", "i"},
                  {"moe-router-group-topk", "i"},
                  {"moe-router-topk-scaling-factor", "f"},
                  {"moe-router-enable-expert-bias", "T"},
                  {"moe-router-bias-update-rate", "f=0.001"},
                  {"moe-aux-loss-coeff", "f=0.0"},
                  {"moe-z-loss-coeff", "f"},
                  {"moe-input-jitter-eps", "f"},
                  {"moe-per-layer-logging", "T"},
                  {"moe-token-dispatcher-type", "s{allgather|alltoall|flex|alltoall_seq}=allgather"},
                  {"moe-enable-deepep", "T"},
                  {"moe-permute-fusion", "T"},
                  {"moe-expert-capacity-factor", "f"},
                  {"moe-pad-expert-input-to-capacity", "T"},
                  {"moe-token-drop-policy", "s{probs|position}=probs"}});
}

void add_services(FieldList& list) {
    list.group("services and checks that are not built");
    list.unbound(FlagStatus::refused, "NVIDIA's fault-tolerance package is not used; resume with --load and --save",
                 {{"enable-ft-package", "T"}, {"calc-ft-timeouts", "T"}});
    list.unbound(FlagStatus::refused,
                 "automatic resume by NVIDIA's cluster service is not built; resume with --load and --save",
                 {{"adlr-autoresume", "T"}, {"adlr-autoresume-interval", "i=1000"}});
    list.unbound(FlagStatus::refused, "re-running steps to check them is not built; leave it out",
                 {{"error-injection-rate", "i=0"},
                  {"error-injection-type", "s{correct_result|transient_error|persistent_error}=transient_error"},
                  {"rerun-mode", "s{disabled|validate_results|report_stats}=disabled"},
                  {"result-rejected-tracker-filename", "s"}});
    list.unbound(FlagStatus::refused,
                 "this check is not built; leave it out. NaN and Inf stop a run anyway, but for one with "
                 "--no-check-for-nan-in-loss-and-grad or a dynamic loss scale",
                 {{"check-for-spiky-loss", "T"}, {"check-for-large-grads", "T"}});
    list.unbound(FlagStatus::refused, "comparing the weights of data-parallel ranks is not built; leave it out",
                 {{"check-weight-hash-across-dp-replicas-interval", "i"}});
    list.unbound(FlagStatus::refused, "keeping optimizer state in host memory is not built",
                 {{"optimizer-cpu-offload", "T"},
                  {"optimizer-offload-fraction", "f=1.0"},
                  {"use-torch-optimizer-for-cpu-offload", "T"},
                  {"overlap-cpu-optimizer-d2h-h2d", "T"},
                  {"no-pin-cpu-grads", "F pin_cpu_grads"},
                  {"no-pin-cpu-params", "F pin_cpu_params"}});
    list.unbound(FlagStatus::refused, "use --config FILE.yaml with the names of the flags", {{"yaml-cfg", "s"}});
}

}  // namespace

void add_unbuilt_fields(FieldList& list) {
    add_precision_formats(list);
    add_inference(list);
    add_other_models(list);
    add_experts(list);
    add_services(list);
}

}  // namespace tera
