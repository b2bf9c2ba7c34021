// Whole models on the GPU against the CPU: the same initial weights, loss and every gradient.
#include "cuda/cuda_world.h"
#include "ops/activated_product.h"
#include "support/models.h"

namespace tera::test {
namespace {

ModelConfig larger(ModelConfig c) {
    c.layers = 2, c.hidden = 128, c.heads = 4, c.kv_heads = 2, c.head_dim = 32, c.ffn = 256;
    c.vocab = 512, c.true_vocab = 500, c.max_positions = 128, c.init_std = 0.08;
    return c;
}

struct GpuBatch {
    TestBatch host;
    MicroBatch view;
    GpuBatch(CudaWorld& g, const TestBatch& b) : host(b) {
        view = {b.S,
                b.B,
                g.up(b.tokens),
                g.up(b.labels),
                g.up(b.mask),
                g.up(b.positions),
                b.doc_start.empty() ? nullptr : g.up(b.doc_start),
                g.up(b.sample)};
    }
};

/// One step of a model on both: the loss and every gradient.
void expect_like_the_cpu(const ModelConfig& c, DType dtype, const RecomputeConfig& recompute, World& w,
                         const TestBatch& batch) {
    CudaWorld g;
    TestModel cpu(w, c, {}, dtype);
    Decoder model(c, recompute, 7);
    std::vector<Param*> params = params_of(model);
    allocate_params(params, g.store, dtype, acc_dtype(dtype));
    for (std::size_t i = 0; i < params.size(); ++i)
        copy_from_host(g.ctx.temp, params[i]->value, cpu.params[i]->value.data);
    const double scale = dtype == DType::f16 ? 64 : 0.25;  // small gradients are lost in f16 without
    LossSum expected = run_step(w, cpu, batch, scale);
    GpuBatch on_gpu(g, batch);
    Decoder::Saved saved;
    LossSum loss = model.forward(g.ctx, on_gpu.view, scale, saved);
    model.backward(g.ctx, on_gpu.view, saved);
    double loss_bound = dtype == DType::f64 ? 1e-12 : dtype == DType::f32 ? 1e-5 : 2e-3;
    EXPECT_NEAR(loss.loss, expected.loss, loss_bound * expected.loss);
    for (std::size_t i = 0; i < params.size(); ++i) {
        double error = nmse(g.down(params[i]->grad), values(cpu.params[i]->grad));
        EXPECT_LT(error, dtype == DType::f64 ? 1e-22 : dtype == DType::f32 ? 1e-9 : 1e-3) << params[i]->name;
    }
}

class CudaDecoder : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, CudaDecoder, testing::Values(DType::f64, DType::f32, DType::bf16, DType::f16),
                         [](const auto& type_case) { return name_of(type_case.param); });

TEST_P(CudaDecoder, loss_and_every_gradient_match_the_cpu) {
    NEED_GPU();
    for (int variant = 0; variant < 4; ++variant) {
        SCOPED_TRACE(variant);
        ModelConfig c = larger(variant % 2 ? llama_config() : gpt_config());
        if (variant == 2) c.hidden_dropout = c.attention_dropout = 0.1;
        if (variant == 3) c.qk_norm = true;
        World w;
        TestBatch batch(w, 64, 2, 500);
        if (variant == 1) batch.cut_documents(23);
        RecomputeConfig recompute{variant == 0 ? RecomputeConfig::Kind::uniform : RecomputeConfig::Kind::none, 1};
        expect_like_the_cpu(c, GetParam(), recompute, w, batch);
    }
}

/// Large enough for the products with an activation in them: tiles of rows and columns that are not whole ones too.
TEST(CudaDecoderOfTiles, loss_and_every_gradient_match_the_cpu) {
    NEED_GPU();
#ifndef TERA_SM90
    GTEST_SKIP() << "built for other GPUs than Hopper's";
#endif
    for (const Activation kind :
         {Activation::swiglu, Activation::gelu_tanh, Activation::gelu_erf, Activation::squared_relu})
        for (const bool keep : {false, true}) {
            SCOPED_TRACE(static_cast<int>(kind));
            ModelConfig c = larger(kind == Activation::swiglu ? llama_config() : gpt_config());
            c.activation = kind, c.layers = 1, c.ffn = 2120, c.max_positions = 512;
            World w;
            TestBatch batch(w, 500, 2, 500);
            {
                CudaWorld g;
                if (!g.gpu.hopper) GTEST_SKIP() << "not a Hopper GPU";
                const ops::cuda::ActivatedSizes sizes{1000, c.hidden, c.ffn};
                ASSERT_TRUE(
                    kind == Activation::swiglu
                        ? ops::cuda::has_gated_products(g.ctx.temp, ops::ActivationKind::swiglu, DType::bf16, sizes)
                        : ops::cuda::has_plain_products(g.ctx.temp, ops::ActivationKind::gelu_tanh, DType::bf16,
                                                        sizes));
            }
            RecomputeConfig recompute{RecomputeConfig::Kind::none, 1};
            recompute.keep_mlp = keep;
            expect_like_the_cpu(c, DType::bf16, recompute, w, batch);
        }
}

TEST_P(CudaDecoder, cached_inference_equals_the_whole_sequence) {
    NEED_GPU();
    World w;
    CudaWorld g;
    ModelConfig c = larger(llama_config());
    Decoder model(c, {}, 7);
    std::vector<Param*> params = params_of(model);
    allocate_params(params, g.store, GetParam(), acc_dtype(GetParam()));
    init_params(params, g.ctx.temp, 3);
    TestBatch batch(w, 12, 1, 500);
    GpuBatch on_gpu(g, batch);
    std::vector<double> whole = g.down(model.logits(g.ctx, on_gpu.view));
    KvCache cache = model.make_cache(g.store, 1, 12);
    std::int64_t done = 0;
    for (std::int64_t n : {5, 1, 6}) {
        MicroBatch part = on_gpu.view;
        part.S = n, part.tokens += done, part.positions += done;
        std::vector<double> last = g.down(model.next_logits(g.ctx, part, cache));
        done += n;
        EXPECT_LT(worst(last, {whole.begin() + (done - 1) * c.vocab, whole.begin() + done * c.vocab}),
                  cuda_bound(GetParam()));
    }
}

}  // namespace
}  // namespace tera::test
