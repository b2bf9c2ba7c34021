// config.json: what transformers writes and reads. Written in the keys that every version since 4.40 understands
// (rope_theta and rope_scaling, torch_dtype); read in those and in the newer ones (rope_parameters, dtype).
#include "model/hf_config.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "io/json_file.h"

namespace tera {
namespace {
using nlohmann::json;

const char* torch_dtype(DType t) {
    switch (t) {
        case DType::f64:
            return "float64";
        case DType::bf16:
            return "bfloat16";
        case DType::f16:
            return "float16";
        default:
            return "float32";
    }
}

std::optional<DType> parse_torch_dtype(std::string name) {
    if (name.rfind("torch.", 0) == 0) name.erase(0, 6);
    for (const DType t : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
        if (name == torch_dtype(t)) return t;
    }
    return std::nullopt;
}

// ---- writing
// ----------------------------------------------------------------------------------------------------------

/// Of a gated activation: that of the gate.
const char* activation_name(const ModelConfig& c, HfArchitecture architecture) {
    switch (c.activation) {
        case Activation::gelu_tanh:
            return architecture == HfArchitecture::gpt2 ? "gelu_new" : "gelu_pytorch_tanh";
        case Activation::gelu_erf:
            return "gelu";
        case Activation::squared_relu:
            return "relu2";
        case Activation::swiglu:
            return "silu";
        case Activation::geglu:
            return "gelu_pytorch_tanh";
    }
    return "";
}

json gpt2_json(const ModelConfig& c) {
    return {{"n_embd", c.hidden},
            {"n_head", c.heads},
            {"n_layer", c.layers},
            {"n_positions", c.max_positions},
            {"n_ctx", c.max_positions},
            {"n_inner", c.ffn},
            {"activation_function", activation_name(c, HfArchitecture::gpt2)},
            {"layer_norm_epsilon", c.norm_eps},
            {"resid_pdrop", c.hidden_dropout},
            {"embd_pdrop", c.hidden_dropout},
            {"attn_pdrop", c.attention_dropout},
            {"scale_attn_weights", true},
            {"scale_attn_by_inverse_layer_idx", false},
            {"reorder_and_upcast_attn", false}};
}

json rope_scaling_json(const RopeConfig& rope) {
    if (rope.scaling) {
        return {{"rope_type", "llama3"},
                {"factor", rope.scaling_factor},
                {"low_freq_factor", rope.low_freq_factor},
                {"high_freq_factor", rope.high_freq_factor},
                {"original_max_position_embeddings", rope.original_max_positions}};
    }
    if (rope.interpolation != 1) return {{"rope_type", "linear"}, {"factor", rope.interpolation}};
    return nullptr;
}

json rope_model_json(const ModelConfig& c, HfArchitecture architecture) {
    json j = {{"hidden_size", c.hidden},
              {"num_attention_heads", c.heads},
              {"num_key_value_heads", c.kv_heads},
              {"head_dim", c.head_dim},
              {"num_hidden_layers", c.layers},
              {"intermediate_size", c.ffn},
              {"max_position_embeddings", c.max_positions},
              {"hidden_act", activation_name(c, architecture)},
              {"attention_dropout", c.attention_dropout},
              {"rope_theta", c.rope.base},
              {"rope_scaling", rope_scaling_json(c.rope)}};
    switch (architecture) {
        case HfArchitecture::starcoder2:
            j["norm_epsilon"] = c.norm_eps;
            j["use_bias"] = c.linear_bias;
            j["residual_dropout"] = c.hidden_dropout;
            j["embedding_dropout"] = c.hidden_dropout;
            j["sliding_window"] = nullptr;
            break;
        case HfArchitecture::nemotron:
            j["norm_eps"] = c.norm_eps;
            j["partial_rotary_factor"] = c.rope.percent;
            j["attention_bias"] = c.qkv_bias;
            j["mlp_bias"] = c.linear_bias;
            break;
        default:
            j["rms_norm_eps"] = c.norm_eps;
            j["attention_bias"] = c.linear_bias && c.qkv_bias;
            j["mlp_bias"] = c.linear_bias;
            if (architecture != HfArchitecture::llama) j["sliding_window"] = nullptr;
            if (architecture != HfArchitecture::llama) j["use_sliding_window"] = false;
            break;
    }
    return j;
}

// ---- reading
// ----------------------------------------------------------------------------------------------------------

Activation parse_activation(const JsonObject& o, const std::string& key, const std::string& otherwise, bool gated) {
    const std::string name = o.text(key, otherwise);
    const bool tanh_gelu = name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast";
    if (gated) {
        if (name == "silu" || name == "swish") return Activation::swiglu;
        if (tanh_gelu) return Activation::geglu;
    } else {
        if (tanh_gelu) return Activation::gelu_tanh;
        if (name == "gelu") return Activation::gelu_erf;
        if (name == "relu2") return Activation::squared_relu;
    }
    usage_error(o.where(), ": \"", key, "\" ", name, " is not supported ",
                gated ? "(silu or gelu_pytorch_tanh)" : "(gelu, gelu_new, gelu_pytorch_tanh or relu2)");
}

void refuse_if(const JsonObject& o, const std::string& key, const char* why) {
    if (o.boolean(key, false)) o.fail(key, cat("is not supported: ", why));
}

void read_rope_scaling(const JsonObject& o, RopeConfig& rope) {
    const std::string kind = o.text("rope_type", o.text("type", "default"));
    if (kind == "default") return;
    if (kind == "linear") {
        rope.interpolation = o.real("factor");
    } else if (kind == "llama3") {
        rope.scaling = true;
        rope.scaling_factor = o.real("factor");
        rope.low_freq_factor = o.real("low_freq_factor");
        rope.high_freq_factor = o.real("high_freq_factor");
        rope.original_max_positions = o.integer("original_max_position_embeddings");
    } else {
        o.fail("rope_type", kind + " is not supported (default, linear or llama3)");
    }
}

RopeConfig read_rope(const JsonObject& o, HfArchitecture architecture) {
    RopeConfig rope;
    rope.base = o.real("rope_theta", 10000);
    rope.percent = o.real("partial_rotary_factor", architecture == HfArchitecture::nemotron ? 0.5 : 1.0);
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
        if (!o.has(key)) continue;
        const JsonObject inner = o.object(key);
        for (const auto& item : inner.json().items()) {
            if (item.value().is_object()) o.fail(key, "differs by layer, which is not supported");
        }
        rope.base = inner.real("rope_theta", rope.base);
        rope.percent = inner.real("partial_rotary_factor", rope.percent);
        read_rope_scaling(inner, rope);
    }
    return rope;
}

void refuse_sliding_window(const JsonObject& o, HfArchitecture architecture, std::int64_t max_positions) {
    const bool by_switch = architecture == HfArchitecture::qwen2 || architecture == HfArchitecture::qwen3;
    if (by_switch) refuse_if(o, "use_sliding_window", "attention here always reaches back to the start");
    const bool may_have = architecture == HfArchitecture::mistral || architecture == HfArchitecture::starcoder2;
    if (may_have && o.has("sliding_window") && o.integer("sliding_window") < max_positions) {
        o.fail("sliding_window", "is shorter than max_position_embeddings, which is not supported");
    }
    if (!o.has("layer_types")) return;
    for (const json& kind : o.value("layer_types")) {
        if (kind != "full_attention") o.fail("layer_types", "names other layers than full_attention: not supported");
    }
}

ModelConfig read_gpt2(const JsonObject& o) {
    ModelConfig c;
    c.hidden = o.integer("n_embd");
    c.heads = c.kv_heads = o.integer("n_head");
    c.layers = o.integer("n_layer");
    c.max_positions = o.integer("n_positions");
    c.ffn = o.integer("n_inner", 4 * c.hidden);
    if (c.heads <= 0 || c.hidden % c.heads != 0) o.fail("n_embd", "is not a multiple of n_head");
    c.head_dim = c.hidden / c.heads;
    c.position = PositionKind::learned;
    c.norm_eps = o.real("layer_norm_epsilon", 1e-5);
    c.activation = parse_activation(o, "activation_function", "gelu_new", false);
    c.tied = o.boolean("tie_word_embeddings", true);
    c.hidden_dropout = o.real("resid_pdrop", 0.1);
    c.attention_dropout = o.real("attn_pdrop", 0.1);
    if (!o.boolean("scale_attn_weights", true)) o.fail("scale_attn_weights", "false is not supported");
    refuse_if(o, "scale_attn_by_inverse_layer_idx", "scores are scaled by the head dimension only");
    refuse_if(o, "add_cross_attention", "this is a decoder without an encoder");
    return c;
}

void read_biases(const JsonObject& o, HfArchitecture architecture, ModelConfig& c) {
    switch (architecture) {
        case HfArchitecture::starcoder2:
            c.linear_bias = c.qkv_bias = o.boolean("use_bias", true);
            return;
        case HfArchitecture::mistral:
            c.linear_bias = c.qkv_bias = false;
            return;
        case HfArchitecture::qwen2:
            c.linear_bias = false;
            c.qkv_bias = true;
            return;
        case HfArchitecture::qwen3:
            refuse_if(o, "attention_bias", "with query/key norm the projections have no biases");
            c.linear_bias = c.qkv_bias = false;
            return;
        default:
            break;
    }
    c.qkv_bias = o.boolean("attention_bias", false);
    c.linear_bias = o.boolean("mlp_bias", false);
    if (c.qkv_bias != c.linear_bias) o.fail("attention_bias", "differs from \"mlp_bias\", which is not supported");
}

ModelConfig read_rope_model(const JsonObject& o, HfArchitecture architecture) {
    const bool plain_mlp = architecture == HfArchitecture::starcoder2 || architecture == HfArchitecture::nemotron;
    ModelConfig c;
    c.hidden = o.integer("hidden_size");
    c.heads = o.integer("num_attention_heads");
    c.kv_heads = o.integer("num_key_value_heads", c.heads);
    c.layers = o.integer("num_hidden_layers");
    c.ffn = o.integer("intermediate_size");
    c.max_positions = o.integer("max_position_embeddings");
    if (c.heads <= 0) o.fail("num_attention_heads", "must be positive");
    if (!o.has("head_dim") && c.hidden % c.heads != 0)
        o.fail("hidden_size", "is not a multiple of num_attention_heads");
    c.head_dim = o.integer("head_dim", architecture == HfArchitecture::qwen3 ? 128 : c.hidden / c.heads);
    c.position = PositionKind::rope;
    c.rope = read_rope(o, architecture);
    c.norm = plain_mlp ? NormKind::layer_norm : NormKind::rms_norm;
    c.norm_one_plus = architecture == HfArchitecture::nemotron;
    c.qk_norm = architecture == HfArchitecture::qwen3;
    switch (architecture) {
        case HfArchitecture::starcoder2:
            c.norm_eps = o.real("norm_epsilon", 1e-5);
            break;
        case HfArchitecture::nemotron:
            c.norm_eps = o.real("norm_eps", 1e-5);
            break;
        default:
            c.norm_eps = o.real("rms_norm_eps", 1e-6);
            break;
    }
    const char* usual = architecture == HfArchitecture::starcoder2 ? "gelu_pytorch_tanh"
                        : architecture == HfArchitecture::nemotron ? "relu2"
                                                                   : "silu";
    c.activation = parse_activation(o, "hidden_act", usual, !plain_mlp);
    read_biases(o, architecture, c);
    c.tied = o.boolean("tie_word_embeddings", architecture == HfArchitecture::starcoder2);
    c.attention_dropout = o.real("attention_dropout", 0);
    c.hidden_dropout = o.real("residual_dropout", 0);
    refuse_sliding_window(o, architecture, c.max_positions);
    return c;
}

HfArchitecture parse_architecture(const JsonObject& o) {
    const std::string type = o.text("model_type");
    for (int i = 0; i <= static_cast<int>(HfArchitecture::teratron); ++i) {
        const auto architecture = static_cast<HfArchitecture>(i);
        if (type == model_type_of(architecture)) return architecture;
    }
    o.fail("model_type",
           type.substr(0, 40) + " is not supported (gpt2, llama, mistral, qwen2, qwen3, starcoder2 or nemotron)");
}

// Sizes are later multiplied and allocated; nothing that a model of this century has is refused.
void check_sizes(const ModelConfig& c, const std::string& where) {
    const auto in_range = [&](std::int64_t value, std::int64_t largest, const char* what) {
        if (value < 1 || value > largest) usage_error(where, ": ", what, " ", value, " is out of range");
    };
    in_range(c.layers, 100'000, "number of layers");
    in_range(c.hidden, 1 << 24, "hidden size");
    in_range(c.heads, 1 << 20, "number of attention heads");
    in_range(c.kv_heads, c.heads, "number of key/value heads");
    in_range(c.head_dim, 1 << 20, "head dimension");
    in_range(c.ffn, 1 << 26, "feed-forward size");
    in_range(c.true_vocab, 1 << 28, "vocabulary size");
    in_range(c.max_positions, std::int64_t{1} << 40, "number of positions");
    if (c.heads % c.kv_heads != 0)
        usage_error(where, ": ", c.heads, " heads do not divide by ", c.kv_heads, " kv heads");
    if (!(c.norm_eps > 0)) usage_error(where, ": norm epsilon ", c.norm_eps, " is not positive");
    if (c.position == PositionKind::rope && !(c.rope.base > 0 && c.rope.percent > 0 && c.rope.percent <= 1)) {
        usage_error(where, ": RoPE base ", c.rope.base, " or share ", c.rope.percent, " of the head is out of range");
    }
}

}  // namespace

json hf_config_json(const ModelConfig& c, HfArchitecture architecture, const HfConfigExtras& extras) {
    json j;
    if (architecture == HfArchitecture::gpt2) {
        j = gpt2_json(c);
    } else if (architecture == HfArchitecture::teratron) {
        j["model"] = model_config_to_json(c);
    } else {
        j = rope_model_json(c, architecture);
    }
    j["architectures"] = {class_name_of(architecture)};
    j["model_type"] = model_type_of(architecture);
    j["vocab_size"] = c.true_vocab;
    j["tie_word_embeddings"] = c.tied;
    j["initializer_range"] = c.init_std;
    j["use_cache"] = true;
    j["torch_dtype"] = torch_dtype(extras.dtype);
    j["bos_token_id"] = extras.bos ? json(*extras.bos) : json(nullptr);
    j["eos_token_id"] = extras.eos ? json(*extras.eos) : json(nullptr);
    return j;
}

json hf_generation_config_json(const HfConfigExtras& extras) {
    json j = {{"_from_model_config", true}};
    if (extras.bos) j["bos_token_id"] = *extras.bos;
    if (extras.eos) j["eos_token_id"] = *extras.eos;
    return j;
}

HfModel parse_hf_config(const json& root, const std::string& where) {
    const JsonObject o(root, where);
    HfModel model;
    model.architecture = parse_architecture(o);
    if (o.has("quantization_config")) o.fail("quantization_config", "is not supported: weights must not be quantized");
    if (model.architecture == HfArchitecture::teratron) {
        model.config = model_config_from_json(o.value("model"), where + ": model");
    } else if (model.architecture == HfArchitecture::gpt2) {
        model.config = read_gpt2(o);
    } else {
        model.config = read_rope_model(o, model.architecture);
    }
    model.config.true_vocab = model.config.vocab = o.integer("vocab_size");
    model.config.init_std = o.real("initializer_range", 0.02);
    check_sizes(model.config, where);
    for (const char* key : {"torch_dtype", "dtype"}) {
        if (o.has(key) && o.value(key).is_string()) model.dtype = parse_torch_dtype(o.text(key));
    }
    return model;
}

HfModel read_hf_config(const std::string& path) { return parse_hf_config(read_json_file(path), path); }

}  // namespace tera
