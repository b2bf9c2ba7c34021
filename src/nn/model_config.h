// ModelConfig: what a transformer is made of. Plain data, derived from the flags by train/model_from_flags and from a
// Hugging Face config.json by model/hf_config.
#pragma once

#include <cstdint>
#include <string>

namespace tera {

enum class PositionKind : std::uint8_t { learned, rope, none };
enum class NormKind : std::uint8_t { layer_norm, rms_norm };
enum class Activation : std::uint8_t { gelu_tanh, gelu_erf, squared_relu, swiglu, geglu };

inline bool is_gated(Activation a) { return a == Activation::swiglu || a == Activation::geglu; }

struct RopeConfig {
    double base = 10000;
    double percent = 1;        ///< share of the head dimension that is rotated
    bool interleaved = false;  ///< pairs (2i, 2i+1) instead of (i, i + r/2)
    double interpolation = 1;  ///< positions are divided by this
    bool scaling = false;      ///< Llama 3 frequency scaling
    double scaling_factor = 8;
    double low_freq_factor = 1, high_freq_factor = 4;
    std::int64_t original_max_positions = 8192;
};

struct ModelConfig {
    std::int64_t layers = 0;
    std::int64_t hidden = 0;         ///< D
    std::int64_t heads = 0;          ///< H
    std::int64_t kv_heads = 0;       ///< G, divides H
    std::int64_t head_dim = 0;       ///< K
    std::int64_t ffn = 0;            ///< F
    std::int64_t vocab = 0;          ///< V, padded
    std::int64_t true_vocab = 0;     ///< rows that mean something; saved to Hugging Face files
    std::int64_t max_positions = 0;  ///< rows of the learned table; bound of the sequence
    PositionKind position = PositionKind::learned;
    RopeConfig rope;
    NormKind norm = NormKind::layer_norm;
    double norm_eps = 1e-5;
    bool norm_one_plus = false;  ///< stored weight w acts as 1 + w
    Activation activation = Activation::gelu_tanh;
    bool linear_bias = true;  ///< proj, up and down have biases
    bool qkv_bias = true;
    bool qk_norm = false;  ///< norm over K on every query and key head, before RoPE
    bool tied = true;      ///< the output matrix is the word embedding
    double hidden_dropout = 0, attention_dropout = 0;
    double init_std = 0.02;
    bool init_xavier_uniform = false;

    std::int64_t qkv_rows() const { return (heads + 2 * kv_heads) * head_dim; }
    std::int64_t up_rows() const { return is_gated(activation) ? 2 * ffn : ffn; }
};

/// Which activations are rebuilt in backward instead of kept.
struct RecomputeConfig {
    enum class Kind : std::uint8_t { none, selective, uniform, block };
    Kind kind = Kind::none;
    std::int64_t layers = 1;  ///< uniform: layers per checkpointed chunk; block: how many first layers
    bool shared = false;      ///< each tensor rank keeps a part of a chunk's input, and backward gathers it
    bool keep_mlp = false;    ///< the output of the MLP's activation is kept instead, whatever the kind
};

/// What a layer rebuilds of itself.
struct LayerRecompute {
    bool core_attention = false;
    bool mlp_activation = true;  ///< its output
};

}  // namespace tera
