// The flag list: logging, profiling, the machine, kernel choices.
#include "config/fields.h"

namespace tera {
namespace {

const char* const event_files =
    "TensorBoard and Weights & Biases are not built; --metrics-file writes the same numbers as JSON lines";

void add_log_fields(FieldList& list) {
    using C = RunConfig;
    list.group("logging");
    list.add("log-interval", &C::log_interval, "iterations per log line");
    list.add("log-format", &C::log_format,
             "shape of the log lines: core 0.12, newest core, 2021-2023, JSC patch, Swiss AI, version 1")
        .one_of({"core-0.12", "core-head", "legacy", "jsc", "swiss", "v1"})
        .not_from_core();
    list.add("metrics-file", &C::metrics_file, "JSON lines, one object per logged step").not_from_core();
    list.add("log-throughput", &C::log_throughput, "TFLOP/s per GPU in the log line");
    list.add("log-progress", &C::log_progress, "append to progress.txt in the save folder");
    list.add("log-params-norm", &C::log_params_norm, "norm of all parameters in the log line");
    list.add("log-num-zeros-in-grad", &C::log_num_zeros_in_grad, "number of zeros in the gradient in the log line");
    list.add("timing-log-level", &C::timing_log_level,
             "timers: 0 set-up, evaluation, saving; 1 step and optimizer; 2 their parts")
        .one_of({"0", "1", "2"})
        .prints("0");
    list.add("timing-log-option", &C::timing_log_option, "how timers are summed up over ranks")
        .one_of({"max", "minmax", "all"});
    list.add("tensorboard-dir", &C::tensorboard_dir, "folder for event files").later(event_files);
    list.add("tensorboard-log-interval", &C::tensorboard_log_interval, "iterations between event-file entries")
        .no_effect("it only matters for event files, which need --tensorboard-dir");
    list.unbound(FlagStatus::inert, "it only matters for event files, which need --tensorboard-dir",
                 {{"tensorboard-queue-size", "i=1000"},
                  {"log-timers-to-tensorboard", "T"},
                  {"no-log-loss-scale-to-tensorboard", "F log_loss_scale_to_tensorboard"},
                  {"log-validation-ppl-to-tensorboard", "T"},
                  {"log-memory-to-tensorboard", "T"},
                  {"log-world-size-to-tensorboard", "T"}});
    list.unbound(FlagStatus::inert, "it only matters for event files, which need --tensorboard-dir",
                 {{"log-batch-size-to-tensorboard", "T"},
                  {"no-log-learnig-rate-to-tensorboard", "F log_learning_rate_to_tensorboard"},
                  {"log-learning-rate-to-tensorboard", "T > log_learning_rate_to_tensorboard_deprecated"}},
                 false);
    list.unbound(FlagStatus::later, event_files,
                 {{"wandb-project", "s="}, {"wandb-exp-name", "s="}, {"wandb-save-dir", "s="}});
    list.unbound(FlagStatus::later, event_files, {{"wandb-entity", "s="}}, false);
    list.unbound(FlagStatus::later, "norms of single parameters are not logged; use --log-params-norm",
                 {{"log-params-norm-per-param", "T"}}, false);
    list.unbound(FlagStatus::later, "energy is not measured; leave it out", {{"log-energy", "T"}}, false);
    list.unbound(FlagStatus::inert, "there is no barrier around timers to leave out",
                 {{"no-barrier-with-level-1-timing", "F barrier_with_L1_time"}});
    list.unbound(FlagStatus::inert, "log lines come from one place at one level", {{"logging-level", "i"}});
    list.unbound(FlagStatus::inert, "nothing is ever reported to NVIDIA's One Logger",
                 {{"no-one-logger", "F enable_one_logger"},
                  {"one-logger-project", "s=megatron-lm"},
                  {"one-logger-run-name", "s"},
                  {"one-logger-async", "T"},
                  {"app-tag-run-name", "s"},
                  {"app-tag-run-version", "s=0.0.0"}});
    list.unbound(FlagStatus::refused, "reports on slow ranks are not built",
                 {{"log-straggler", "T"},
                  {"disable-straggler-on-startup", "T"},
                  {"straggler-ctrlr-port", "i=65535"},
                  {"straggler-minmax-count", "i=1"},
                  {"run-workload-inspector-server", "T"}});
    list.unbound(FlagStatus::refused, "every flag is kept in the checkpoint's training_state/state.json",
                 {{"config-logger-dir", "s="}});
    list.unbound(FlagStatus::refused, "traces are not sent anywhere",
                 {{"otel-enabled", "?"},
                  {"otel-service-name", "?"},
                  {"otel-span-groups", "?"},
                  {"dump-param-to-param-group-map", "?"}},
                 false);
}

void add_machine_fields(FieldList& list) {
    using C = RunConfig;
    list.group("machine and profiling");
    list.add("device", &C::device, "cpu or cuda; default: what is there").one_of({"cpu", "cuda"}).not_from_core();
    list.add("threads", &C::threads, "CPU threads; 0: all").prints("0").not_from_core();
    list.unbound(FlagStatus::implemented, "YAML file with the same names; the command line wins", {{"config", "s"}},
                 false);
    list.add("deterministic-mode", &C::deterministic_mode, "the same bits in every run");
    list.add("profile", &C::profile, "mark the steps below for nsys profile --capture-range=cudaProfilerApi");
    list.add("profile-step-start", &C::profile_step_start, "iterations before the first profiled one");
    list.add("profile-step-end", &C::profile_step_end, "last iteration profiled");
    list.add("profile-ranks", &C::profile_ranks, "ranks profiled").values(ArgCount::one_or_more());
    list.add("profile-timeline", &C::profile_timeline,
             "folder for a timeline of the profiled steps of each profiled rank, for Perfetto or chrome://tracing")
        .not_from_core();
    list.unbound(
        FlagStatus::refused, "PyTorch's profilers are not there; use --profile",
        {{"use-pytorch-profiler", "T"}, {"record-memory-history", "T"}, {"memory-snapshot-path", "s=snapshot.pickle"}});
    list.unbound(FlagStatus::inert, "there is no garbage collector and no allocator cache here",
                 {{"manual-gc", "T"},
                  {"manual-gc-interval", "i=0"},
                  {"no-manual-gc-eval", "F manual_gc_eval"},
                  {"empty-unused-memory-level", "i{0|1|2}=0"}});
}

void add_kernel_fields(FieldList& list) {
    using C = RunConfig;
    list.group("kernel choices");
    list.add(
        "enable-cuda-graph", &C::enable_cuda_graph,
        "forward and backward of a micro-batch are recorded once and then given to the GPU as a whole, which is done "
        "wherever it can be (one rank, no documents apart, no --profile, --timing-log-level below 2); with this flag a "
        "line says why where it cannot");
    list.add("no-cuda-graph", &C::cuda_graph, "give the GPU kernel by kernel what would else be recorded")
        .off()
        .not_from_core();
    list.unbound(FlagStatus::inert, "it chooses between kernels of the same maths; the program chooses its own",
                 {{"transformer-impl", "s{local|transformer_engine}=transformer_engine"},
                  {"attention-backend", "s{flash|fused|unfused|local|auto}=auto"},
                  {"use-flash-attn", "T"},
                  {"no-masked-softmax-fusion", "F masked_softmax_fusion"},
                  {"no-bias-swiglu-fusion", "F bias_swiglu_fusion"},
                  {"no-bias-dropout-fusion", "F bias_dropout_fusion"},
                  {"no-rope-fusion", "F apply_rope_fusion"},
                  {"cross-entropy-loss-fusion", "T"},
                  {"cross-entropy-fusion-impl", "s{native|te}=native"},
                  {"no-gradient-accumulation-fusion", "F gradient_accumulation_fusion"},
                  {"no-persist-layer-norm", "T"},
                  {"no-clone-scatter-output-in-embedding", "F clone_scatter_output_in_embedding"},
                  {"use-mcore-models", "T"},
                  {"use-legacy-models", "T"},
                  {"cuda-graph-warmup-steps", "i=3"},
                  {"external-cuda-graph", "T"},
                  {"cuda-graph-scope", "s{full|attn}=full"},
                  {"te-rng-tracker", "T"},
                  {"inference-rng-tracker", "T"},
                  {"onnx-safe", "s"}});
    list.unbound(FlagStatus::inert, "it chooses between kernels of the same maths; the program chooses its own",
                 {{"qknorm-impl", "s{te|apex|torch}=te"},
                  {"cuda-graph-modules", "s*"},
                  {"cuda-graph-impl", "s=none"},
                  {"optimizer-cuda-graph", "T"},
                  {"mla-down-proj-fusion", "T"},
                  {"enable-experimental", "T"}},
                 false);
}

}  // namespace

void add_logging_fields(FieldList& list) {
    add_log_fields(list);
    add_machine_fields(list);
    add_kernel_fields(list);
}

}  // namespace tera
