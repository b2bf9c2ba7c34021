// Everything a run was asked to do, under the names Megatron's argument parser gives its values, plus what follows from
// them. Only values that some part of this program acts on have a member; flags that are accepted but change nothing
// live in `inert`, so that the printed argument list and the checkpoint still carry them.
//
//   "not given"  numbers where 0 would mean something: std::optional; required sizes: 0; names and paths: "".
//   switches     always stored the positive way round: --disable-bias-linear clears add_bias_linear.
//
// Life of a RunConfig:  parse_run_config (flags and YAML)  ->  validate_and_derive  ->  require_runnable (pretrain
// only).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tera {

enum class ModelKind { gpt, bert, t5 };

const char* model_kind_name(ModelKind kind);          // "gpt", "bert", "t5"
ModelKind parse_model_kind(const std::string& name);  // UsageError unless one of the three

/// What the launcher says about this process.
struct Environment {
    int64_t rank = 0;
    int64_t world_size = 1;
    int64_t local_rank = 0;
    static Environment from_process();  // RANK, WORLD_SIZE, LOCAL_RANK; absent: a single process
};

struct RunConfig {
    ModelKind kind = ModelKind::gpt;

    // ---- network ----------------------------------------------------------------------------------------------------
    int64_t num_layers = 0;          // decoder layers (BERT: encoder layers; T5: default of the two below)
    int64_t encoder_num_layers = 0;  // T5
    int64_t decoder_num_layers = 0;  // T5
    int64_t hidden_size = 0;
    int64_t ffn_hidden_size = 0;  // default 4h, with swiglu floor(4h*2/3/64)*64
    int64_t num_attention_heads = 0;
    int64_t kv_channels = 0;  // head dimension; default hidden_size / num_attention_heads
    bool group_query_attention = false;
    int64_t num_query_groups = 0;  // key/value heads; after validation always set (= heads without GQA)
    int64_t max_position_embeddings = 0;
    std::string position_embedding_type = "learned_absolute";  // learned_absolute | rope | none | relative | mrope
    bool add_position_embedding = true;
    int64_t relative_attention_num_buckets = 32;
    int64_t relative_attention_max_distance = 128;
    int64_t rotary_base = 10000;
    double rotary_percent = 1.0;
    bool rotary_interleaved = false;
    std::optional<int64_t> rotary_seq_len_interpolation_factor;
    bool use_rope_scaling = false;
    double rope_scaling_factor = 8.0;
    int64_t make_vocab_size_divisible_by = 128;
    std::string normalization = "LayerNorm";  // LayerNorm | RMSNorm
    double norm_epsilon = 1e-5;
    bool apply_layernorm_1p = false;
    bool apply_residual_connection_post_layernorm = false;
    bool openai_gelu = false;
    bool squared_relu = false;
    bool swiglu = false;
    bool xielu = false;
    bool xiprelu = false;
    bool xiprelup = false;
    bool untie_embeddings_and_output_weights = false;
    bool bert_binary_head = true;
    bool add_bias_linear = true;
    bool add_qkv_bias = false;  // after validation true whenever add_bias_linear is
    bool qk_layernorm = false;
    bool post_layer_norm = false;
    bool attn_layernorm = true;
    bool mlp_layernorm = true;
    bool final_layernorm = true;
    std::optional<double> layernorm_init;
    double input_embeddings_multiplier = 1.0;
    bool bias_gelu_fusion = true;  // chooses tanh GELU (fused, with bias) or erf GELU: part of the maths

    // ---- regularisation and numerics of the layers ------------------------------------------------------------------
    double attention_dropout = 0.1;
    double hidden_dropout = 0.1;
    bool fp32_residual_connection = false;
    bool apply_query_key_layer_scaling = false;
    bool attention_softmax_in_fp32 = false;

    // ---- batches and length of the run ------------------------------------------------------------------------------
    int64_t micro_batch_size = 0;
    int64_t global_batch_size = 0;           // default micro_batch_size * data_parallel_size
    std::vector<int64_t> rampup_batch_size;  // empty, or {start, increment, samples}
    bool decrease_batch_size_if_needed = false;
    std::optional<int64_t>
        train_iters;  // after validation set, unless train_samples is (then see train/batch_schedule.h)
    std::optional<int64_t> train_samples;
    std::optional<int64_t> exit_interval;
    std::optional<int64_t> exit_duration_in_mins;
    bool exit_signal_handler = false;
    std::string trigger_path;  // "" or /dev/null: no triggers
    std::vector<int64_t> iterations_to_skip;
    bool skip_train = false;
    bool calculate_per_token_loss = false;
    bool check_for_nan_in_loss_and_grad = true;
    int64_t eval_iters = 100;
    int64_t eval_interval = 1000;
    int64_t seed = 1234;
    bool data_parallel_random_init = false;
    bool deterministic_mode = false;
    bool enable_cuda_graph = false;  ///< asked for by name, so that it is said where there are none
    bool cuda_graph = true;

