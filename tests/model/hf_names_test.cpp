#include "model/hf_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "support/model_configs.h"

namespace tera {
namespace {

const HfTensor& find(const std::vector<HfTensor>& list, const std::string& name) {
    const auto found = std::find_if(list.begin(), list.end(), [&](const HfTensor& t) { return t.name == name; });
    if (found == list.end()) throw std::runtime_error("no tensor " + name);
    return *found;
}

TEST(HfNames, ChoosesTheArchitectureThatIsExactlyTheModel) {
    using A = HfArchitecture;
    EXPECT_EQ(choose_architecture(tiny_gpt2()), A::gpt2);
    EXPECT_EQ(choose_architecture(tiny_llama()), A::llama);

    struct Case {
        const char* what;
        ModelConfig base;
        std::function<void(ModelConfig&)> change;
        A expected;
    };
    const Case cases[] = {
        {"untied GPT-2", tiny_gpt2(), [](auto& c) { c.tied = false; }, A::gpt2},
        {"GPT-2, erf", tiny_gpt2(), [](auto& c) { c.activation = Activation::gelu_erf; }, A::gpt2},
        {"GPT-2 with RoPE", tiny_gpt2(), [](auto& c) { c.position = PositionKind::rope; }, A::starcoder2},
        {"without positions", tiny_gpt2(), [](auto& c) { c.position = PositionKind::none; }, A::teratron},
        {"GPT-2 without biases", tiny_gpt2(), [](auto& c) { c.linear_bias = c.qkv_bias = false; }, A::teratron},
        {"GPT-2, SwiGLU", tiny_gpt2(), [](auto& c) { c.activation = Activation::swiglu; }, A::teratron},
        {"GPT-2, grouped", tiny_gpt2(), [](auto& c) { c.kv_heads = 2; }, A::teratron},
        {"GPT-2, wide heads", tiny_gpt2(), [](auto& c) { c.head_dim = 16; }, A::teratron},
        {"GPT-2, q/k norm", tiny_gpt2(), [](auto& c) { c.qk_norm = true; }, A::teratron},
        {"GPT-2, 1 + weight", tiny_gpt2(), [](auto& c) { c.norm_one_plus = true; }, A::teratron},
        {"Llama with all biases", tiny_llama(), [](auto& c) { c.linear_bias = c.qkv_bias = true; }, A::llama},
        {"Llama with qkv bias", tiny_llama(), [](auto& c) { c.qkv_bias = true; }, A::qwen2},
        {"Llama with other biases", tiny_llama(), [](auto& c) { c.linear_bias = true; }, A::teratron},
        {"Llama with q/k norm", tiny_llama(), [](auto& c) { c.qk_norm = true; }, A::qwen3},
        {"q/k norm and bias", tiny_llama(), [](auto& c) { c.qk_norm = c.qkv_bias = true; }, A::teratron},
        {"Llama, partial RoPE", tiny_llama(), [](auto& c) { c.rope.percent = 0.5; }, A::teratron},
        {"Llama, interleaved", tiny_llama(), [](auto& c) { c.rope.interleaved = true; }, A::teratron},
        {"Llama, both scalings", tiny_llama(), [](auto& c) { c.rope.interpolation = 2; }, A::teratron},
        {"Llama, squared ReLU", tiny_llama(), [](auto& c) { c.activation = Activation::squared_relu; }, A::teratron},
        {"Llama, GeGLU", tiny_llama(), [](auto& c) { c.activation = Activation::geglu; }, A::llama},
        {"Nemotron", tiny_nemotron(), [](auto&) {}, A::nemotron},
        {"Nemotron with biases", tiny_nemotron(), [](auto& c) { c.linear_bias = c.qkv_bias = true; }, A::nemotron},
        {"Nemotron, RMSNorm", tiny_nemotron(), [](auto& c) { c.norm = NormKind::rms_norm; }, A::teratron},
    };
    for (const Case& c : cases) {
        ModelConfig config = c.base;
        c.change(config);
        EXPECT_EQ(choose_architecture(config), c.expected) << c.what;
        EXPECT_EQ(why_no_architecture(config).empty(), c.expected != A::teratron) << c.what;
    }
}

TEST(HfNames, Gpt2HasItsNamesAndTransposedMatrices) {
    const ModelConfig c = tiny_gpt2();
    const auto list = hf_tensors(c, HfArchitecture::gpt2);
    EXPECT_EQ(list.size(), 2u + 12u * 2u + 2u);
    EXPECT_EQ(find(list, "transformer.wte.weight").shape, (Shape{c.true_vocab, c.hidden}));
    EXPECT_EQ(find(list, "transformer.wpe.weight").param, "embedding.position.weight");
    const HfTensor qkv = find(list, "transformer.h.1.attn.c_attn.weight");
    EXPECT_TRUE(qkv.transposed);
    EXPECT_EQ(qkv.shape, (Shape{c.hidden, 3 * c.hidden}));
    EXPECT_EQ(qkv.param, "layers.1.attention.qkv.weight");
    EXPECT_EQ(find(list, "transformer.h.1.attn.c_attn.bias").shape, (Shape{3 * c.hidden}));
    EXPECT_EQ(find(list, "transformer.h.0.mlp.c_proj.weight").shape, (Shape{c.ffn, c.hidden}));
    EXPECT_EQ(find(list, "transformer.ln_f.bias").param, "final_norm.bias");
    EXPECT_FALSE(find(list, "transformer.wte.weight").transposed);
}

TEST(HfNames, LlamaSplitsTheFusedMatrices) {
    const ModelConfig c = tiny_llama();
    const auto list = hf_tensors(c, HfArchitecture::llama);
    EXPECT_EQ(list.size(), 1u + 9u * 2u + 1u + 1u);
    const HfTensor k = find(list, "model.layers.1.self_attn.k_proj.weight");
    EXPECT_EQ(k.param, "layers.1.attention.qkv.weight");
    EXPECT_EQ(k.row_begin, c.heads * c.head_dim);
    EXPECT_EQ(k.shape, (Shape{c.kv_heads * c.head_dim, c.hidden}));
    const HfTensor v = find(list, "model.layers.1.self_attn.v_proj.weight");
    EXPECT_EQ(v.row_begin, (c.heads + c.kv_heads) * c.head_dim);
    EXPECT_EQ(find(list, "model.layers.0.mlp.gate_proj.weight").row_begin, 0);
    EXPECT_EQ(find(list, "model.layers.0.mlp.up_proj.weight").row_begin, c.ffn);
    EXPECT_EQ(find(list, "model.layers.0.post_attention_layernorm.weight").param, "layers.0.mlp.norm.weight");
    EXPECT_EQ(find(list, "lm_head.weight").shape, (Shape{c.true_vocab, c.hidden}));
    EXPECT_FALSE(k.transposed);
}

// Whatever the architecture: the rows of a parameter are shared out among its tensors without overlap or gap.
TEST(HfNames, EveryRowIsInExactlyOneTensor) {
    for (const ModelConfig& c :
         {tiny_gpt2(), tiny_llama(), tiny_qwen2(), tiny_qwen3(), tiny_starcoder2(), tiny_nemotron(), tiny_unnamed()}) {
        std::map<std::string, std::int64_t> end;
        std::set<std::string> names;
        for (const HfTensor& t : hf_tensors(c, choose_architecture(c))) {
            EXPECT_TRUE(names.insert(t.name).second) << t.name;
            EXPECT_EQ(t.row_begin, end[t.param]) << t.name;
            end[t.param] += t.rows;
            EXPECT_EQ(t.shape[t.transposed ? 1 : 0], t.rows) << t.name;
        }
        EXPECT_EQ(end.at("embedding.word.weight"), c.true_vocab);
        EXPECT_EQ(end.at("layers.0.attention.qkv.weight"), c.qkv_rows());
        EXPECT_EQ(end.at("layers.1.mlp.up.weight"), c.up_rows());
        EXPECT_EQ(end.count("layers.0.attention.qkv.bias"), c.qkv_bias ? 1u : 0u);
        EXPECT_EQ(end.count("layers.0.mlp.down.bias"), c.linear_bias ? 1u : 0u);
        EXPECT_EQ(end.count("layers.0.attention.q_norm.weight"), c.qk_norm ? 1u : 0u);
        EXPECT_EQ(end.count("final_norm.bias"), c.norm == NormKind::layer_norm ? 1u : 0u);
        EXPECT_EQ(end.count("lm_head.weight"), c.tied ? 0u : 1u);
        EXPECT_EQ(end.count("embedding.position.weight"), c.position == PositionKind::learned ? 1u : 0u);
    }
}

TEST(HfNames, KnowsWhatHoldsNothingOfItsOwn) {
    const ModelConfig tied = tiny_gpt2(), untied = tiny_llama();
    EXPECT_TRUE(is_derived_tensor("h.3.attn.bias", tied));
    EXPECT_TRUE(is_derived_tensor("transformer.h.3.attn.masked_bias", tied));
    EXPECT_FALSE(is_derived_tensor("h.3.attn.c_attn.bias", tied));
    EXPECT_TRUE(is_derived_tensor("model.layers.0.self_attn.rotary_emb.inv_freq", untied));
    EXPECT_TRUE(is_derived_tensor("lm_head.weight", tied));
    EXPECT_FALSE(is_derived_tensor("lm_head.weight", untied));
}

}  // namespace
}  // namespace tera
