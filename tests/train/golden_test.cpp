// Small models of transformers, trained by PyTorch in double precision (tests/golden/make_golden.py), against ours:
// loaded from the Hugging Face files, then logits, loss, every gradient and ten AdamW steps with clipping. On the CPU
// and, where there is one, on a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "io/safetensors.h"
#include "model/decoder.h"
#include "optim/clip.h"
#include "support/world.h"
#include "train/batch_upload.h"
#include "train/checkpoint.h"
#include "train/host_rows.h"
#include "train/workspace.h"

namespace tera::test {
namespace {

namespace fs = std::filesystem;

struct GoldenCase {
    const char* name;
    Device device;
    DType dtype;
    double bound;  ///< relative to the tensor's largest value; the goldens are rounded to f32 themselves
    double norm_bound = bound, loss_bound = bound;
};

/// Every value is rounded to 8 bits on its way, so single elements say little: see error_of.
GoldenCase bf16_case(const char* name, Device device) { return {name, device, DType::bf16, 6e-2, 5e-2, 5e-3}; }

/// Of elements: the largest, in bf16 the root of the mean square, relative to the tensor's own.
double error_of(const GoldenCase& c, const std::vector<double>& ours, const std::vector<double>& theirs) {
    return c.dtype == DType::bf16 ? std::sqrt(nmse(ours, theirs)) : worst(ours, theirs);
}

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
    Engine engine;
    ThreadPool pool{2};
    Arena store;
    Workspace workspace;
    Ctx ctx;
    BatchUpload upload;
    CheckpointLocation at;
    ModelConfig config;
    HfArchitecture architecture;
    Decoder model;
    std::vector<Param*> params;

    GoldenModel(const fs::path& folder, Device device, DType dtype)
        : engine(device),
          store(Arena::Kind::real, engine.memory()),
          workspace(engine, pool),
          ctx(workspace.ctx()),
          upload(engine),
          at(*find_checkpoint(folder.string())),
          config(read_checkpoint_model(at).config),
          architecture(read_checkpoint_model(at).architecture),
          model(config, {}, 0),
          params(params_of(model)) {
        allocate_params(params, store, dtype, acc_dtype(dtype));
        LoadOptions options;
        options.finetune = true;
        load_checkpoint(at, {config, params, {}, ctx.temp}, options);
    }

    std::vector<double> down(ConstTensor t) const { return values(HostView(ctx.temp, t).tensor()); }