    // ---- initial weights --------------------------------------------------------------------------------------------
    double init_method_std = 0.02;
    bool init_method_xavier_uniform = false;
    bool perform_initialization = true;

    // ---- optimizer --------------------------------------------------------------------------------------------------
    std::string optimizer = "adam";  // adam | sgd, later: lamb family, ademamix, muon
    double weight_decay = 0.01;
    std::optional<double> start_weight_decay;  // after validation always set
    std::optional<double> end_weight_decay;    // after validation always set
    std::string weight_decay_incr_style = "constant";
    double clip_grad = 1.0;
    double adam_beta1 = 0.9;
    double adam_beta2 = 0.999;
    double adam_eps = 1e-8;
    double sgd_momentum = 0.9;
    double ademamix_alpha = 5;
    double ademamix_beta3 = 0.999;
    int64_t ademamix_alpha_warmup = -1;
    int64_t ademamix_beta3_warmup = -1;
    double lamb_alpha = 1.0;      // --alpha
    int64_t lambtp_solution = 0;  // --solution

    // ---- learning rate (see optim/lr_schedule.h) --------------------------------------------------------------------
    std::optional<double> lr;
    double min_lr = 0.0;
    std::string lr_decay_style = "linear";  // constant | linear | cosine | inverse-square-root | WSD
    std::optional<int64_t> lr_decay_iters;
    std::optional<int64_t> lr_decay_samples;
    std::optional<int64_t> lr_wsd_decay_iters;
    std::optional<int64_t> lr_wsd_decay_samples;
    std::string lr_wsd_decay_style = "exponential";  // exponential | linear | cosine | minus_sqrt (= 1-sqrt)
    std::optional<double> lr_warmup_fraction;
    int64_t lr_warmup_iters = 0;
    int64_t lr_warmup_samples = 0;
    double lr_warmup_init = 0.0;
    bool override_opt_param_scheduler = false;
    bool use_checkpoint_opt_param_scheduler = false;
    std::optional<double> decoupled_lr;
    std::optional<double> decoupled_min_lr;

    // ---- precision --------------------------------------------------------------------------------------------------
    bool fp16 = false;
    bool bf16 = false;
    bool grad_reduce_in_bf16 = false;
    bool accumulate_allreduce_grads_in_fp32 = false;
    std::string main_grads_dtype = "fp32";  // fp32 | bf16
    std::optional<double> loss_scale;
    double initial_loss_scale = 4294967296.0;
    double min_loss_scale = 1.0;
    double loss_scale_window = 1000;
    int64_t hysteresis = 2;
    bool fp16_lm_cross_entropy = false;

    // ---- recompute --------------------------------------------------------------------------------------------------
    std::string recompute_granularity;  // "" | selective | full
    std::string recompute_method;       // "" | uniform | block
    int64_t recompute_num_layers = 0;   // 0: not given
    std::vector<std::string> recompute_modules;
    bool distribute_saved_activations = false;
    bool keep_mlp_activations = false;

    // ---- checkpoints ------------------------------------------------------------------------------------------------
    std::string save;
    std::string load;
    std::optional<int64_t> save_interval;
    std::optional<int64_t> ckpt_step;
    std::string pretrained_checkpoint;
    bool finetune = false;
    bool no_save_optim = false;
    bool no_save_rng = false;
    bool no_load_optim = false;
    bool no_load_rng = false;
    bool exit_on_missing_checkpoint = false;
    bool use_checkpoint_args = false;
    bool async_save = false;
    int64_t keep_last = 0;   // ours: keep only the newest N checkpoints; 0 keeps all
    int64_t keep_every = 0;  // ours: never delete those whose iteration is a multiple of N

    // ---- layout -----------------------------------------------------------------------------------------------------
    int64_t tensor_model_parallel_size = 1;
    int64_t pipeline_model_parallel_size = 1;
    int64_t context_parallel_size = 1;
    std::vector<std::string> cp_comm_type = {"p2p"};  // one for all layers, or one for each
    int64_t expert_model_parallel_size = 1;
    bool sequence_parallel = false;
    std::optional<int64_t> num_layers_per_virtual_pipeline_stage;
    std::optional<int64_t> num_virtual_stages_per_pipeline_rank;
    std::optional<int64_t> decoder_first_pipeline_num_layers;
    std::optional<int64_t> decoder_last_pipeline_num_layers;
    bool account_for_embedding_in_pipeline_split = false;
    bool account_for_loss_in_pipeline_split = false;
    std::optional<int64_t> microbatch_group_size_per_vp_stage;
    bool overlap_p2p_comm = true;
    bool overlap_p2p_comm_warmup_flush = false;
    bool async_tensor_model_parallel_allreduce = true;
    bool defer_embedding_wgrad_compute = false;
    int64_t wgrad_deferral_limit = 0;
    bool use_distributed_optimizer = false;
    bool overlap_grad_reduce = false;
    bool overlap_param_gather = false;
    bool overlap_param_gather_with_optimizer_step = false;
    std::optional<int64_t> ddp_bucket_size;
    bool use_tp_pp_dp_mapping = false;
    int64_t distributed_timeout_minutes = 10;

