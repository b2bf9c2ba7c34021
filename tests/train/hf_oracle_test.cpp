// Checkpoints of every architecture are loaded by the real transformers, whose logits must be ours. Skipped where there
// is no Python with transformers: TERA_ORACLE_PYTHON names one, else .venv of scripts/setup.sh --oracle is used.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "model/decoder.h"
#include "support/model_configs.h"
#include "support/temp_folder.h"
#include "train/checkpoint.h"
#include "train/workspace.h"

namespace tera {
namespace {

std::string oracle_python() {
    if (const char* named = std::getenv("TERA_ORACLE_PYTHON")) return named;
    const std::string local = std::string(TERA_SOURCE_DIR) + "/.venv/bin/python";
    return access(local.c_str(), X_OK) == 0 ? local : "";
}

/// A random model, saved with its logits on random tokens.
std::string save_with_logits(const ModelConfig& config, DType dtype, const std::string& folder) {
    ThreadPool pool(2);
    Workspace workspace(pool);
    Arena arena;
    Decoder model(config, {}, 1);
    const std::vector<Param*> params = params_of(model);
    for (Param* p : params) {
        p->value = arena.tensor(dtype, p->full_shape);
        // Norms and biases must differ from their initial values too, or a mix-up would not show.
        const double centre = p->init.kind == Init::Kind::constant ? p->init.value : 0;
        if (centre == 0) p->init = {Init::Kind::normal, 0.3};
        if (centre != 0) p->init = {Init::Kind::uniform, 1.5};
    }
    init_params(params, workspace.ctx().temp, 99);
    const CheckpointState state;
    SaveOptions options;
    options.folder = folder;
    const std::string path = save_checkpoint({config, params, {}, {}, 7, state}, options).path;

    std::vector<std::int32_t> tokens, positions;
    for (std::int32_t i = 0; i < 20; ++i) {
        tokens.push_back((i * 31 + 5) % static_cast<std::int32_t>(config.true_vocab));
        positions.push_back(i);
    }
    MicroBatch batch;
    batch.S = 20;
    batch.B = 1;
    batch.tokens = tokens.data();
    batch.positions = positions.data();
    Ctx ctx = workspace.ctx();
    const Tensor logits = model.logits(ctx, batch);
    SafetensorsWriter writer(path + "/expected.safetensors",
                             {{"tokens", DType::i32, {20}}, {"logits", DType::f32, logits.shape}}, {});
    writer.write("tokens", 0, std::as_bytes(std::span(tokens)));
    writer.write("logits", 0, {logits.data, logits.bytes()});
    writer.close();
    return path;
}

TEST(SlowHfOracle, TransformersComputesTheSameLogits) {
    const std::string python = oracle_python();
    if (python.empty() || std::system((python + " -c 'import torch, transformers' 2>/dev/null").c_str()) != 0)
        GTEST_SKIP() << "no Python with torch and transformers: scripts/setup.sh --oracle";
    TempFolder folder;
    std::string command = python + " " + TERA_SOURCE_DIR + "/tests/oracle/check_checkpoint.py";
    ModelConfig untied_gpt2 = tiny_gpt2(), biased_llama = tiny_llama(), tied_llama = tiny_llama();
    untied_gpt2.tied = false;
    untied_gpt2.activation = Activation::gelu_erf;
    biased_llama.linear_bias = biased_llama.qkv_bias = true;
    biased_llama.activation = Activation::geglu;
    tied_llama.tied = true;
    tied_llama.rope.scaling = false;
    tied_llama.rope.interpolation = 4;
    int n = 0;
    for (const ModelConfig& config : {tiny_gpt2(), untied_gpt2, tiny_llama(), biased_llama, tied_llama, tiny_qwen2(),
                                      tiny_qwen3(), tiny_starcoder2(), tiny_nemotron()}) {
        command += " " + save_with_logits(config, DType::f32, folder / std::to_string(n++));
    }
    command += " " + save_with_logits(tiny_llama(), DType::bf16, folder / std::to_string(n++));
    EXPECT_EQ(std::system((command + " 2>&1").c_str()), 0) << command;
}

}  // namespace
}  // namespace tera
