// Attention to some of the keys at a time: merged, the blocks give what all keys together do, and so do their parts of
// the gradients. Documents make queries that see nothing of a block.
#include <cmath>
#include <limits>

#include "ops/attention.h"
#include "ops/convert.h"
#include "support/gradcheck.h"

namespace tera::test {
namespace {

using namespace ops;

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(SequencePiece, rows_before_a_position) {
    for (const SequencePiece& piece :
         {SequencePiece{}, SequencePiece{.first = 7}, SequencePiece{.run = 3, .first = 2, .second = 9},
          SequencePiece{.offset = 2, .run = 3, .first = 2, .second = 5},
          SequencePiece{.offset = 4, .run = 3, .first = 0, .second = 8}})
        for (std::int64_t position = 0; position < 20; ++position) {
            std::int64_t count = 0;
            while (piece.at(count) < position) ++count;
            EXPECT_EQ(piece.before(position), count) << position;
        }
}

/// Queries at 4..23 and 40..89 of a sequence, and its keys 0..19, in blocks of two runs each.
struct Blocks {
    static constexpr std::int64_t B = 2, Sq = 70, Sk = 20, H = 4, G = 2, K = 3;
    World w;
    const Exec& e = w.ctx.temp;
    Tensor q = w.random(DType::f64, {Sq * B, H*K}), kv = w.random(DType::f64, {Sk * B, 2 * G*K}),
           d_o = w.random(DType::f64, {Sq * B, H*K});
    std::vector<std::int32_t> starts;
    std::vector<std::int64_t> samples{77, 1LL << 40};
    std::vector<SequencePiece> pieces{
        {.run = 5, .first = 2, .second = 13}, {.run = 2, .first = 0, .second = 7}, {.run = 3, .first = 17}};
    std::vector<std::int64_t> lengths{9, 8, 3};

    explicit Blocks(std::int64_t queries_of_last_keys = 64) {
        for (std::int64_t t = 0; t < Sq * B; ++t) {
            const std::int64_t s = t / B, b = t % B;
            starts.push_back(static_cast<std::int32_t>(s < queries_of_last_keys ? 17 + b : 3 * (s - 64) + b));
        }
    }

