// Ops on a rank's piece of a tensor, on the GPU against the CPU.
#include "cuda/cuda_world.h"
#include "ops/attention.h"
#include "ops/convert.h"
#include "ops/embedding.h"
#include "ops/init.h"
#include "ops/residual.h"
#include "ops/vocab_cross_entropy.h"

namespace tera::test {
namespace {

using namespace ops;

class CudaShardOps : public testing::TestWithParam<DType> {
  protected:
    void SetUp() override {
        NEED_GPU();
        g_ = std::make_unique<CudaWorld>();
    }
    void TearDown() override {
        if (g_) g_->expect_sentinels();
    }
    void expect_close(const std::string& what, ConstTensor on_gpu, ConstTensor on_cpu) {
        EXPECT_LT(worst(g_->down(on_gpu), values(on_cpu)), cuda_bound(GetParam())) << what;
    }
    World w_;
    std::unique_ptr<CudaWorld> g_;
};
INSTANTIATE_TEST_SUITE_P(Types, CudaShardOps, testing::Values(DType::f64, DType::f32, DType::bf16, DType::f16),
                         [](const auto& type_case) { return name_of(type_case.param); });

TEST_P(CudaShardOps, random_values_of_runs) {
    for (const bool normal : {true, false}) {
        RandomFill fill{normal, 0.5, 7, 11};
        fill.first = 5, fill.run = 7, fill.stride = 13;
        Tensor host = w_.zeros(GetParam(), {6, 7}), device = g_->up(host);
        fill_random(w_.ctx.temp, host, fill);
        fill_random(g_->ctx.temp, device, fill);
        EXPECT_EQ(g_->down(device), values(host));
    }
}

TEST_P(CudaShardOps, columns) {
    Tensor whole = w_.random(GetParam(), {5, 9}), part = w_.random(GetParam(), {5, 4});
    Tensor gwhole = g_->up(whole), gpart = g_->up(part);
    put_columns(w_.ctx.temp, whole, 3, part);
    put_columns(g_->ctx.temp, gwhole, 3, gpart);
    EXPECT_EQ(g_->down(gwhole), values(whole));
}

TEST_P(CudaShardOps, parts_of_a_table) {
    for (const std::int64_t D : {std::int64_t{64}, std::int64_t{37}}) {
        const std::int64_t T = 700;
        Tensor table = w_.random(GetParam(), {20, D}), dx = w_.random(GetParam(), {T, D}),
               grad = w_.random(acc_dtype(GetParam()), {20, D});
        Tensor gtable = g_->up(table), gdx = g_->up(dx), ggrad = g_->up(grad);
        const std::vector<std::int32_t> tokens = w_.random_ints(T, 60);
        const std::int32_t* gtokens = g_->up(tokens);
        const TableRows rows{20, 60};
        EXPECT_EQ(g_->down(embedding_part(g_->ctx.temp, gtable, rows, gtokens, T)),
                  values(embedding_part(w_.ctx.temp, table, rows, tokens.data(), T)));
        embedding_backward(w_.ctx.temp, grad, dx, tokens.data(), rows);
        embedding_backward(g_->ctx.temp, ggrad, gdx, gtokens, rows);
        expect_close("gradient of the table", ggrad, grad);
    }
}

TEST_P(CudaShardOps, cross_entropy_of_a_cut_vocabulary) {
    constexpr std::int64_t n = 33, V = 1000;
    const DType acc = acc_dtype(GetParam());
    Tensor z = w_.random(GetParam(), {n, V}, 8), gz = g_->up(z);
    Tensor host = w_.zeros(acc, {n, V});  // the CPU keeps logits in the accumulation dtype
    convert(w_.ctx.temp, host, z);
    const std::vector<std::int32_t> labels = w_.random_ints(n, 3 * V);
    const std::vector<float> mask(n, 0.75f);
    VocabStats stats{w_.zeros(acc, {n}), w_.zeros(acc, {2, n})};
    VocabStats gstats{g_->up(stats.top), g_->up(stats.sums)};
    Tensor loss = w_.zeros(acc, {n}), gloss = g_->up(loss);
    const LocalLabels here{labels.data(), V}, ghere{g_->up(labels), V};
    vocab_max(w_.ctx.temp, stats.top, host);
    vocab_max(g_->ctx.temp, gstats.top, gz);
    expect_close("maximum", gstats.top, stats.top);
    vocab_sums(w_.ctx.temp, stats, host, here);
    vocab_sums(g_->ctx.temp, gstats, gz, ghere);
    expect_close("sums", gstats.sums, stats.sums);
    vocab_cross_entropy(w_.ctx.temp, loss, host, stats, here, {mask.data(), 0.5});
    vocab_cross_entropy(g_->ctx.temp, gloss, gz, gstats, ghere, {g_->up(mask), 0.5});
    expect_close("loss", gloss, loss);
    expect_close("gradient", gz, host);
}

TEST_P(CudaShardOps, dropout_in_a_piece_of_the_sequence) {
    const std::vector<std::int64_t> samples = {3, 1LL << 41};
    Tensor y = w_.random(GetParam(), {12, 20}), gy = g_->up(y);
    Dropout drop{0.4, {1, 2, 3}, 2, samples.data(), {.offset = 1, .run = 3, .first = 2, .second = 8}};
    const Tensor on_cpu = dropout_add(w_.ctx.temp, {}, y, {}, drop);
    drop.sample = g_->up(samples);
    expect_close("dropout", dropout_add(g_->ctx.temp, {}, gy, {}, drop), on_cpu);
}

TEST_P(CudaShardOps, attention_of_some_heads_and_queries) {
    const std::vector<std::int64_t> samples = {3, 99};
    Tensor q = w_.random(GetParam(), {6, 12}), k = w_.random(GetParam(), {14, 12}), v = w_.random(GetParam(), {14, 12});
    AttentionSpec spec{.B = 2, .Sq = 3, .Sk = 7, .H = 2, .G = 2, .K = 6, .scale = 0.4};
    spec.dropout = 0.3, spec.site = {1, 2, 3}, spec.sample = samples.data();
    spec.whole = {.head = 2, .query = 4, .key = 1, .length = 10};
    const AttentionOut on_cpu = attention(w_.ctx.temp, spec, {q, 0}, {k, 0}, {v, 0});
    spec.sample = g_->up(samples);
    Tensor gq = g_->up(q), gk = g_->up(k), gv = g_->up(v);
    const AttentionOut on_gpu = attention(g_->ctx.temp, spec, {gq, 0}, {gk, 0}, {gv, 0});
    expect_close("o", on_gpu.o, on_cpu.o);
    expect_close("lse", on_gpu.lse, on_cpu.lse);
}

}  // namespace
}  // namespace tera::test
