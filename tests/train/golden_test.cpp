// Small models of transformers, trained by PyTorch in double precision (tests/golden/make_golden.py), against ours:
// loaded from the Hugging Face files, then logits, loss, every gradient and ten AdamW steps with clipping.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "io/safetensors.h"
#include "model/decoder.h"
#include "optim/clip.h"
#include "support/world.h"
#include "train/checkpoint.h"

namespace tera::test {
namespace {

namespace fs = std::filesystem;

struct GoldenCase {
    const char* name;
    DType dtype;
    double bound;  ///< relative to the tensor's largest value; the goldens are rounded to f32 themselves
};

struct Golden {
    fs::path folder;
    nlohmann::json recipe;
    SafetensorsFile expected;
    explicit Golden(const fs::path& at) : folder(at), expected((at / "expected.safetensors").string()) {
        std::ifstream in(at / "expected.json");
        if (in) recipe = nlohmann::json::parse(in);
    }
    template <class T>
    std::vector<T> tensor(const std::string& name) const {
        const SafetensorsEntry* entry = expected.find(name);
        if (!entry) throw Error(cat("golden file lacks ", name));
        std::vector<T> data(entry->bytes / sizeof(T));
        expected.read(*entry, 0, std::as_writable_bytes(std::span(data)));
        return data;
    }
};

/// Step `i` of [steps,B,S] in our order [S,B].
std::vector<std::int32_t> step_of(const std::vector<std::int32_t>& all, std::size_t i, std::int64_t B, std::int64_t S) {
    std::vector<std::int32_t> out;
    for (std::int64_t s = 0; s < S; ++s)
        for (std::int64_t b = 0; b < B; ++b)
            out.push_back(
                all[(i * static_cast<std::size_t>(B) + static_cast<std::size_t>(b)) * static_cast<std::size_t>(S) +
                    static_cast<std::size_t>(s)]);
    return out;
}

struct GoldenModel {
    World w;
    CheckpointLocation at;
    ModelConfig config;
    HfArchitecture architecture;
    Decoder model;
    std::vector<Param*> params;

    GoldenModel(const fs::path& folder, DType dtype)
        : at(*find_checkpoint(folder.string())),
          config(read_checkpoint_model(at).config),
          architecture(read_checkpoint_model(at).architecture),
          model(config, {}, 0),
          params(params_of(model)) {
        allocate_params(params, w.store, dtype, acc_dtype(dtype));
        LoadOptions options;
        options.finetune = true;
        load_checkpoint(at, {config, params, {}}, options);
    }

