// ModelConfig as JSON under our own field names: training_state/state.json, and config.json of models that are no
// Hugging Face architecture.
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "io/json_file.h"
#include "model/hf_config.h"

namespace tera {
namespace {

constexpr const char* position_names[] = {"learned", "rope", "none"};
constexpr const char* norm_names[] = {"layer_norm", "rms_norm"};
constexpr const char* activation_names[] = {"gelu_tanh", "gelu_erf", "squared_relu", "swiglu", "geglu"};

/// Calls f(key, member) for every field that is a number or a truth value.
template <class Config, class F>
void each_field(Config& c, const F& f) {
    f("layers", c.layers);
    f("hidden", c.hidden);
    f("heads", c.heads);
    f("kv_heads", c.kv_heads);
    f("head_dim", c.head_dim);
    f("ffn", c.ffn);
    f("vocab", c.vocab);
    f("true_vocab", c.true_vocab);
    f("max_positions", c.max_positions);
    f("rope_base", c.rope.base);
    f("rope_percent", c.rope.percent);
    f("rope_interleaved", c.rope.interleaved);
    f("rope_interpolation", c.rope.interpolation);
    f("rope_scaling", c.rope.scaling);
    f("rope_scaling_factor", c.rope.scaling_factor);
    f("rope_low_freq_factor", c.rope.low_freq_factor);
    f("rope_high_freq_factor", c.rope.high_freq_factor);
    f("rope_original_max_positions", c.rope.original_max_positions);
    f("norm_eps", c.norm_eps);
    f("norm_one_plus", c.norm_one_plus);
    f("linear_bias", c.linear_bias);
    f("qkv_bias", c.qkv_bias);
    f("qk_norm", c.qk_norm);
    f("tied", c.tied);
    f("hidden_dropout", c.hidden_dropout);
    f("attention_dropout", c.attention_dropout);
    f("init_std", c.init_std);
    f("init_xavier_uniform", c.init_xavier_uniform);
}

template <class Enum, std::size_t N>
void read_name(const JsonObject& o, const char* key, const char* const (&names)[N], Enum& out) {
    const std::string name = o.text(key);
    for (std::size_t i = 0; i < N; ++i) {
        if (name == names[i]) {
            out = static_cast<Enum>(i);
            return;
        }
    }
    o.fail(key, cat("has the unknown value ", name.substr(0, 40)));
}

}  // namespace

nlohmann::json model_config_to_json(const ModelConfig& config) {
    nlohmann::json j;
    each_field(config, [&](const char* key, const auto& value) { j[key] = value; });
    j["position"] = position_names[static_cast<int>(config.position)];
    j["norm"] = norm_names[static_cast<int>(config.norm)];
    j["activation"] = activation_names[static_cast<int>(config.activation)];
    return j;
}

ModelConfig model_config_from_json(const nlohmann::json& json, const std::string& where) {
    const JsonObject o(json, where);
    ModelConfig config;
    each_field(config, [&](const char* key, auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>) {
            value = o.boolean(key);
        } else if constexpr (std::is_same_v<T, double>) {
            value = o.real(key);
        } else {
            value = o.integer(key);
        }
    });
    read_name(o, "position", position_names, config.position);
    read_name(o, "norm", norm_names, config.norm);
    read_name(o, "activation", activation_names, config.activation);
    return config;
}

}  // namespace tera
