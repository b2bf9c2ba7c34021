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
    spec.whole = {.head = 2, .query = {.first = 4}, .key = {.first = 1}, .length = 10};
    const AttentionOut on_cpu = attention(w_.ctx.temp, spec, {q, 0}, {k, 0}, {v, 0});
    spec.sample = g_->up(samples);
    Tensor gq = g_->up(q), gk = g_->up(k), gv = g_->up(v);
    const AttentionOut on_gpu = attention(g_->ctx.temp, spec, {gq, 0}, {gk, 0}, {gv, 0});
    expect_close("o", on_gpu.o, on_cpu.o);
    expect_close("lse", on_gpu.lse, on_cpu.lse);
}

/// Two halves of the queries' keys, one after the other: a step of ring attention. The first rows see nothing of a
/// block, if there are documents; without them and without dropout this is cuDNN's in sixteen bits.
TEST_P(CudaShardOps, attention_to_blocks_of_keys) {
    constexpr std::int64_t B = 2, S = 24, H = 4, G = 2, K = 64, kv = G * K;
    const std::vector<std::int64_t> samples = {3, 99};
    std::vector<std::int32_t> starts;
    for (std::int64_t t = 0; t < S * B; ++t)
        starts.push_back(static_cast<std::int32_t>(t / B < 7 ? 30 + t % B : t / B));
    for (const bool masked : {false, true}) {
        const Exec &c = w_.ctx.temp, &g = g_->ctx.temp;
        Tensor q = w_.random(GetParam(), {S * B, H * K}), d_o = w_.random(GetParam(), {S * B, H * K});
        Tensor gq = g_->up(q), gd_o = g_->up(d_o);
        const DType acc = acc_dtype(GetParam());
        AttentionOut sum{w_.zeros(acc, q.shape), w_.random(acc, {B, H, S})};  // as if there were others before
        AttentionOut gsum{g_->up(sum.o), g_->up(sum.lse)};
        // In the last two a call of dropout's generator serves no neighbours of a tile.
        for (const auto [query, first] : {std::array<std::int64_t, 2>{40, 0}, {40, 20}, {41, 20}, {40, 21}}) {
            SCOPED_TRACE(
                cat(masked ? "documents and dropout" : "plain", ", queries from ", query, ", keys from ", first));
            AttentionSpec spec{.B = B, .Sq = S, .Sk = 12, .H = H, .G = G, .K = K, .scale = 0.125, .causal = false};
            spec.whole = {
                .query = {.first = query}, .key = {.run = 4, .first = first, .second = first + 8}, .length = 64};
            AttentionSpec gspec = spec;
            if (masked) {
                spec.dropout = gspec.dropout = 0.3;
                spec.sample = samples.data(), gspec.sample = g_->up(samples);
                spec.doc_start = starts.data(), gspec.doc_start = g_->up(starts);
            }
            Tensor keys = w_.random(GetParam(), {12 * B, 2 * kv}), gkeys = g_->up(keys);
            const ConstTensor cq = q, ck = keys, dq_ = gq, dk_ = gkeys;
            const AttentionOut part = attention(c, spec, {cq, 0}, {ck, 0}, {ck, kv}),
                               gpart = attention(g, gspec, {dq_, 0}, {dk_, 0}, {dk_, kv});
            expect_close("o", gpart.o, part.o);
            merge_attention(c, sum, part, 0);
            merge_attention(g, gsum, gpart, 0);
            expect_close("merged o", gsum.o, sum.o);
            expect_close("merged lse", gsum.lse, sum.lse);
            Tensor o = c.like(q), dq = w_.zeros(GetParam(), q.shape), dkv = w_.zeros(GetParam(), keys.shape);
            convert(c, o, sum.o);
            Tensor go = g_->up(o), glse = g_->up(sum.lse), gdq = g_->up(dq), gdkv = g_->up(dkv);
            attention_backward(c, spec, {{dq, 0}, {dkv, 0}, {dkv, kv}}, d_o, {cq, 0}, {ck, 0}, {ck, kv}, {o, sum.lse});
            attention_backward(g, gspec, {{gdq, 0}, {gdkv, 0}, {gdkv, kv}}, gd_o, {dq_, 0}, {dk_, 0}, {dk_, kv},
                               {go, glse});
            expect_close("dq", gdq, dq);
            expect_close("dk and dv", gdkv, dkv);
        }
    }
}

TEST_P(CudaShardOps, sums_of_other_dtypes) {
    const DType acc = acc_dtype(GetParam());
    Tensor sum = w_.random(acc, {1003}), more = w_.random(GetParam(), {1003}), gsum = g_->up(sum);
    add_to(w_.ctx.temp, sum, more);
    add_to(g_->ctx.temp, gsum, g_->up(more));
    EXPECT_EQ(g_->down(gsum), values(sum));
}

}  // namespace
}  // namespace tera::test
