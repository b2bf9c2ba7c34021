// Ops on a rank's piece of a tensor, on the GPU against the CPU.
#include "cuda/cuda_ops.h"
#include "ops/attention.h"
#include "ops/convert.h"
#include "ops/embedding.h"
#include "ops/init.h"
#include "ops/residual.h"
#include "ops/vocab_cross_entropy.h"

namespace tera::test {
namespace {

using namespace ops;

class CudaShardOps : public CudaOpsTest {};
INSTANTIATE_TEST_SUITE_P(Types, CudaShardOps, all_floats(), name_of_type);

TEST_P(CudaShardOps, random_values_of_runs) {
    for (const bool normal : {true, false}) {
        RandomFill fill{normal, 0.5, 7, 11};
        fill.first = 5, fill.run = 7, fill.stride = 13;
        Tensor host = w_.zeros(GetParam(), {6, 7}), device = gpu().up(host);
        fill_random(w_.ctx.temp, host, fill);
        fill_random(gpu().ctx.temp, device, fill);
        EXPECT_EQ(gpu().down(device), values(host));
    }
}

TEST_P(CudaShardOps, columns) {
    Tensor whole = w_.random(GetParam(), {5, 9}), part = w_.random(GetParam(), {5, 4});
    Tensor gwhole = gpu().up(whole), gpart = gpu().up(part);
    put_columns(w_.ctx.temp, whole, 3, part);
    put_columns(gpu().ctx.temp, gwhole, 3, gpart);
    EXPECT_EQ(gpu().down(gwhole), values(whole));
}

TEST_P(CudaShardOps, parts_of_a_table) {
    for (const std::int64_t D : {std::int64_t{64}, std::int64_t{37}}) {
        const std::int64_t T = 700;
        Tensor table = w_.random(GetParam(), {20, D}), dx = w_.random(GetParam(), {T, D}),
               grad = w_.random(acc_dtype(GetParam()), {20, D});
        Tensor gtable = gpu().up(table), gdx = gpu().up(dx), ggrad = gpu().up(grad);
        const std::vector<std::int32_t> tokens = w_.random_ints(T, 60);
        const std::int32_t* gtokens = gpu().up(tokens);
        const TableRows rows{20, 60};
        EXPECT_EQ(gpu().down(embedding_part(gpu().ctx.temp, gtable, rows, gtokens, T)),
                  values(embedding_part(w_.ctx.temp, table, rows, tokens.data(), T)));
        embedding_backward(w_.ctx.temp, grad, dx, tokens.data(), rows);
        embedding_backward(gpu().ctx.temp, ggrad, gdx, gtokens, rows);
        expect_close("gradient of the table", ggrad, grad);
    }
}

TEST_P(CudaShardOps, cross_entropy_of_a_cut_vocabulary) {
    constexpr std::int64_t n = 33, V = 1000;
    const DType acc = acc_dtype(GetParam());
    Tensor z = w_.random(GetParam(), {n, V}, 8), gz = gpu().up(z);
    Tensor host = w_.zeros(acc, {n, V});  // the CPU keeps logits in the accumulation dtype
    convert(w_.ctx.temp, host, z);
    const std::vector<std::int32_t> labels = w_.random_ints(n, 3 * V);
    const std::vector<float> mask(n, 0.75f);
    VocabStats stats{w_.zeros(acc, {n}), w_.zeros(acc, {2, n})};
    VocabStats gstats{gpu().up(stats.top), gpu().up(stats.sums)};
    Tensor loss = w_.zeros(acc, {n}), gloss = gpu().up(loss);
    const LocalLabels here{labels.data(), V}, ghere{gpu().up(labels), V};
    vocab_max(w_.ctx.temp, stats.top, host);
    vocab_max(gpu().ctx.temp, gstats.top, gz);
    expect_close("maximum", gstats.top, stats.top);
    vocab_sums(w_.ctx.temp, stats, host, here);
    vocab_sums(gpu().ctx.temp, gstats, gz, ghere);
    expect_close("sums", gstats.sums, stats.sums);
    vocab_cross_entropy(w_.ctx.temp, loss, host, stats, here, {mask.data(), 0.5});
    vocab_cross_entropy(gpu().ctx.temp, gloss, gz, gstats, ghere, {gpu().up(mask), 0.5});
    expect_close("loss", gloss, loss);
    expect_close("gradient", gz, host);
}

TEST_P(CudaShardOps, dropout_in_a_piece_of_the_sequence) {
    const std::vector<std::int64_t> samples = {3, 1LL << 41};
    Tensor y = w_.random(GetParam(), {12, 20}), gy = gpu().up(y);
    Dropout drop{0.4, {1, 2, 3}, 2, samples.data(), {.offset = 1, .run = 3, .first = 2, .second = 8}};
    const Tensor on_cpu = dropout_add(w_.ctx.temp, {}, y, {}, drop);
    drop.sample = gpu().up(samples);
    expect_close("dropout", dropout_add(gpu().ctx.temp, {}, gy, {}, drop), on_cpu);
}

TEST_P(CudaShardOps, attention_of_some_heads_and_queries) {
    const std::vector<std::int64_t> samples = {3, 99};
    Tensor q = w_.random(GetParam(), {6, 12}), k = w_.random(GetParam(), {14, 12}), v = w_.random(GetParam(), {14, 12});
    AttentionSpec spec{.B = 2, .Sq = 3, .Sk = 7, .H = 2, .G = 2, .K = 6, .scale = 0.4};
    spec.dropout = 0.3, spec.site = {1, 2, 3}, spec.sample = samples.data();
    spec.whole = {.head = 2, .query = {.first = 4}, .key = {.first = 1}, .length = 10};
    const AttentionOut on_cpu = attention(w_.ctx.temp, spec, {q, 0}, {k, 0}, {v, 0});
    spec.sample = gpu().up(samples);
    Tensor gq = gpu().up(q), gk = gpu().up(k), gv = gpu().up(v);
    const AttentionOut on_gpu = attention(gpu().ctx.temp, spec, {gq, 0}, {gk, 0}, {gv, 0});
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
        const Exec &c = w_.ctx.temp, &g = gpu().ctx.temp;
        Tensor q = w_.random(GetParam(), {S * B, H * K}), d_o = w_.random(GetParam(), {S * B, H * K});
        Tensor gq = gpu().up(q), gd_o = gpu().up(d_o);
        const DType acc = acc_dtype(GetParam());
        AttentionOut sum{w_.zeros(acc, q.shape), w_.random(acc, {B, H, S})};  // as if there were others before
        AttentionOut gsum{gpu().up(sum.o), gpu().up(sum.lse)};
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
                spec.sample = samples.data(), gspec.sample = gpu().up(samples);
                spec.doc_start = starts.data(), gspec.doc_start = gpu().up(starts);
            }
            Tensor keys = w_.random(GetParam(), {12 * B, 2 * kv}), gkeys = gpu().up(keys);
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
            Tensor go = gpu().up(o), glse = gpu().up(sum.lse), gdq = gpu().up(dq), gdkv = gpu().up(dkv);
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
    Tensor sum = w_.random(acc, {1003}), more = w_.random(GetParam(), {1003}), gsum = gpu().up(sum);
    add_to(w_.ctx.temp, sum, more);
    add_to(gpu().ctx.temp, gsum, gpu().up(more));
    EXPECT_EQ(gpu().down(gsum), values(sum));
}

}  // namespace
}  // namespace tera::test