    AttentionSpec spec(double dropout) const {
        AttentionSpec s{.B = B, .Sq = Sq, .Sk = Sk, .H = H, .G = G, .K = K, .scale = 0.7, .causal = false};
        s.doc_start = starts.data();
        s.dropout = dropout, s.site = {9, 3, 1}, s.sample = samples.data();
        s.whole = {.head = 4, .query = {.run = 20, .first = 4, .second = 40}, .length = 90};
        return s;
    }
    AttentionSpec spec_of(std::size_t block, double dropout) const {
        AttentionSpec s = spec(dropout);
        s.Sk = lengths[block], s.whole.key = pieces[block];
        return s;
    }
    /// Row `row` of the block among all keys'.
    std::int64_t row(std::size_t block, std::int64_t at) const { return pieces[block].at(at / B) * B + at % B; }
    Tensor keys_of(std::size_t block) const {
        Tensor some = e.tensor(DType::f64, {lengths[block] * B, 2 * G * K});
        for (std::int64_t i = 0; i < some.rows(); ++i) copy(e, some.slice(i, 1), kv.slice(row(block, i), 1));
        return some;
    }
    AttentionOut of(const AttentionSpec& s, ConstTensor keys) const {
        return attention(e, s, {ConstTensor(q), 0}, {keys, 0}, {keys, G * K});
    }
    AttentionOut merged(double dropout) const {
        AttentionOut all{e.tensor(DType::f64, q.shape), e.tensor(DType::f64, {B, H, Sq})};
        fill_zero(e, all.o);
        std::fill_n(all.lse.ptr<double>(), all.lse.numel(), -infinity);
        for (std::size_t i = 0; i < pieces.size(); ++i) merge_attention(e, all, of(spec_of(i, dropout), keys_of(i)), 0);
        return all;
    }
    /// dq and dkv, added up from the blocks'.
    std::pair<Tensor, Tensor> gradients(double dropout, const AttentionOut& out) const {
        Tensor dq = e.like(q), dkv = e.like(kv);
        fill_zero(e, dq);
        fill_zero(e, dkv);
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            const ConstTensor keys = keys_of(i);
            Tensor part_q = e.like(q), part = e.like(keys);
            attention_backward(e, spec_of(i, dropout), {{part_q, 0}, {part, 0}, {part, G * K}}, d_o,
                               {ConstTensor(q), 0}, {keys, 0}, {keys, G * K}, out);
            add_to(e, dq, part_q);
            for (std::int64_t r = 0; r < part.rows(); ++r) add_to(e, dkv.slice(row(i, r), 1), part.slice(r, 1));
        }
        return {dq, dkv};
    }
};

TEST(AttentionBlocks, merged_are_attention_to_all_keys) {
    for (const double dropout : {0.0, 0.4}) {
        const Blocks b;
        const AttentionOut whole = b.of(b.spec(dropout), b.kv), all = b.merged(dropout);
        EXPECT_LT(worst(values(all.o), values(whole.o)), 1e-14) << dropout;
        EXPECT_LT(worst(values(all.lse), values(whole.lse)), 1e-14) << dropout;
        Tensor dq = b.e.like(b.q), dkv = b.e.like(b.kv);
        const ConstTensor kv = b.kv;
        attention_backward(b.e, b.spec(dropout), {{dq, 0}, {dkv, 0}, {dkv, Blocks::G * Blocks::K}}, b.d_o,
                           {ConstTensor(b.q), 0}, {kv, 0}, {kv, Blocks::G * Blocks::K}, whole);
        const auto [dq_of_blocks, dkv_of_blocks] = b.gradients(dropout, all);
        EXPECT_LT(worst(values(dq_of_blocks), values(dq)), 1e-13) << dropout;
        EXPECT_LT(worst(values(dkv_of_blocks), values(dkv)), 1e-13) << dropout;
    }
}

TEST(AttentionBlocks, gradient_matches_differences) {
    const Blocks b(60);
    const auto loss = [&] {
        const ArenaScope scope(*b.e.arena);
        return dot(values(b.merged(0.3).o), values(b.d_o));
    };
    const auto [dq, dkv] = b.gradients(0.3, b.merged(0.3));
    check_gradient("q", b.q, dq, loss, 60);
    check_gradient("k and v", b.kv, dkv, loss, 60);
}

TEST(AttentionBlocks, who_sees_no_key_gets_nothing) {
    const Blocks b;
    const AttentionOut out = b.of(b.spec_of(1, 0.4), b.keys_of(1));  // keys 0, 1 and 7 to 12
    Tensor dq = b.e.like(b.q), dkv = b.e.like(b.keys_of(1));
    const ConstTensor keys = b.keys_of(1);
    attention_backward(b.e, b.spec_of(1, 0.4), {{dq, 0}, {dkv, 0}, {dkv, Blocks::G * Blocks::K}}, b.d_o,
                       {ConstTensor(b.q), 0}, {keys, 0}, {keys, Blocks::G * Blocks::K}, b.merged(0.4));
    int blind = 0;
    for (std::int64_t t = 0; t < Blocks::Sq * Blocks::B; ++t) {
        const bool sees = b.starts[static_cast<std::size_t>(t)] <= 12;
        blind += !sees;
        for (std::int64_t h = 0; h < Blocks::H; ++h) {
            const double lse = out.lse.ptr<double>()[(t % Blocks::B * Blocks::H + h) * Blocks::Sq + t / Blocks::B];
            EXPECT_EQ(std::isfinite(lse), sees);
            EXPECT_EQ(lse == -infinity, !sees);
        }
        for (std::int64_t i = 0; i < Blocks::H * Blocks::K && !sees; ++i) {
            EXPECT_EQ(out.o.ptr<double>()[t * Blocks::H * Blocks::K + i], 0);
            EXPECT_EQ(dq.ptr<double>()[t * Blocks::H * Blocks::K + i], 0);
        }
    }
    EXPECT_GT(blind, 64 * Blocks::B);  // among them a whole tile of queries
    EXPECT_LT(blind, Blocks::Sq * Blocks::B);
    for (const double x : values(dkv)) EXPECT_TRUE(std::isfinite(x));
}

TEST(AttentionBlocks, a_part_of_the_queries_is_merged_in_its_place) {
    World w;
    const Exec& e = w.ctx.temp;
    constexpr std::int64_t B = 2, S = 5, H = 2, K = 3;
    const AttentionOut all{w.random(DType::f32, {S * B, H * K}), w.random(DType::f32, {B, H, S})};
    const std::vector<double> o = values(all.o), lse = values(all.lse);
    const AttentionOut part{w.random(DType::bf16, {2 * B, H * K}), w.random(DType::f32, {B, H, 2})};
    merge_attention(e, all, part, 2);
    for (std::int64_t t = 0; t < S * B; ++t)
        for (std::int64_t h = 0; h < H; ++h) {
            const std::int64_t s = t / B, b = t % B;
            const bool merged = s >= 2 && s < 4;
            const double before = lse[static_cast<std::size_t>((b * H + h) * S + s)],
                         other = merged ? part.lse.ptr<float>()[(b * H + h) * 2 + s - 2] : -infinity,
                         after = std::log(std::exp(before) + std::exp(other));
            EXPECT_NEAR(all.lse.ptr<float>()[(b * H + h) * S + s], after, 1e-6);
            for (std::int64_t d = h * K; d < (h + 1) * K; ++d) {
                const double more = merged ? static_cast<float>(part.o.ptr<bf16_t>()[(t - 2 * B) * H * K + d]) : 0;
                EXPECT_NEAR(all.o.ptr<float>()[t * H * K + d],
                            std::exp(before - after) * o[static_cast<std::size_t>(t * H * K + d)] +
                                std::exp(other - after) * more,
                            1e-6);
            }
        }
}

TEST(Convert, a_sum_takes_other_dtypes) {
    World w;
    Tensor sum = w.random(DType::f32, {100}), wide = w.random(DType::f64, {100});
    const Tensor narrow = w.random(DType::bf16, {100});
    const std::vector<double> before = values(sum), more = values(narrow), wide_before = values(wide);
    add_to(w.ctx.temp, sum, narrow);
    add_to(w.ctx.temp, wide, sum);
    for (std::size_t i = 0; i < before.size(); ++i) {
        const float expected = static_cast<float>(before[i]) + static_cast<float>(more[i]);
        EXPECT_EQ(values(sum)[i], expected);
        EXPECT_EQ(values(wide)[i], wide_before[i] + expected);
    }
}

}  // namespace
}  // namespace tera::test
