// The flag list: what the model is.
#include "config/fields.h"

namespace tera {
namespace {

const char* const swiss_activation = "this activation comes with the Apertus models; leave it out or use --swiglu";
const char* const swiss_norm = "this norm placement comes with the Apertus models; leave it out";

void add_size_fields(FieldList& list) {
    using C = RunConfig;
    list.group("network size", ResumeRule::shape);
    list.add("num-layers", &C::num_layers, "transformer layers (T5: of the encoder and of the decoder)");
    list.add("encoder-num-layers", &C::encoder_num_layers, "T5: encoder layers, where they differ from --num-layers");
    list.add("decoder-num-layers", &C::decoder_num_layers, "T5: decoder layers, where they differ from --num-layers");
    list.add("hidden-size", &C::hidden_size, "width of the residual stream");
    list.add("ffn-hidden-size", &C::ffn_hidden_size,
             "width of the MLP; default 4 * hidden size, with --swiglu 2/3 of that, down to a multiple of 64");
    list.add("num-attention-heads", &C::num_attention_heads, "query heads");
    list.add("kv-channels", &C::kv_channels, "head dimension; default hidden size / heads");
    list.add("group-query-attention", &C::group_query_attention, "several query heads share a key/value head");
    list.add("num-query-groups", &C::num_query_groups, "key/value heads, with --group-query-attention").prints("1");
    list.add("max-position-embeddings", &C::max_position_embeddings,
             "rows of the learned position table and bound of the sequence length");
    list.add("make-vocab-size-divisible-by", &C::make_vocab_size_divisible_by,
             "the vocabulary is padded to a multiple of this times the tensor-parallel size")
        .on_resume(ResumeRule::training);  // checkpoints are read into any padding
    list.add("untie-embeddings-and-output-weights", &C::untie_embeddings_and_output_weights, "separate output matrix");
    list.add("disable-bias-linear", &C::add_bias_linear, "no bias in the linear layers").off().as("add_bias_linear");
    list.add("add-qkv-bias", &C::add_qkv_bias, "bias in the query/key/value projection although the others have none");
    list.add("qk-layernorm", &C::qk_layernorm, "normalise queries and keys per head");
    list.add("bert-no-binary-head", &C::bert_binary_head, "BERT without the sentence-order head")
        .off()
        .as("bert_binary_head");
}

void add_position_fields(FieldList& list) {
    using C = RunConfig;
    list.group("positions", ResumeRule::shape);
    list.add("position-embedding-type", &C::position_embedding_type, "how positions enter the model")
        .one_of({"learned_absolute", "rope", "mrope", "relative", "none"})
        .later_for({"mrope", "relative"},
                   "relative positions come with T5, mrope with multimodal models; use rope or learned_absolute");
    list.add("no-position-embedding", &C::add_position_embedding,
             "older way to say: no learned table; legal only with rope")
        .off()
        .as("add_position_embedding");
    list.unbound(FlagStatus::implemented, "older way to say --position-embedding-type rope",
                 {{"use-rotary-position-embeddings", "T"}});
    list.add("rotary-base", &C::rotary_base, "base of the rotary frequencies");
    list.add("rotary-percent", &C::rotary_percent, "share of each head that is rotated");
    list.add("rotary-interleaved", &C::rotary_interleaved, "rotate pairs (2i, 2i+1) instead of halves");
    list.add("rotary-seq-len-interpolation-factor", &C::rotary_seq_len_interpolation_factor,
             "positions are divided by this");
    list.add("use-rope-scaling", &C::use_rope_scaling, "frequency scaling of Llama 3.1 and later");
    list.add("rope-scaling-factor", &C::rope_scaling_factor, "factor of that scaling");
    list.add("relative-attention-num-buckets", &C::relative_attention_num_buckets, "T5 relative positions: buckets");
    list.add("relative-attention-max-distance", &C::relative_attention_max_distance,
             "T5 relative positions: largest distance told apart");
}

void add_layer_fields(FieldList& list) {
    using C = RunConfig;
    list.group("layers", ResumeRule::shape);
    list.add("normalization", &C::normalization, "kind of norm").one_of({"LayerNorm", "RMSNorm"});
    list.add("norm-epsilon", &C::norm_epsilon, "added to the variance in norms").alias("layernorm-epsilon");
    list.add("apply-layernorm-1p", &C::apply_layernorm_1p, "norm weights are stored minus one");
    list.add("apply-residual-connection-post-layernorm", &C::apply_residual_connection_post_layernorm,
             "the residual is taken after the norm")
        .later("the original-BERT residual is not built; leave it out");
    list.add("swiglu", &C::swiglu, "MLP is silu(gate) * up");
    list.add("openai-gelu", &C::openai_gelu, "tanh form of GELU");
    list.add("squared-relu", &C::squared_relu, "MLP activation relu(x)^2");
    list.add("no-bias-gelu-fusion", &C::bias_gelu_fusion,
             "exact erf GELU instead of the tanh form that the fused kernel uses")
        .off()
        .as("bias_gelu_fusion");
    list.add("xielu", &C::xielu, "xIELU activation with two learned scalars per layer")
        .later(swiss_activation)
        .not_from_core();
    list.add("xiprelu", &C::xiprelu, "xIPReLU activation").later(swiss_activation).not_from_core();
    list.add("xiprelup", &C::xiprelup, "xIPReLUP activation with a learned power")
        .later(swiss_activation)
        .not_from_core();
    list.add("post-layer-norm", &C::post_layer_norm, "norm on the output of each sub-layer")
        .later(swiss_norm)
        .not_from_core();
    list.add("no-attn-layernorm", &C::attn_layernorm, "no norm before attention")
        .off()
        .as("attn_layernorm")
        .later(swiss_norm)
        .not_from_core();
    list.add("no-mlp-layernorm", &C::mlp_layernorm, "no norm before the MLP")
        .off()
        .as("mlp_layernorm")
        .later(swiss_norm)
        .not_from_core();
    list.add("no-final-layernorm", &C::final_layernorm, "no norm after the last layer")
        .off()
        .as("final_layernorm")
        .later(swiss_norm)
        .not_from_core();
    list.add("layernorm-init", &C::layernorm_init, "initial value of norm weights").later(swiss_norm).not_from_core();
    list.add("input-embeddings-multiplier", &C::input_embeddings_multiplier, "embeddings are multiplied by this")
        .later("the embedding multiplier comes with the Apertus models; leave it out")
        .not_from_core();
}

void add_numerics_fields(FieldList& list) {
    using C = RunConfig;
    list.group("dropout and numerics of the layers", ResumeRule::training);
    list.add("attention-dropout", &C::attention_dropout, "dropout on attention probabilities");
    list.add("hidden-dropout", &C::hidden_dropout, "dropout after embedding, attention and MLP");
    list.add("fp32-residual-connection", &C::fp32_residual_connection, "keep the residual stream in fp32")
        .later("an fp32 residual stream under half-precision layers is not built; leave it out");
    list.add("apply-query-key-layer-scaling", &C::apply_query_key_layer_scaling,
             "divide scores by the layer number, multiply in the softmax")
        .no_effect("scores are accumulated and the softmax is taken in fp32 always, so the two factors cancel out");
    list.add("attention-softmax-in-fp32", &C::attention_softmax_in_fp32, "softmax in fp32")
        .no_effect("the softmax is always taken in fp32");
    list.unbound(FlagStatus::inert, "query/key layer scaling is off already", {{"no-query-key-layer-scaling", "T"}},
                 false);
    list.add("fp16-lm-cross-entropy", &C::fp16_lm_cross_entropy, "cross entropy on half-precision logits")
        .later("the cross entropy is always fp32; leave it out");
    list.group("initial weights", ResumeRule::free);
    list.add("init-method-std", &C::init_method_std, "standard deviation of the normal initialisation");
    list.add("init-method-xavier-uniform", &C::init_method_xavier_uniform, "Xavier uniform instead");
    list.add("no-initialization", &C::perform_initialization,
             "leave the weights for a checkpoint to fill; here they are always set")
        .off()
        .as("perform_initialization")
        .no_effect("weights are always initialised: it costs next to nothing and nothing can be read uninitialised");
    list.add("seed", &C::seed, "seed of weights, dropout and data order").on_resume(ResumeRule::data);
    list.add("data-parallel-random-init", &C::data_parallel_random_init,
             "different initial weights on each data-parallel rank")
        .later("replicas that start from different weights are not built; leave it out");
    list.unbound(FlagStatus::inert,
                 "initial weights are a function of the seed and the place in the global tensor, on any device",
                 {{"use-cpu-initialization", "T=None"}});
}

}  // namespace

void add_model_fields(FieldList& list) {
    add_size_fields(list);
    add_position_fields(list);
    add_layer_fields(list);
    add_numerics_fields(list);
}

}  // namespace tera
