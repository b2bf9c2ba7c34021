#include "model/hf_names.h"

#include <optional>
#include <string_view>

#include "core/error.h"

namespace tera {
namespace {

/// Where an architecture keeps each part. Null: it has none of its own.
struct NameTable {
    const char* class_name = nullptr;
    const char* model_type = nullptr;
    const char* prefix = "";  ///< before everything but the output matrix
    const char* word = nullptr;
    const char* position = nullptr;
    const char* layer = nullptr;  ///< before the layer's number
    const char* attention_norm = nullptr;
    const char* qkv = nullptr;                            ///< one fused matrix,
    const char *q = nullptr, *k = nullptr, *v = nullptr;  ///< or three
    const char *q_norm = nullptr, *k_norm = nullptr;
    const char* proj = nullptr;
    const char* mlp_norm = nullptr;
    const char* gate = nullptr;  ///< null: gate and up are one matrix
    const char* up = nullptr;
    const char* down = nullptr;
    const char* final_norm = nullptr;
    bool conv1d = false;  ///< matrices are stored [in, out]
};

constexpr NameTable llama_like(const char* class_name, const char* model_type) {
    NameTable t;
    t.class_name = class_name;
    t.model_type = model_type;
    t.prefix = "model.";
    t.word = "embed_tokens";
    t.layer = "layers.";
    t.attention_norm = "input_layernorm";
    t.q = "self_attn.q_proj";
    t.k = "self_attn.k_proj";
    t.v = "self_attn.v_proj";
    t.q_norm = "self_attn.q_norm";
    t.k_norm = "self_attn.k_norm";
    t.proj = "self_attn.o_proj";
    t.mlp_norm = "post_attention_layernorm";
    t.gate = "mlp.gate_proj";
    t.up = "mlp.up_proj";
    t.down = "mlp.down_proj";
    t.final_norm = "norm";
    return t;
}

constexpr NameTable starcoder2_names() {
    NameTable t = llama_like("Starcoder2ForCausalLM", "starcoder2");
    t.up = "mlp.c_fc";
    t.down = "mlp.c_proj";
    return t;
}

constexpr NameTable gpt2_names() {
    NameTable t;
    t.class_name = "GPT2LMHeadModel";
    t.model_type = "gpt2";
    t.prefix = "transformer.";
    t.word = "wte";
    t.position = "wpe";
    t.layer = "h.";
    t.attention_norm = "ln_1";
    t.qkv = "attn.c_attn";
    t.proj = "attn.c_proj";
    t.mlp_norm = "ln_2";
    t.up = "mlp.c_fc";
    t.down = "mlp.c_proj";
    t.final_norm = "ln_f";
    t.conv1d = true;
    return t;
}

constexpr NameTable own_names() {
    NameTable t;
    t.class_name = "TeratronForCausalLM";
    t.model_type = "teratron";
    t.word = "embedding.word";
    t.position = "embedding.position";
    t.layer = "layers.";
    t.attention_norm = "attention.norm";
    t.qkv = "attention.qkv";
    t.q_norm = "attention.q_norm";
    t.k_norm = "attention.k_norm";
    t.proj = "attention.proj";
    t.mlp_norm = "mlp.norm";
    t.up = "mlp.up";
    t.down = "mlp.down";
    t.final_norm = "final_norm";
    return t;
}

const NameTable& names_of(HfArchitecture architecture) {
    static const NameTable tables[] = {gpt2_names(),
                                       llama_like("LlamaForCausalLM", "llama"),
                                       llama_like("MistralForCausalLM", "mistral"),
                                       llama_like("Qwen2ForCausalLM", "qwen2"),
                                       llama_like("Qwen3ForCausalLM", "qwen3"),
                                       starcoder2_names(),
                                       llama_like("NemotronForCausalLM", "nemotron"),
                                       own_names()};
    return tables[static_cast<std::size_t>(architecture)];
}

bool ends_with(std::string_view text, std::string_view end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

class TensorList {
  public:
    TensorList(const ModelConfig& config, const NameTable& names) : config_(config), names_(names) {}

    void add_matrix(const std::string& param, const std::string& name, std::int64_t row_begin, std::int64_t rows,
                    std::int64_t cols) {
        list_.push_back({name, Shape{rows, cols}, param, row_begin, rows, false});
    }
    void add_vector(const std::string& param, const std::string& name, std::int64_t row_begin, std::int64_t rows) {
        list_.push_back({name, Shape{rows}, param, row_begin, rows, false});
    }
    void add_norm(const std::string& param, const std::string& name, std::int64_t size) {
        add_vector(param + ".weight", name + ".weight", 0, size);
        if (config_.norm == NormKind::layer_norm) add_vector(param + ".bias", name + ".bias", 0, size);
    }
    /// Rows [begin, begin + rows) of the linear layer `param` with `cols` inputs, as the linear layer `name`.
    void add_linear(const std::string& param, const std::string& name, std::int64_t begin, std::int64_t rows,
                    std::int64_t cols, bool bias) {
        add_matrix(param + ".weight", name + ".weight", begin, rows, cols);
        if (names_.conv1d) {
            list_.back().shape = Shape{cols, rows};
            list_.back().transposed = true;
        }
        if (bias) add_vector(param + ".bias", name + ".bias", begin, rows);
    }

    void add_layer(std::int64_t n) {
        const ModelConfig& c = config_;
        const std::string ours = cat("layers.", n, "."), theirs = cat(names_.prefix, names_.layer, n, ".");
        add_norm(ours + "attention.norm", theirs + names_.attention_norm, c.hidden);
        add_qkv(ours + "attention.qkv", theirs);
        if (c.qk_norm) {
            add_norm(ours + "attention.q_norm", theirs + names_.q_norm, c.head_dim);
            add_norm(ours + "attention.k_norm", theirs + names_.k_norm, c.head_dim);
        }
        add_linear(ours + "attention.proj", theirs + names_.proj, 0, c.hidden, c.heads * c.head_dim, c.linear_bias);
        add_norm(ours + "mlp.norm", theirs + names_.mlp_norm, c.hidden);
        const bool split_gate = is_gated(c.activation) && names_.gate != nullptr;
        if (split_gate) add_linear(ours + "mlp.up", theirs + names_.gate, 0, c.ffn, c.hidden, c.linear_bias);
        const std::int64_t first = split_gate ? c.ffn : 0;
        add_linear(ours + "mlp.up", theirs + names_.up, first, c.up_rows() - first, c.hidden, c.linear_bias);
        add_linear(ours + "mlp.down", theirs + names_.down, 0, c.hidden, c.ffn, c.linear_bias);
    }

    std::vector<HfTensor> take() { return std::move(list_); }

  private:
    void add_qkv(const std::string& ours, const std::string& theirs) {
        const ModelConfig& c = config_;
        if (names_.qkv != nullptr) {
            add_linear(ours, theirs + names_.qkv, 0, c.qkv_rows(), c.hidden, c.qkv_bias);
            return;
        }
        const std::int64_t q = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim;
        add_linear(ours, theirs + names_.q, 0, q, c.hidden, c.qkv_bias);
        add_linear(ours, theirs + names_.k, q, kv, c.hidden, c.qkv_bias);
        add_linear(ours, theirs + names_.v, q + kv, kv, c.hidden, c.qkv_bias);
    }

    const ModelConfig& config_;
    const NameTable& names_;
    std::vector<HfTensor> list_;
};

bool has_plain_rope(const ModelConfig& c) {
    return c.position == PositionKind::rope && !c.rope.interleaved && !(c.rope.scaling && c.rope.interpolation != 1);
}

std::optional<HfArchitecture> with_rms_norm(const ModelConfig& c) {
    if (c.norm_one_plus || !is_gated(c.activation) || c.rope.percent != 1) return std::nullopt;
    if (c.qk_norm) {
        if (c.linear_bias || c.qkv_bias) return std::nullopt;
        return HfArchitecture::qwen3;
    }
    if (c.linear_bias == c.qkv_bias) return HfArchitecture::llama;
    if (c.qkv_bias) return HfArchitecture::qwen2;
    return std::nullopt;
}

std::optional<HfArchitecture> with_layer_norm(const ModelConfig& c) {
    if (is_gated(c.activation) || c.qk_norm || c.linear_bias != c.qkv_bias) return std::nullopt;
    if (c.norm_one_plus) return HfArchitecture::nemotron;
    if (c.rope.percent != 1) return std::nullopt;
    return HfArchitecture::starcoder2;
}

bool is_gpt2(const ModelConfig& c) {
    return c.position == PositionKind::learned && c.norm == NormKind::layer_norm && !c.norm_one_plus &&
           !is_gated(c.activation) && c.linear_bias && c.qkv_bias && !c.qk_norm && c.kv_heads == c.heads &&
           c.heads * c.head_dim == c.hidden;
}

}  // namespace

HfArchitecture choose_architecture(const ModelConfig& c) {
    if (is_gpt2(c)) return HfArchitecture::gpt2;
    if (!has_plain_rope(c)) return HfArchitecture::teratron;
    return (c.norm == NormKind::rms_norm ? with_rms_norm(c) : with_layer_norm(c)).value_or(HfArchitecture::teratron);
}

std::string why_no_architecture(const ModelConfig& c) {
    if (choose_architecture(c) != HfArchitecture::teratron) return "";
    constexpr const char* positions[] = {"learned positions", "RoPE", "no positions"};
    constexpr const char* activations[] = {"tanh GELU", "erf GELU", "squared ReLU", "SwiGLU", "GeGLU"};
    std::string text = positions[static_cast<int>(c.position)];
    if (c.position == PositionKind::rope && c.rope.interleaved) text += " (interleaved)";
    if (c.position == PositionKind::rope && c.rope.percent != 1) text += cat(" (", c.rope.percent, " of the head)");
    text += c.norm == NormKind::rms_norm ? ", RMSNorm" : ", LayerNorm";
    if (c.norm_one_plus) text += " (1 + weight)";
    text += cat(", ", activations[static_cast<int>(c.activation)]);
    text += c.linear_bias ? ", biases" : c.qkv_bias ? ", biases on q, k, v only" : ", no biases";
    if (c.qk_norm) text += ", query/key norm";
    if (c.kv_heads != c.heads) text += ", grouped queries";
    if (c.heads * c.head_dim != c.hidden) text += ", heads not as wide as the model";
    return text;
}

const char* class_name_of(HfArchitecture architecture) { return names_of(architecture).class_name; }
const char* model_type_of(HfArchitecture architecture) { return names_of(architecture).model_type; }
std::string base_prefix_of(HfArchitecture architecture) { return names_of(architecture).prefix; }

std::vector<HfTensor> hf_tensors(const ModelConfig& c, HfArchitecture architecture) {
    const NameTable& names = names_of(architecture);
    TensorList list(c, names);
    const std::string prefix = names.prefix;
    list.add_matrix("embedding.word.weight", prefix + names.word + ".weight", 0, c.true_vocab, c.hidden);
    if (c.position == PositionKind::learned) {
        TERA_CHECK(names.position != nullptr, names.class_name, " has no learned positions");
        list.add_matrix("embedding.position.weight", prefix + names.position + ".weight", 0, c.max_positions, c.hidden);
    }
    for (std::int64_t n = 0; n < c.layers; ++n) list.add_layer(n);
    list.add_norm("final_norm", prefix + names.final_norm, c.hidden);
    if (!c.tied) list.add_matrix("lm_head.weight", "lm_head.weight", 0, c.true_vocab, c.hidden);
    return list.take();
}

bool is_derived_tensor(const std::string& name, const ModelConfig& config) {
    return ends_with(name, ".attn.bias") || ends_with(name, ".attn.masked_bias") ||
           ends_with(name, ".rotary_emb.inv_freq") || (config.tied && name == "lm_head.weight");
}

}  // namespace tera