    /// The part of a parameter's value or gradient that a Hugging Face tensor holds, in its layout.
    std::vector<double> hf_view(const HfTensor& t, bool gradient) const {
        for (Param* p : params) {
            if (p->name != t.param) continue;
            std::vector<double> all = down(gradient ? p->grad : p->value);
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

std::vector<GoldenCase> golden_cases() {
    std::vector<GoldenCase> cases;
    for (const char* name : {"gpt2", "llama", "llama_qknorm", "llama_tied"}) {
        cases.push_back({name, Device::cpu, DType::f32, 1e-5});
        cases.push_back({name, Device::cpu, DType::f64, 1e-7});
        cases.push_back(bf16_case(name, Device::cpu));
        cases.push_back({name, Device::cuda, DType::f32, 1e-4});
        cases.push_back({name, Device::cuda, DType::f64, 1e-7});
        cases.push_back(bf16_case(name, Device::cuda));
    }
    return cases;
}
INSTANTIATE_TEST_SUITE_P(Models, GoldenTraining, testing::ValuesIn(golden_cases()), [](const auto& c) {
    return cat(c.param.name, c.param.device == Device::cuda ? "_cuda_" : "_", name_of(c.param.dtype));
});

TEST_P(GoldenTraining, logits_losses_gradients_and_ten_steps) {
    GoldenCase c = GetParam();
    if (c.device == Device::cuda && Engine::gpus() == 0) GTEST_SKIP() << "no GPU in this machine";
    Golden golden(fs::path(TERA_SOURCE_DIR) / "tests/golden" / c.name);
    GoldenModel m(golden.folder, c.device, c.dtype);
    auto B = golden.recipe["batch"].get<std::int64_t>(), S = golden.recipe["sequence"].get<std::int64_t>();
    std::vector<std::int32_t> positions;
    for (std::int64_t t = 0; t < S * B; ++t) positions.push_back(static_cast<std::int32_t>(t / B));
    std::vector<float> mask(positions.size(), 1.0f);
    auto all_tokens = golden.tensor<std::int32_t>("tokens"), all_labels = golden.tensor<std::int32_t>("labels");

    const auto& recipe = golden.recipe["optimizer"];
    AdamConfig adam;
    adam.beta1 = recipe["beta1"], adam.beta2 = recipe["beta2"], adam.eps = recipe["eps"];
    Optimizer optimizer(make_adam(adam), m.params, m.store, m.ctx.temp);
    auto steps = golden.recipe["steps"].get<std::size_t>();
    for (std::size_t i = 0; i < steps; ++i) {
        std::vector<std::int32_t> tokens = step_of(all_tokens, i, B, S), labels = step_of(all_labels, i, B, S);
        MicroBatch batch{S, B, tokens.data(), labels.data(), mask.data(), positions.data(), nullptr, nullptr};
        if (i == 0) {
            m.workspace.reset();
            std::vector<double> logits = m.down(m.model.logits(m.ctx, m.upload.put(batch))), ours(logits.size());
            std::int64_t V = m.config.vocab;
            for (std::int64_t s = 0; s < S; ++s)
                for (std::int64_t b = 0; b < B; ++b)
                    std::copy_n(logits.begin() + (s * B + b) * V, V, ours.begin() + (b * S + s) * V);
            EXPECT_LT(error_of(c, ours, doubles(golden.tensor<float>("logits"))), c.bound) << "logits";
        }
        m.workspace.reset();
        Decoder::Saved saved;
        const MicroBatch on_device = m.upload.put(batch);
        LossSum loss = m.model.forward(m.ctx, on_device, 1.0 / static_cast<double>(S * B), saved);
        m.model.backward(m.ctx, on_device, saved);
        double expected_loss = golden.recipe["loss"][i], expected_norm = golden.recipe["grad_norm"][i];
        EXPECT_NEAR(loss.loss / loss.tokens, expected_loss, c.loss_bound * expected_loss) << "loss of step " << i;
        if (i == 0) {
            for (const HfTensor& t : hf_tensors(m.config, m.architecture))
                EXPECT_LT(error_of(c, m.hf_view(t, true), doubles(golden.tensor<float>("grad." + t.name))), c.bound)
                    << "gradient of " << t.name;
        }
        optimizer.measure(m.ctx.temp);
        StepArgs args;
        args.lr = recipe["lr"], args.weight_decay = recipe["weight_decay"];
        args.clip_norm = golden.recipe["clip_grad"];
        optimizer.step(m.ctx.temp, args);
        double norm = optimizer.finish(m.ctx.temp).grads.norm();
        EXPECT_NEAR(norm, expected_norm, c.norm_bound * expected_norm) << "gradient norm of step " << i;
    }
    for (const HfTensor& t : hf_tensors(m.config, m.architecture)) {
        std::vector<double> ours = m.hf_view(t, false), theirs = doubles(golden.tensor<float>("param." + t.name));
        // Elements whose exact gradient is zero: Adam makes steps of size lr out of their rounding noise.
        if (auto v = golden.recipe["vanishing"].find(t.name); v != golden.recipe["vanishing"].end())
            for (std::size_t k = (*v)[0]; k < (*v)[1]; ++k) ours[k] = theirs[k];
        EXPECT_LT(error_of(c, ours, theirs), c.bound) << t.name << " after " << steps << " steps";
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
    const std::vector<GoldenCase> cases = {{"", Device::cpu, DType::f32, 1e-5},
                                           {"", Device::cpu, DType::bf16, 3e-2},
                                           {"", Device::cuda, DType::f32, 1e-4},
                                           {"", Device::cuda, DType::bf16, 3e-2}};
    for (const auto& [name, device, dtype, bound, norm_bound, loss_bound] : cases) {
        if (device == Device::cuda && Engine::gpus() == 0) continue;
        GoldenModel m(golden.folder, device, dtype);
        MicroBatch batch{S, B, tokens.data(), nullptr, nullptr, positions.data(), nullptr, nullptr};
        std::vector<double> logits = m.down(m.model.logits(m.ctx, m.upload.put(batch))), ours(logits.size());
        std::int64_t V = m.config.vocab;
        for (std::int64_t s = 0; s < S; ++s)
            for (std::int64_t b = 0; b < B; ++b)
                std::copy_n(logits.begin() + (s * B + b) * V, V, ours.begin() + (b * S + s) * V);
        EXPECT_LT(worst(ours, doubles(golden.tensor<float>("logits"))), bound)
            << name_of(dtype) << (device == Device::cuda ? " on the GPU" : "");
    }
}

}  // namespace
}  // namespace tera::test
