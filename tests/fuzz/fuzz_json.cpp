// JSON as checkpoints hold it: any text, a Hugging Face config.json, our own model description.
#include <nlohmann/json.hpp>

#include "fuzz/fuzz.h"
#include "io/json_file.h"
#include "model/hf_config.h"

namespace tera::fuzz {

std::vector<std::string> seeds() {
    return {
        R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":64,"intermediate_size":128,)"
        R"("num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"vocab_size":100,)"
        R"("max_position_embeddings":128,"rms_norm_eps":1e-5,"rope_theta":500000.0,"hidden_act":"silu",)"
        R"("tie_word_embeddings":false,"attention_bias":false,"mlp_bias":false,"torch_dtype":"bfloat16",)"
        R"("rope_scaling":{"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,)"
        R"("original_max_position_embeddings":64}})",
        R"({"architectures":["GPT2LMHeadModel"],"model_type":"gpt2","n_embd":32,"n_layer":2,"n_head":4,)"
        R"("n_positions":64,"n_ctx":64,"vocab_size":50,"activation_function":"gelu_new","layer_norm_epsilon":1e-5,)"
        R"("attn_pdrop":0.1,"embd_pdrop":0.1,"resid_pdrop":0.1,"bos_token_id":49,"eos_token_id":49})",
        R"({"a":[1,-2.5e3,true,null,"\u00e9\ud83d\ude00"],"b":{"c":{}}})",
        "[]",
        "\"\\\\\"",
    };
}

}  // namespace tera::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace tera;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    fuzz::attempt([&] {
        const nlohmann::json json = parse_json(text, "fuzz.json");
        // What is written must read back as the same.
        if (parse_json(json_text(json), "fuzz.json") != json) __builtin_trap();
        fuzz::attempt([&] {
            const HfModel model = parse_hf_config(json, "config.json");
            (void)model_config_from_json(model_config_to_json(model.config), "state.json");
        });
        fuzz::attempt([&] { (void)model_config_from_json(json, "state.json"); });
    });
    return 0;
}
