#include "config/validate_model.h"

#include <cmath>
#include <utility>

#include "config/checks.h"

namespace tera {
namespace {

using namespace checks;

/// Far beyond any run, and small enough that no product of sizes overflows: a slip of the keyboard is an error, not a
/// negative number of parameters.
void require_sane(int64_t value, const char* flag, int bits) {
    if (value > int64_t{1} << bits) usage_error(flag, " ", value, " is out of all proportion (at most 2^", bits, ")");
}

void derive_layer_counts(RunConfig& c) {
    if (c.kind == ModelKind::t5) {
        if (c.num_layers == 0) c.num_layers = c.encoder_num_layers;
        if (c.encoder_num_layers == 0) c.encoder_num_layers = c.num_layers;
        if (c.decoder_num_layers == 0) c.decoder_num_layers = c.num_layers;
        require_positive(c.encoder_num_layers, "--encoder-num-layers (or --num-layers)");
        require_positive(c.decoder_num_layers, "--decoder-num-layers (or --num-layers)");
        return;
    }
    const bool contradiction =
        given(c, "num_layers") && given(c, "encoder_num_layers") && c.num_layers != c.encoder_num_layers;
    if (contradiction)
        usage_error("--num-layers ", c.num_layers, " and --encoder-num-layers ", c.encoder_num_layers,
                    " contradict each other");
    if (c.num_layers == 0) c.num_layers = c.encoder_num_layers;
    c.encoder_num_layers = c.num_layers;
    require_positive(c.num_layers, "--num-layers");
    if (given(c, "decoder_num_layers")) usage_error("--decoder-num-layers is for T5; use --num-layers");
}

void derive_attention(RunConfig& c) {
    require_positive(c.hidden_size, "--hidden-size");
    require_positive(c.num_attention_heads, "--num-attention-heads");
    if (c.kv_channels == 0) {
        if (c.hidden_size % c.num_attention_heads != 0) {
            usage_error("--hidden-size ", c.hidden_size, " is not divisible by --num-attention-heads ",
                        c.num_attention_heads, "; change one of them or give the head dimension with --kv-channels");
        }
        c.kv_channels = c.hidden_size / c.num_attention_heads;
    }
    require_positive(c.kv_channels, "--kv-channels");
    if (c.group_query_attention) {
        if (c.num_query_groups == 0) c.num_query_groups = 1;  // Megatron's default
        require_positive(c.num_query_groups, "--num-query-groups");
        require_divides(c.num_query_groups, "--num-query-groups", c.num_attention_heads, "--num-attention-heads");
    } else {
        const bool asked =
            given(c, "num_query_groups") && c.num_query_groups != 1 && c.num_query_groups != c.num_attention_heads;
        if (asked) usage_error("--num-query-groups ", c.num_query_groups, " needs --group-query-attention");
        c.num_query_groups = c.num_attention_heads;
    }
    const int64_t tp = c.tensor_model_parallel_size;
    require_divides(tp, "--tensor-model-parallel-size", c.num_attention_heads, "--num-attention-heads");
    if (c.num_query_groups % tp != 0 && tp % c.num_query_groups != 0) {
        usage_error("--num-query-groups ", c.num_query_groups,
                    " neither divides nor is a multiple of --tensor-model-parallel-size ", tp);
    }
}

void derive_mlp(RunConfig& c) {
    const int kinds = c.swiglu + c.openai_gelu + c.squared_relu + c.xielu + c.xiprelu + c.xiprelup;
    if (kinds > 1) {
        usage_error("only one of --swiglu, --openai-gelu, --squared-relu, --xielu, --xiprelu, --xiprelup can be given");
    }
    if (c.ffn_hidden_size == 0) {
        c.ffn_hidden_size = c.swiglu ? static_cast<int64_t>(4.0 * static_cast<double>(c.hidden_size) * 2 / 3 / 64) * 64
                                     : 4 * c.hidden_size;
    }
    require_positive(c.ffn_hidden_size, "--ffn-hidden-size");
    require_divides(c.tensor_model_parallel_size, "--tensor-model-parallel-size", c.ffn_hidden_size,
                    "--ffn-hidden-size");
    if (!c.add_bias_linear) c.bias_gelu_fusion = false;
    if (c.add_bias_linear) c.add_qkv_bias = true;
}

void derive_positions(RunConfig& c) {
    if (!c.add_position_embedding && c.position_embedding_type == "learned_absolute") {
        usage_error(
            "--no-position-embedding needs --position-embedding-type rope (or none): the learned table is the default");
    }
    if (c.position_embedding_type == "rope") {
        const double rotated = std::floor(static_cast<double>(c.kv_channels) * c.rotary_percent);
        const bool possible =
            rotated >= 2 && rotated <= static_cast<double>(c.kv_channels) && static_cast<int64_t>(rotated) % 2 == 0;
        if (!possible) {
            usage_error("--rotary-percent ", c.rotary_percent, " of the head dimension ", c.kv_channels, " is ",
                        rotated, " rotated dimensions: that must be an even number of at least 2");
        }
    } else if (c.use_rope_scaling) {
        usage_error("--use-rope-scaling needs --position-embedding-type rope");
    }
}

void derive_sequence(RunConfig& c) {
    if (c.seq_length != 0 && c.encoder_seq_length != 0 && c.seq_length != c.encoder_seq_length) {
        usage_error("--seq-length ", c.seq_length, " and --encoder-seq-length ", c.encoder_seq_length,
                    " contradict each other");
    }
    if (c.seq_length == 0) c.seq_length = c.encoder_seq_length;
    require_positive(c.seq_length, "--seq-length");
    c.encoder_seq_length = c.seq_length;
    require_positive(c.max_position_embeddings, "--max-position-embeddings");
    if (c.seq_length > c.max_position_embeddings) {
        usage_error("--seq-length ", c.seq_length, " is longer than --max-position-embeddings ",
                    c.max_position_embeddings);
    }
    if (c.kind == ModelKind::t5) require_positive(c.decoder_seq_length, "--decoder-seq-length");
    if (c.decoder_seq_length > c.max_position_embeddings) {
        usage_error("--decoder-seq-length ", c.decoder_seq_length, " is longer than --max-position-embeddings ",
                    c.max_position_embeddings);
    }
    if (const int64_t chunks = 2 * c.context_parallel_size; c.context_parallel_size > 1 && c.seq_length % chunks != 0) {
        usage_error("--seq-length ", c.seq_length, " must be a multiple of ", chunks,
                    ", two chunks for each of --context-parallel-size ", c.context_parallel_size, ": the next is ",
                    c.seq_length / chunks * chunks + chunks);
    }
    if (c.sequence_parallel) {
        require_divides(c.tensor_model_parallel_size * c.context_parallel_size,
                        "the tensor- and context-parallel ranks", c.seq_length, "--seq-length");
    }
}

}  // namespace

void check_proportions(const RunConfig& c, int64_t world_size) {
    require_sane(world_size, "--world-size", 24);
    require_sane(c.tensor_model_parallel_size, "--tensor-model-parallel-size", 16);
    require_sane(c.pipeline_model_parallel_size, "--pipeline-model-parallel-size", 16);
    require_sane(c.context_parallel_size, "--context-parallel-size", 16);
    for (const int64_t layers : {c.num_layers, c.encoder_num_layers, c.decoder_num_layers})
        require_sane(layers, "--num-layers", 15);
    require_sane(c.hidden_size, "--hidden-size", 20);
    require_sane(c.ffn_hidden_size, "--ffn-hidden-size", 22);
    require_sane(c.num_attention_heads, "--num-attention-heads", 16);
    require_sane(c.kv_channels, "--kv-channels", 20);
    if (c.kv_channels > 0 && c.num_attention_heads > 0)
        require_sane(c.kv_channels * c.num_attention_heads, "heads * --kv-channels", 21);
    require_sane(c.num_query_groups, "--num-query-groups", 16);
    require_sane(c.max_position_embeddings, "--max-position-embeddings", 31);
    require_sane(c.seq_length, "--seq-length", 31);
    require_sane(c.encoder_seq_length, "--encoder-seq-length", 31);
    require_sane(c.vocab_size.value_or(0), "--vocab-size", 31);
    require_sane(c.vocab_extra_ids, "--vocab-extra-ids", 24);
    require_sane(c.make_vocab_size_divisible_by, "--make-vocab-size-divisible-by", 20);
    require_sane(c.micro_batch_size, "--micro-batch-size", 24);
    require_sane(c.global_batch_size, "--global-batch-size", 31);
    require_sane(c.train_samples.value_or(0), "--train-samples", 53);
    const std::pair<const char*, std::optional<int64_t>> lengths[] = {{"--train-iters", c.train_iters},
                                                                      {"--lr-decay-iters", c.lr_decay_iters},
                                                                      {"--lr-warmup-iters", c.lr_warmup_iters},
                                                                      {"--lr-wsd-decay-iters", c.lr_wsd_decay_iters}};
    for (const auto& [flag, length] : lengths) require_sane(length.value_or(0), flag, 31);
    for (const int64_t value : c.rampup_batch_size) require_sane(value, "--rampup-batch-size", 53);
}

void derive_model(RunConfig& config) {
    derive_layer_counts(config);
    derive_attention(config);
    derive_mlp(config);
    derive_positions(config);
    derive_sequence(config);
}

}  // namespace tera
