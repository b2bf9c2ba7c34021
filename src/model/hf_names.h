// Which Hugging Face architecture is exactly this model, and where each of its tensors lies in our parameters.
//
// Ours are fused matrices [rows, cols] (out, in): qkv = all q rows, then k, then v; up = gate rows, then up rows. A
// Hugging Face tensor is a range of rows of one of our parameters, or, in GPT-2's Conv1D, such a range transposed. The
// vocabulary is stored without its padding: true_vocab rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "nn/model_config.h"

namespace tera {

/// teratron: no Hugging Face architecture is exactly this model; our own names are used in the same layout.
enum class HfArchitecture : std::uint8_t { gpt2, llama, mistral, qwen2, qwen3, starcoder2, nemotron, teratron };

struct HfTensor {
    std::string name;            ///< in the file
    Shape shape;                 ///< in the file
    std::string param;           ///< our name
    std::int64_t row_begin = 0;  ///< first row of the parameter that it holds
    std::int64_t rows = 0;       ///< how many
    bool transposed = false;     ///< the file holds [cols, rows]
};

/// The architecture whose forward pass is this model's to the last term, or teratron.
HfArchitecture choose_architecture(const ModelConfig& config);

/// Why no architecture fits, in a few words ("squared ReLU with RMSNorm"); empty when one does.
std::string why_no_architecture(const ModelConfig& config);

/// "LlamaForCausalLM" and "llama", as in config.json.
const char* class_name_of(HfArchitecture architecture);
const char* model_type_of(HfArchitecture architecture);

/// Every tensor of the model in the order of the layers. Each row of each parameter (padding of the vocabulary apart)
/// is in exactly one of them.
std::vector<HfTensor> hf_tensors(const ModelConfig& config, HfArchitecture architecture);

/// Tensors that some programs store beside the weights and that hold nothing of their own: causal masks, rotary
/// frequencies, the tied copy of the output matrix.
bool is_derived_tensor(const std::string& name, const ModelConfig& config);

/// What base models (saved without the language-model head) leave off in front of every name: "transformer.", "model.".
std::string base_prefix_of(HfArchitecture architecture);

}  // namespace tera
