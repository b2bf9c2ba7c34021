#include "model/hf_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/expect_usage_error.h"
#include "support/model_configs.h"

namespace tera {
namespace {
using nlohmann::json;

// What transformers 5 writes for a Llama 3.2 and a GPT-2, shortened to what matters.
const json llama32 = json::parse(R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "dtype": "bfloat16", "head_dim": 64,
  "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 8192, "max_position_embeddings": 131072,
  "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 16,
  "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "tie_word_embeddings": true, "vocab_size": 128256,
  "rope_parameters": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                      "original_max_position_embeddings": 8192, "rope_theta": 500000.0, "rope_type": "llama3"}})");
const json gpt2 = json::parse(R"({
  "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "embd_pdrop": 0.1,
  "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12,
  "n_positions": 1024, "resid_pdrop": 0.1, "vocab_size": 50257})");

json with(json j, const std::string& key, const json& value) {
    j[key] = value;
    return j;
}

TEST(HfConfig, ReadsGpt2) {
    const HfModel m = parse_hf_config(gpt2, "config.json");
    EXPECT_EQ(m.architecture, HfArchitecture::gpt2);
    EXPECT_EQ(m.config.layers, 12);
    EXPECT_EQ(m.config.head_dim, 64);
    EXPECT_EQ(m.config.ffn, 3072);
    EXPECT_EQ(m.config.true_vocab, 50257);
    EXPECT_EQ(m.config.activation, Activation::gelu_tanh);
    EXPECT_TRUE(m.config.tied);
    EXPECT_TRUE(m.config.qkv_bias);
    EXPECT_FALSE(m.dtype.has_value());
    EXPECT_EQ(choose_architecture(m.config), HfArchitecture::gpt2);
    EXPECT_EQ(parse_hf_config(with(gpt2, "activation_function", "gelu"), "c").config.activation, Activation::gelu_erf);
    EXPECT_EQ(parse_hf_config(with(gpt2, "n_inner", 100), "c").config.ffn, 100);
}

TEST(HfConfig, ReadsLlamaInBothSpellings) {
    const HfModel m = parse_hf_config(llama32, "config.json");
    EXPECT_EQ(m.architecture, HfArchitecture::llama);
    EXPECT_EQ(m.dtype, DType::bf16);
    EXPECT_EQ(m.config.kv_heads, 8);
    EXPECT_TRUE(m.config.tied);
    EXPECT_TRUE(m.config.rope.scaling);
    EXPECT_EQ(m.config.rope.base, 500000);
    EXPECT_EQ(m.config.rope.scaling_factor, 32);
    EXPECT_EQ(m.config.rope.original_max_positions, 8192);

    json older = llama32;
    older.erase("rope_parameters");
    older.erase("dtype");
    older["torch_dtype"] = "bfloat16";
    older["rope_theta"] = 500000.0;
    older["rope_scaling"] = {{"factor", 32.0},
                             {"high_freq_factor", 4.0},
                             {"low_freq_factor", 1.0},
                             {"original_max_position_embeddings", 8192},
                             {"rope_type", "llama3"}};
    const HfModel o = parse_hf_config(older, "config.json");
    EXPECT_EQ(model_config_to_json(o.config), model_config_to_json(m.config));
    EXPECT_EQ(o.dtype, DType::bf16);
}

