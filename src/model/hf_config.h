// ModelConfig <-> the config.json of a Hugging Face model.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/dtype.h"
#include "model/hf_names.h"
#include "nn/model_config.h"

namespace tera {

/// What a config.json says.
struct HfModel {
    HfArchitecture architecture = HfArchitecture::teratron;
    ModelConfig config;          ///< vocab = true_vocab: files hold no padding
    std::optional<DType> dtype;  ///< of the stored weights, if said
};

struct HfConfigExtras {
    DType dtype = DType::f32;
    std::optional<std::int32_t> bos, eos;  ///< token ids
};

/// config.json and generation_config.json, as transformers' from_pretrained reads them.
nlohmann::json hf_config_json(const ModelConfig& config, HfArchitecture architecture, const HfConfigExtras& extras);
nlohmann::json hf_generation_config_json(const HfConfigExtras& extras);

/// The model that a config.json describes; `where` names the file in errors. UsageError, by name, for whatever we
/// cannot represent: an architecture, an activation, a kind of RoPE scaling, a sliding window.
HfModel parse_hf_config(const nlohmann::json& json, const std::string& where);
HfModel read_hf_config(const std::string& path);

/// ModelConfig as JSON with our own field names, and back.
nlohmann::json model_config_to_json(const ModelConfig& config);
ModelConfig model_config_from_json(const nlohmann::json& json, const std::string& where);

}  // namespace tera
