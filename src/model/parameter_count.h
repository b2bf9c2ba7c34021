// Numbers of parameters, in all and on each rank, from the shape alone. Nothing is built.
//
// On a tensor-parallel rank: word embedding and output matrix V/t rows, qkv (H+2G)K/t rows (with fewer key/value heads
// than ranks one of them whole), up F/t rows (gated 2F/t),
// proj and down 1/t of the columns; norms, position tables, row-parallel biases and heads whole on every rank. With
// tied embeddings and more than one stage the last stage holds a copy of the word embedding: it counts on that rank,
// not in the total.
#pragma once

#include <cstdint>
#include <vector>

namespace tera {

struct ParameterShape {
    enum class Kind : std::uint8_t { decoder, bert, t5 };
    Kind kind = Kind::decoder;
    std::int64_t layers = 0;          // decoder (T5) or all layers
    std::int64_t encoder_layers = 0;  // T5
    std::int64_t hidden = 0, ffn = 0, heads = 0, kv_heads = 0, head_dim = 0;
    std::int64_t vocab = 0;               // padded
    std::int64_t positions = 0;           // rows of a learned table; 0: none
    std::int64_t relative_buckets = 0;    // T5 relative positions; 0: none
    bool norm_bias = true;                // LayerNorm yes, RMSNorm no
    bool gated = false;                   // SwiGLU
    std::int64_t activation_scalars = 0;  // learned scalars of each layer's activation (xIELU: 2)
    bool linear_bias = true, qkv_bias = true;
    bool qk_norm = false;
    bool attention_norm = true, mlp_norm = true, final_norm = true;  // norms before a sub-layer and at the end
    bool post_norm = false;                                          // norms after each sub-layer
    bool tied = true;
    bool binary_head = true;  // BERT: pooler and sentence-order head
};

struct ParameterCount {
    std::int64_t total = 0;                           // every parameter once
    std::vector<std::vector<std::int64_t>> per_rank;  // [pipeline stage][tensor rank]
};

/// `layers_per_stage` must add up to shape.layers (T5: one stage). tensor_parallel must divide heads, ffn and vocab.
ParameterCount count_parameters(const ParameterShape& shape, std::int64_t tensor_parallel,
                                const std::vector<std::int64_t>& layers_per_stage);

}  // namespace tera