    // ---- tokenizer and data -----------------------------------------------------------------------------------------
    std::string tokenizer_type;  // after validation the entry point's default when not given
    std::string tokenizer_model;
    std::string vocab_file;
    std::string merge_file;
    std::optional<int64_t> vocab_size;
    int64_t vocab_extra_ids = 0;
    std::string tiktoken_pattern;
    int64_t tiktoken_num_special_tokens = 1000;
    std::vector<std::string> tiktoken_special_tokens;
    std::vector<std::string> data_path;
    std::vector<std::string> train_data_path;
    std::vector<std::string> valid_data_path;
    std::vector<std::string> test_data_path;
    std::string data_args_path;
    std::string per_split_data_args_path;
    std::string split;  // after validation "969, 30, 1" when data_path is given without it
    std::string data_cache_path;
    bool mmap_bin_files = true;
    bool mock_data = false;
    int64_t seq_length = 0;
    int64_t encoder_seq_length = 0;
    int64_t decoder_seq_length = 0;
    double mask_prob = 0.15;
    double short_seq_prob = 0.1;
    bool reset_position_ids = false;
    bool reset_attention_mask = false;
    bool eod_mask_loss = false;
    bool create_attention_mask_in_dataloader = true;
    std::string dataloader_type;  // after validation "single" when not given
    bool data_sharding = true;    // cyclic: each data-parallel rank shuffles its own part of the data
    int64_t num_workers = 2;
    int64_t num_dataset_builder_threads = 1;
    bool goldfish_loss = false;
    int64_t goldfish_k = 50;
    int64_t goldfish_h = 50;

    // ---- logging ----------------------------------------------------------------------------------------------------
    int64_t log_interval = 100;
    bool log_throughput = false;
    bool log_progress = false;
    bool log_params_norm = false;
    bool log_num_zeros_in_grad = false;
    int64_t timing_log_level = 0;
    std::string timing_log_option = "minmax";
    std::string tensorboard_dir;
    int64_t tensorboard_log_interval = 1;
    std::string log_format = "core-0.12";  // ours: core-0.12 | core-head | legacy | jsc | swiss | v1
    std::string metrics_file;              // ours: JSON lines, one object per logged step

    // ---- machine ----------------------------------------------------------------------------------------------------
    std::string device;   // ours: "" (what is there) | cpu | cuda
    int64_t threads = 0;  // ours: CPU threads; 0: all
    bool profile = false;
    int64_t profile_step_start = 10;
    int64_t profile_step_end = 12;
    std::vector<int64_t> profile_ranks = {0};
    std::string profile_timeline;

    // ---- derived by validate_and_derive or set by the trainer -------------------------------------------------------
    int64_t rank = 0;
    int64_t local_rank = 0;
    int64_t world_size = 1;
    std::string master_addr;             // where ranks meet, if a flag says it
    std::optional<int64_t> master_port;  // at least 1
    int64_t data_parallel_size = 1;
    std::optional<int64_t> virtual_pipeline_model_parallel_size;
    std::string params_dtype = "float32";  // float32 | float16 | bfloat16
    int64_t padded_vocab_size = 0;         // 0 until the tokenizer's size is known
    int64_t consumed_train_samples = 0;
    int64_t consumed_valid_samples = 0;

    // ---- record of how it came about --------------------------------------------------------------------------------
    std::map<std::string, std::string> inert;  // dest -> value as Python would print it
    std::set<std::string> given;               // dests named on the command line or in the YAML file
    bool help_wanted = false;                  // --help was given and printed; nothing else was looked at
    std::vector<std::string> notices;          // one line each: accepted flags without effect, Megatron's own warnings
};

/// Flags (Megatron core 0.12 names, older names as aliases), `--config FILE.yaml` and `@FILE`, over the defaults of
/// `kind`. The command line wins over the YAML file. UsageError for anything unknown, ill-typed or refused.
RunConfig parse_run_config(ModelKind kind, const std::vector<std::string>& args, const Environment& env);

/// Megatron's own checks and derived values for `world_size` ranks, and ours. Idempotent. UsageError names the flags.
void validate_and_derive(RunConfig& config, int64_t world_size);

/// UsageError if the run needs something that `plan` can count but training cannot do yet, or lacks what training
/// needs.
void require_runnable(const RunConfig& config);

/// padded = vocabulary rounded up to a multiple of make_vocab_size_divisible_by * tensor_model_parallel_size.
int64_t pad_vocab_size(int64_t vocab_size, int64_t divisible_by, int64_t tensor_model_parallel_size);

/// Text of `--help` for the training flags, grouped, with defaults.
std::string run_config_help(ModelKind kind);

}  // namespace tera