TEST(HfConfig, RefusesByNameWhatItCannotRepresent) {
    const auto refuses = [](const json& j, std::initializer_list<const char*> parts) {
        SCOPED_TRACE(j.dump());
        expect_usage_error([&] { parse_hf_config(j, "config.json"); }, parts);
    };
    refuses(with(gpt2, "model_type", "bloom"), {"config.json", "model_type", "bloom"});
    refuses(with(gpt2, "activation_function", "relu"), {"activation_function", "relu"});
    refuses(with(gpt2, "scale_attn_by_inverse_layer_idx", true), {"scale_attn_by_inverse_layer_idx"});
    refuses(with(gpt2, "scale_attn_weights", false), {"scale_attn_weights"});
    refuses(with(gpt2, "n_head", 7), {"n_embd", "n_head"});
    refuses(with(gpt2, "n_head", 0), {"n_head"});
    refuses(with(gpt2, "n_layer", -1), {"number of layers"});
    refuses(with(gpt2, "vocab_size", "many"), {"vocab_size", "integer"});
    refuses(with(llama32, "hidden_act", "gelu"), {"hidden_act", "gelu"});
    refuses(with(llama32, "attention_bias", true), {"attention_bias", "mlp_bias"});
    refuses(with(llama32, "rope_parameters", {{"rope_type", "yarn"}, {"factor", 4.0}}), {"rope_type", "yarn"});
    refuses(with(llama32, "rope_parameters", {{"full_attention", json::object()}}), {"rope_parameters", "layer"});
    refuses(with(llama32, "num_key_value_heads", 5), {"32 heads", "5 kv heads"});
    refuses(with(llama32, "quantization_config", json::object()), {"quantization_config"});
    refuses(with(with(llama32, "model_type", "mistral"), "sliding_window", 4096), {"sliding_window"});
    refuses(with(with(llama32, "model_type", "qwen2"), "use_sliding_window", true), {"use_sliding_window"});
    refuses(with(with(llama32, "model_type", "qwen3"), "layer_types", {"full_attention", "sliding_attention"}),
            {"layer_types"});
    json no_size = llama32;
    no_size.erase("hidden_size");
    refuses(no_size, {"hidden_size", "missing"});
    refuses(json::array(), {"object"});
}

TEST(HfConfig, MistralWithoutAWindowIsALlama) {
    const HfModel m = parse_hf_config(with(with(llama32, "model_type", "mistral"), "sliding_window", nullptr), "c");
    EXPECT_EQ(m.architecture, HfArchitecture::mistral);
    EXPECT_EQ(choose_architecture(m.config), HfArchitecture::llama);
}

// What is written is read back as the same model: nothing that matters to the maths is lost on the way.
TEST(HfConfig, EveryArchitectureComesBackTheSame) {
    for (const ModelConfig& c :
         {tiny_gpt2(), tiny_llama(), tiny_qwen2(), tiny_qwen3(), tiny_starcoder2(), tiny_nemotron(), tiny_unnamed()}) {
        const HfArchitecture architecture = choose_architecture(c);
        SCOPED_TRACE(class_name_of(architecture));
        const json j = hf_config_json(c, architecture, {DType::bf16, 5, 5});
        EXPECT_EQ(j["architectures"][0], class_name_of(architecture));
        EXPECT_EQ(j["vocab_size"], c.true_vocab);
        EXPECT_EQ(j["eos_token_id"], 5);
        const HfModel back = parse_hf_config(j, "config.json");
        EXPECT_EQ(back.architecture, architecture);
        EXPECT_EQ(back.dtype, DType::bf16);
        ModelConfig expected = c;
        expected.vocab = c.true_vocab;
        if (!c.rope.scaling) expected.rope.original_max_positions = back.config.rope.original_max_positions;
        EXPECT_EQ(model_config_to_json(back.config), model_config_to_json(expected));
    }
}

TEST(HfConfig, OwnNamesRefuseUnknownValues) {
    json j = model_config_to_json(tiny_unnamed());
    EXPECT_EQ(model_config_to_json(model_config_from_json(j, "x")), j);
    j["activation"] = "sine";
    expect_usage_error([&] { model_config_from_json(j, "state.json"); }, {"state.json", "activation", "sine"});
    j["activation"] = "swiglu";
    j.erase("qk_norm");
    expect_usage_error([&] { model_config_from_json(j, "state.json"); }, {"qk_norm", "missing"});
}

}  // namespace
}  // namespace tera
