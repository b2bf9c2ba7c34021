// Small models, one of each kind that can be told apart.
#pragma once

#include "nn/model_config.h"

namespace tera {

/// Tied, learned positions, LayerNorm, GELU, biases.
inline ModelConfig tiny_gpt2() {
    ModelConfig c;
    c.layers = 2;
    c.hidden = 32;
    c.heads = c.kv_heads = 4;
    c.head_dim = 8;
    c.ffn = 96;
    c.vocab = 64;
    c.true_vocab = 53;
    c.max_positions = 24;
    return c;
}

/// Untied, RoPE with Llama 3 scaling, RMSNorm, SwiGLU, grouped queries, no biases, heads wider than the model.
inline ModelConfig tiny_llama() {
    ModelConfig c = tiny_gpt2();
    c.kv_heads = 2;
    c.head_dim = 12;
    c.position = PositionKind::rope;
    c.rope.base = 500000;
    c.rope.scaling = true;
    c.rope.original_max_positions = 16;
    c.norm = NormKind::rms_norm;
    c.norm_eps = 1e-6;
    c.activation = Activation::swiglu;
    c.linear_bias = c.qkv_bias = false;
    c.tied = false;
    return c;
}

inline ModelConfig tiny_qwen2() {
    ModelConfig c = tiny_llama();
    c.rope.scaling = false;
    c.qkv_bias = true;
    c.tied = true;
    return c;
}

inline ModelConfig tiny_qwen3() {
    ModelConfig c = tiny_llama();
    c.rope.scaling = false;
    c.qk_norm = true;
    return c;
}

/// GPT-2 with RoPE and grouped queries.
inline ModelConfig tiny_starcoder2() {
    ModelConfig c = tiny_gpt2();
    c.kv_heads = 2;
    c.position = PositionKind::rope;
    c.rope.interpolation = 2;
    return c;
}

/// LayerNorm with 1 + weight, squared ReLU, RoPE on half of the head, no biases.
inline ModelConfig tiny_nemotron() {
    ModelConfig c = tiny_gpt2();
    c.position = PositionKind::rope;
    c.rope.percent = 0.5;
    c.norm_one_plus = true;
    c.activation = Activation::squared_relu;
    c.linear_bias = c.qkv_bias = false;
    c.tied = false;
    return c;
}

/// No Hugging Face architecture: learned positions with RMSNorm, SwiGLU and query/key norm.
inline ModelConfig tiny_unnamed() {
    ModelConfig c = tiny_gpt2();
    c.norm = NormKind::rms_norm;
    c.activation = Activation::swiglu;
    c.qk_norm = true;
    return c;
}

}  // namespace tera
