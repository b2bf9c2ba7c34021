// Attention over 65,536 tokens, where no twin on the CPU would end soon: some rows of the result and of each gradient
// against sums over all keys or queries in double precision. Bounds are such that a tile of 64 keys left out shows.
#include <cmath>
#include <numeric>

#include "cuda/cuda_world.h"
#include "ops/attention.h"

namespace tera::test {
namespace {

using namespace ops;

/// The length of documents; none: one that ends nowhere.
class LongAttention : public testing::TestWithParam<std::int64_t> {
  protected:
    static constexpr std::int64_t S = 65536, H = 2, K = 64;  // one key/value head
    static constexpr double scale = 0.125;

    bool sees(std::int64_t query, std::int64_t key) const { return key <= query && key >= start(query); }
    std::int64_t start(std::int64_t query) const { return GetParam() > 0 ? query / GetParam() * GetParam() : 0; }

    using Rows = std::vector<double>;
    static const double* row(const Rows& rows, std::int64_t s, std::int64_t width, std::int64_t column) {
        return rows.data() + s * width + column;
    }
    static double product(const double* a, const double* b) { return std::inner_product(a, a + K, b, 0.0); }
    static void expect_row(const double* found, const Rows& expected, const std::string& what) {
        EXPECT_LT(worst({found, found + K}, expected), 1e-2) << what;
    }
};
INSTANTIATE_TEST_SUITE_P(Masks, LongAttention, testing::Values(0, 20000, 1000), [](const auto& c) {
    return c.param == 0 ? "causal" : c.param == 20000 ? "long_documents" : "documents";
});

TEST_P(LongAttention, rows_of_results_and_gradients) {
    NEED_GPU();
    World w;
    CudaWorld g;
    const Tensor host_q = w.random(DType::bf16, {S, H * K}, 4), host_kv = w.random(DType::bf16, {S, 2 * K}),
                 host_do = w.random(DType::bf16, {S, H * K});
    const Tensor q = g.up(host_q), kv = g.up(host_kv), d_o = g.up(host_do);
    const ConstTensor cq = q, ckv = kv;
    AttentionSpec spec{.B = 1, .Sq = S, .Sk = S, .H = H, .G = 1, .K = K, .scale = scale};
    std::vector<std::int32_t> starts;
    for (std::int64_t s = 0; s < S; ++s) starts.push_back(static_cast<std::int32_t>(start(s)));
    if (GetParam() > 0) spec.doc_start = g.up(starts);
    const AttentionOut out = attention(g.ctx.temp, spec, {cq, 0}, {ckv, 0}, {ckv, K});
    const Tensor dq = g.up(w.zeros(DType::bf16, q.shape)), dkv = g.up(w.zeros(DType::bf16, kv.shape));
    attention_backward(g.ctx.temp, spec, {{dq, 0}, {dkv, 0}, {dkv, K}}, d_o, {cq, 0}, {ckv, 0}, {ckv, K}, out);

    const Rows Q = values(host_q), KV = values(host_kv), DO = values(host_do), O = g.down(out.o), LSE = g.down(out.lse),
               DQ = g.down(dq), DKV = g.down(dkv);
    for (const std::int64_t i : {0L, 1L, 4095L, 20000L, 32768L, 59999L, S - 1}) {
        for (std::int64_t h = 0; h < H; ++h) {
            const std::string what = cat("query ", i, " head ", h);
            const double* qi = row(Q, i, H * K, h * K);
            double sum = 0;
            for (std::int64_t j = start(i); j <= i; ++j) sum += std::exp(scale * product(qi, row(KV, j, 2 * K, 0)));
            EXPECT_NEAR(LSE[static_cast<std::size_t>(h * S + i)], std::log(sum), 2e-4) << what;
            Rows o(K), dqi(K);
            double delta = 0;
            const double* doi = row(DO, i, H * K, h * K);
            const auto share = [&](std::int64_t j) {
                return std::exp(scale * product(qi, row(KV, j, 2 * K, 0))) / sum;
            };
            for (std::int64_t j = start(i); j <= i; ++j) {
                const double p = share(j);
                const double* v = row(KV, j, 2 * K, K);
                for (std::size_t d = 0; d < K; ++d) o[d] += p * v[d];
                delta += p * product(doi, v);
            }
            for (std::int64_t j = start(i); j <= i; ++j) {
                const double ds = share(j) * (product(doi, row(KV, j, 2 * K, K)) - delta) * scale;
                for (std::size_t d = 0; d < K; ++d) dqi[d] += ds * row(KV, j, 2 * K, 0)[d];
            }
            expect_row(row(O, i, H * K, h * K), o, what + " o");
            // A query that sees one key has no gradient but what rounding leaves.
            if (i > start(i)) expect_row(row(DQ, i, H * K, h * K), dqi, what + " dq");
        }
    }
    for (const std::int64_t j : {0L, 1L, 19999L, 20000L, 40001L, S - 100}) {
        Rows dk(K), dv(K);
        for (std::int64_t i = j; i < S; ++i) {
            if (!sees(i, j)) continue;
            for (std::int64_t h = 0; h < H; ++h) {
                const double *qi = row(Q, i, H * K, h * K), *doi = row(DO, i, H * K, h * K);
                const double p =
                    std::exp(scale * product(qi, row(KV, j, 2 * K, 0)) - LSE[static_cast<std::size_t>(h * S + i)]);
                const double delta = product(doi, row(O, i, H * K, h * K));
                const double ds = p * (product(doi, row(KV, j, 2 * K, K)) - delta) * scale;
                for (std::size_t d = 0; d < K; ++d) dk[d] += ds * qi[d], dv[d] += p * doi[d];
            }
        }
        expect_row(row(DKV, j, 2 * K, 0), dk, cat("dk of key ", j));
        expect_row(row(DKV, j, 2 * K, K), dv, cat("dv of key ", j));
    }
    g.expect_sentinels();
}

/// In deterministic mode gradients are the same bits every time, whoever computes them.
TEST(DeterministicAttention, gradients_are_the_same_bits_and_right) {
    NEED_GPU();
    struct Shape {
        std::int64_t S, H, G, K;
        bool documents;
    };
    for (const Shape& s : {Shape{1024, 4, 4, 64, false},
                           {2048, 4, 2, 128, false},
                           {1000, 2, 1, 96, false},
                           {512, 2, 2, 256, false},
                           {1024, 4, 2, 64, true}}) {
        World w;
        CudaWorld g;
        const Tensor hq = w.random(DType::bf16, {s.S, s.H * s.K}), hkv = w.random(DType::bf16, {s.S, 2 * s.G * s.K}),
                     hdo = w.random(DType::bf16, {s.S, s.H * s.K});
        const ConstTensor q = g.up(hq), kv = g.up(hkv), d_o = g.up(hdo);
        AttentionSpec spec{.B = 1,
                           .Sq = s.S,
                           .Sk = s.S,
                           .H = s.H,
                           .G = s.G,
                           .K = s.K,
                           .scale = 1 / std::sqrt(static_cast<double>(s.K))};
        std::vector<std::int32_t> starts(static_cast<std::size_t>(s.S), 0);
        std::fill(starts.begin() + s.S / 3, starts.end(), static_cast<std::int32_t>(s.S / 3));
        if (s.documents) spec.doc_start = g.up(starts);
        const auto run = [&](bool deterministic) {
            g.gpu.deterministic = deterministic;
            const AttentionOut out = attention(g.ctx.temp, spec, {q, 0}, {kv, 0}, {kv, s.G * s.K});
            const Tensor dq = g.up(w.zeros(DType::bf16, hq.shape)), dkv = g.up(w.zeros(DType::bf16, hkv.shape));
            attention_backward(g.ctx.temp, spec, {{dq, 0}, {dkv, 0}, {dkv, s.G * s.K}}, d_o, {q, 0}, {kv, 0},
                               {kv, s.G * s.K}, out);
            return std::pair{g.down(dq), g.down(dkv)};
        };
        const auto first = run(true), plain = run(false);
        for (int again = 0; again < 3; ++again) EXPECT_EQ(run(true), first) << s.S << " heads of " << s.K;
        EXPECT_LT(worst(first.first, plain.first), cuda_bound(DType::bf16)) << s.S << " heads of " << s.K;
        EXPECT_LT(worst(first.second, plain.second), cuda_bound(DType::bf16)) << s.S << " heads of " << s.K;
        g.expect_sentinels();
    }
}

}  // namespace
}  // namespace tera::test