    /// The part of a parameter's value or gradient that a Hugging Face tensor holds, in its layout.
    std::vector<double> hf_view(const HfTensor& t, bool gradient) const {
        for (Param* p : params) {
            if (p->name != t.param) continue;
            std::vector<double> all = values(gradient ? p->grad : p->value);
            std::int64_t cols = p->value.shape.ndim == 1 ? 1 : p->value.cols();
            std::vector<double> part(all.begin() + t.row_begin * cols, all.begin() + (t.row_begin + t.rows) * cols);
            if (!t.transposed) return part;
            std::vector<double> turned(part.size());
            for (std::int64_t r = 0; r < t.rows; ++r)
                for (std::int64_t c = 0; c < cols; ++c)
                    turned[static_cast<std::size_t>(c * t.rows + r)] = part[static_cast<std::size_t>(r * cols + c)];
            return turned;
        }
        throw Error(cat("no parameter ", t.param));
    }
};

std::vector<double> doubles(const std::vector<float>& v) { return {v.begin(), v.end()}; }

class GoldenTraining : public testing::TestWithParam<GoldenCase> {};
INSTANTIATE_TEST_SUITE_P(Models, GoldenTraining,
                         testing::Values(GoldenCase{"gpt2", DType::f32, 1e-5}, GoldenCase{"llama", DType::f32, 1e-5},
                                         GoldenCase{"llama_qknorm", DType::f32, 1e-5},
                                         GoldenCase{"llama_tied", DType::f32, 1e-5},
                                         GoldenCase{"gpt2", DType::f64, 1e-7}, GoldenCase{"llama", DType::f64, 1e-7},
                                         GoldenCase{"llama_qknorm", DType::f64, 1e-7},
                                         GoldenCase{"llama_tied", DType::f64, 1e-7}),
                         [](const auto& c) { return std::string(c.param.name) + "_" + name_of(c.param.dtype); });

TEST_P(GoldenTraining, logits_losses_gradients_and_ten_steps) {
    GoldenCase c = GetParam();
    Golden golden(fs::path(TERA_SOURCE_DIR) / "tests/golden" / c.name);
    GoldenModel m(golden.folder, c.dtype);
    auto B = golden.recipe["batch"].get<std::int64_t>(), S = golden.recipe["sequence"].get<std::int64_t>();
    std::vector<std::int32_t> positions;
    for (std::int64_t t = 0; t < S * B; ++t) positions.push_back(static_cast<std::int32_t>(t / B));
    std::vector<float> mask(positions.size(), 1.0f);
    auto all_tokens = golden.tensor<std::int32_t>("tokens"), all_labels = golden.tensor<std::int32_t>("labels");

    const auto& recipe = golden.recipe["optimizer"];
    AdamConfig adam;
    adam.beta1 = recipe["beta1"], adam.beta2 = recipe["beta2"], adam.eps = recipe["eps"];
    Optimizer optimizer(make_adam(adam), m.params, m.w.store, m.w.ctx.temp);
    auto steps = golden.recipe["steps"].get<std::size_t>();
    for (std::size_t i = 0; i < steps; ++i) {
        std::vector<std::int32_t> tokens = step_of(all_tokens, i, B, S), labels = step_of(all_labels, i, B, S);
        MicroBatch batch{S, B, tokens.data(), labels.data(), mask.data(), positions.data(), nullptr, nullptr};
        if (i == 0) {
            m.w.reset();
            std::vector<double> logits = values(m.model.logits(m.w.ctx, batch)), ours(logits.size());
            std::int64_t V = m.config.vocab;
            for (std::int64_t s = 0; s < S; ++s)
                for (std::int64_t b = 0; b < B; ++b)
                    std::copy_n(logits.begin() + (s * B + b) * V, V, ours.begin() + (b * S + s) * V);
            EXPECT_LT(worst(ours, doubles(golden.tensor<float>("logits"))), c.bound) << "logits";
        }
        m.w.reset();
        Decoder::Saved saved;
        LossSum loss = m.model.forward(m.w.ctx, batch, 1.0 / static_cast<double>(S * B), saved);
        m.model.backward(m.w.ctx, batch, saved);
        double expected_loss = golden.recipe["loss"][i], expected_norm = golden.recipe["grad_norm"][i];
        EXPECT_NEAR(loss.loss / loss.tokens, expected_loss, c.bound * expected_loss) << "loss of step " << i;
        if (i == 0) {
            for (const HfTensor& t : hf_tensors(m.config, m.architecture))
                EXPECT_LT(worst(m.hf_view(t, true), doubles(golden.tensor<float>("grad." + t.name))), c.bound)
                    << "gradient of " << t.name;
        }
        optimizer.measure(m.w.ctx.temp);
        StepArgs args;
        args.lr = recipe["lr"], args.weight_decay = recipe["weight_decay"];
        args.clip_norm = golden.recipe["clip_grad"];
        optimizer.step(m.w.ctx.temp, args);
        double norm = optimizer.finish(m.w.ctx.temp).grads.norm();
        EXPECT_NEAR(norm, expected_norm, c.bound * expected_norm) << "gradient norm of step " << i;
    }
    for (const HfTensor& t : hf_tensors(m.config, m.architecture)) {
        std::vector<double> ours = m.hf_view(t, false), theirs = doubles(golden.tensor<float>("param." + t.name));
        // Elements whose exact gradient is zero: Adam makes steps of size lr out of their rounding noise.
        if (auto v = golden.recipe["vanishing"].find(t.name); v != golden.recipe["vanishing"].end())
            for (std::size_t k = (*v)[0]; k < (*v)[1]; ++k) ours[k] = theirs[k];
        EXPECT_LT(worst(ours, theirs), c.bound) << t.name << " after " << steps << " steps";
    }
}

/// bf16 files in several shards, loaded into f32 and bf16 models.
TEST(GoldenSharded, bf16_files_load_into_any_dtype) {
    Golden golden(fs::path(TERA_SOURCE_DIR) / "tests/golden/llama_bf16_sharded");
    auto tokens_all = golden.tensor<std::int32_t>("tokens");
    const SafetensorsEntry* entry = golden.expected.find("tokens");
    std::int64_t B = entry->shape[entry->shape.size() - 2], S = entry->shape.back();
    std::vector<std::int32_t> tokens = step_of(tokens_all, 0, B, S), positions;
    for (std::int64_t t = 0; t < S * B; ++t) positions.push_back(static_cast<std::int32_t>(t / B));
    for (auto [dtype, bound] : {std::pair{DType::f32, 1e-5}, std::pair{DType::bf16, 3e-2}}) {
        GoldenModel m(golden.folder, dtype);
        MicroBatch batch{S, B, tokens.data(), nullptr, nullptr, positions.data(), nullptr, nullptr};
        std::vector<double> logits = values(m.model.logits(m.w.ctx, batch)), ours(logits.size());
        std::int64_t V = m.config.vocab;
        for (std::int64_t s = 0; s < S; ++s)
            for (std::int64_t b = 0; b < B; ++b)
                std::copy_n(logits.begin() + (s * B + b) * V, V, ours.begin() + (b * S + s) * V);
        EXPECT_LT(worst(ours, doubles(golden.tensor<float>("logits"))), bound) << name_of(dtype);
    }
}

}  // namespace
}  // namespace tera::test
