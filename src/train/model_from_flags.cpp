#include "train/model_from_flags.h"

#include "config/fields.h"
#include "core/error.h"

namespace tera {
namespace {

// The fused bias-and-GELU kernel of Megatron computes the tanh form; without it (or without biases to fuse) its plain
// GELU is the exact one. So a flag about fusion is part of the maths.
Activation activation_from(const RunConfig& c) {
    if (c.swiglu) return Activation::swiglu;
    if (c.squared_relu) return Activation::squared_relu;
    const bool fused = c.bias_gelu_fusion && c.add_bias_linear;
    return fused || c.openai_gelu ? Activation::gelu_tanh : Activation::gelu_erf;
}

PositionKind position_from(const RunConfig& c) {
    if (c.position_embedding_type == "rope") return PositionKind::rope;
    if (c.position_embedding_type == "none" || !c.add_position_embedding) return PositionKind::none;
    if (c.position_embedding_type == "learned_absolute") return PositionKind::learned;
    usage_error("--position-embedding-type ", c.position_embedding_type, " is not built for GPT");
}

RopeConfig rope_from(const RunConfig& c) {
    RopeConfig rope;
    rope.base = static_cast<double>(c.rotary_base);
    rope.percent = c.rotary_percent;
    rope.interleaved = c.rotary_interleaved;
    rope.interpolation = static_cast<double>(c.rotary_seq_len_interpolation_factor.value_or(1));
    rope.scaling = c.use_rope_scaling;
    rope.scaling_factor = c.rope_scaling_factor;
    return rope;
}

}  // namespace

ModelConfig model_config_from(const RunConfig& c, std::int64_t padded_vocab, std::int64_t true_vocab) {
    ModelConfig m;
    m.layers = c.num_layers;
    m.hidden = c.hidden_size;
    m.heads = c.num_attention_heads;
    m.kv_heads = c.num_query_groups;
    m.head_dim = c.kv_channels;
    m.ffn = c.ffn_hidden_size;
    m.vocab = padded_vocab;
    m.true_vocab = true_vocab;
    m.max_positions = c.max_position_embeddings;
    m.position = position_from(c);
    m.rope = rope_from(c);
    m.norm = c.normalization == "RMSNorm" ? NormKind::rms_norm : NormKind::layer_norm;
    m.norm_eps = c.norm_epsilon;
    m.norm_one_plus = c.apply_layernorm_1p;
    m.activation = activation_from(c);
    m.linear_bias = c.add_bias_linear;
    m.qkv_bias = c.add_bias_linear || c.add_qkv_bias;
    m.qk_norm = c.qk_layernorm;
    m.tied = !c.untie_embeddings_and_output_weights;
    m.hidden_dropout = c.hidden_dropout;
    m.attention_dropout = c.attention_dropout;
    m.init_std = c.init_method_std;
    m.init_xavier_uniform = c.init_method_xavier_uniform;
    return m;
}

RecomputeConfig recompute_from(const RunConfig& c) {
    RecomputeConfig r;
    if (c.recompute_granularity == "selective") {
        r.kind = RecomputeConfig::Kind::selective;
    } else if (c.recompute_granularity == "full") {
        r.kind = c.recompute_method == "block" ? RecomputeConfig::Kind::block : RecomputeConfig::Kind::uniform;
        r.layers = c.recompute_num_layers > 0 ? c.recompute_num_layers : 1;
        r.shared = c.distribute_saved_activations;
    }
    r.keep_mlp = c.keep_mlp_activations;
    return r;
}

DType value_dtype_from(const RunConfig& c) { return c.bf16 ? DType::bf16 : c.fp16 ? DType::f16 : DType::f32; }

GradDTypes grad_dtypes_from(const RunConfig& c) {
    return {c.main_grads_dtype == "bf16" ? DType::bf16 : DType::f32, DType::f32};
}

std::unique_ptr<UpdateRule> update_rule_from(const RunConfig& c) {
    if (c.optimizer == "adam") return make_adam({c.adam_beta1, c.adam_beta2, c.adam_eps, true});
    if (c.optimizer == "sgd") return make_sgd(c.sgd_momentum);
    if (c.optimizer == "ademamix") {
        AdEmaMixConfig mix;
        mix.beta1 = c.adam_beta1;
        mix.beta2 = c.adam_beta2;
        mix.beta3 = c.ademamix_beta3;
        mix.eps = c.adam_eps;
        mix.alpha = c.ademamix_alpha;
        mix.beta3_warmup = c.ademamix_beta3_warmup;
        mix.alpha_warmup = c.ademamix_alpha_warmup;
        return make_ademamix(mix);
    }
    usage_error("--optimizer ", c.optimizer, " is not built yet; choose adam, sgd or ademamix");
}

std::optional<LossScaler> loss_scaler_from(const RunConfig& c) {
    if (c.loss_scale) return LossScaler(*c.loss_scale);
    if (!c.fp16) return std::nullopt;
    return LossScaler(LossScaler::Dynamic{c.initial_loss_scale, c.min_loss_scale,
                                          static_cast<std::int64_t>(c.loss_scale_window), c.hysteresis});
}

namespace {

std::string smaller_steps(const RunConfig& c) {
    return cat("lower --lr",
               c.clip_grad > 0 ? cat(" or --clip-grad ", python_real(c.clip_grad)) : ", clip with --clip-grad 1",
               c.fp16 ? ", use --bf16, which has the range of fp32" : "");
}

const char* const or_look = ", or look at these samples (--no-check-for-nan-in-loss-and-grad goes on regardless)";

}  // namespace

std::string advice_on_loss(const RunConfig& c) { return smaller_steps(c) + or_look; }

std::string advice_on_gradients(const RunConfig& c) {
    if (!c.loss_scale) return advice_on_loss(c);
    return cat("lower --loss-scale ", python_real(*c.loss_scale), " or leave it out",
               c.fp16 ? " (it is then found between --initial-loss-scale and --min-loss-scale)" : "", ", ",
               advice_on_loss(c));
}

std::string advice_on_smallest_scale(const RunConfig& c, bool finite_loss) {
    if (!finite_loss) return smaller_steps(c) + ", and go back to an earlier checkpoint (--load, --ckpt-step)";
    return cat("lower --min-loss-scale ", python_real(c.min_loss_scale), ", or use --bf16, which needs none");
}

}  // namespace tera
