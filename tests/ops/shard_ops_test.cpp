// Ops on a rank's piece of a tensor: put together, the pieces are what the op makes of the whole.
#include <gtest/gtest.h>

#include "ops/attention.h"
#include "ops/convert.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/init.h"
#include "ops/residual.h"
#include "ops/vocab_cross_entropy.h"
#include "support/world.h"

namespace tera::test {
namespace {

using namespace ops;

TEST(ShardOps, random_values_of_runs_are_those_of_the_whole) {
    World w;
    const Exec& e = w.ctx.temp;
    for (const bool normal : {true, false}) {
        const RandomFill fill{normal, 0.5, 7, 11};
        Tensor whole = e.tensor(DType::f32, {6, 13});
        fill_random(e, whole, fill);
        RandomFill rows = fill;
        rows.first = 2 * 13;
        Tensor middle = e.tensor(DType::f32, {3, 13});
        fill_random(e, middle, rows);
        EXPECT_TRUE(same_bits(middle, whole.slice(2, 3)));
        RandomFill columns = fill;
        columns.first = 5, columns.run = 4, columns.stride = 13;
        Tensor cut = e.tensor(DType::f32, {6, 4}), wanted = e.tensor(DType::f32, {6, 4});
        fill_random(e, cut, columns);
        copy_columns(e, wanted, whole, 5);
        EXPECT_TRUE(same_bits(cut, wanted));
    }
}

TEST(ShardOps, columns_go_and_come_back) {
    World w;
    const Exec& e = w.ctx.temp;
    Tensor whole = w.random(DType::f64, {5, 9}), part = e.tensor(DType::f64, {5, 4}),
           back = w.zeros(DType::f64, {5, 9});
    for (const std::int64_t first : {0, 4}) {
        copy_columns(e, part, whole, first);
        put_columns(e, back, first, part);
    }
    Tensor last = e.tensor(DType::f64, {5, 1});
    copy_columns(e, last, whole, 8);
    put_columns(e, back, 8, last);
    EXPECT_TRUE(same_bits(back, whole));
}

TEST(ShardOps, parts_of_a_table_add_up) {
    World w;
    const Exec& e = w.ctx.temp;
    Tensor table = w.random(DType::f64, {10, 6}), dx = w.random(DType::f64, {31, 6});
    const std::vector<std::int32_t> tokens = w.random_ints(31, 10);
    Tensor whole = embedding(e, table, {}, tokens.data(), nullptr, 31), sum = w.zeros(DType::f64, {31, 6});
    Tensor grad = w.random(DType::f64, {10, 6}), parts = e.like(grad);
    copy(e, parts, grad);
    embedding_backward(e, grad, dx, tokens.data());
    for (const std::int64_t first : {0, 4, 8}) {
        const std::int64_t rows = std::min<std::int64_t>(4, 10 - first);
        add_to(e, sum, embedding_part(e, table.slice(first, rows), {first, 10}, tokens.data(), 31));
        embedding_backward(e, parts.slice(first, rows), dx, tokens.data(), {first, 10});
    }
    EXPECT_TRUE(same_bits(sum, whole));
    EXPECT_TRUE(same_bits(parts, grad));
}

TEST(ShardOps, a_token_beyond_the_table_is_refused) {
    World w;
    Tensor table = w.random(DType::f64, {4, 6});
    const std::int32_t token = 10;
    EXPECT_THROW(embedding_part(w.ctx.temp, table, {4, 10}, &token, 1), Error);
    EXPECT_THROW(embedding_part(w.ctx.temp, table, {8, 10}, &token, 1), Error);
}

TEST(ShardOps, cross_entropy_of_a_cut_vocabulary) {
    World w;
    const Exec& e = w.ctx.temp;
    constexpr std::int64_t n = 7, V = 12, cut = 4;
    Tensor z = w.random(DType::f64, {n, V}, 30), loss = e.tensor(DType::f64, {n});
    const std::vector<std::int32_t> labels = w.random_ints(n, V);
    const std::vector<float> mask = {1, 0, 1, 1, 0.5f, 1, 0};
    std::vector<Tensor> pieces;
    std::vector<VocabStats> stats;
    Tensor top = e.tensor(DType::f64, {n}), sums = w.zeros(DType::f64, {2, n});
    std::fill_n(top.ptr<double>(), n, -1e300);
    for (std::int64_t first = 0; first < V; first += cut) {
        pieces.push_back(e.tensor(DType::f64, {n, cut}));
        copy_columns(e, pieces.back(), z, first);
        Tensor mine = e.like(top);
        vocab_max(e, mine, pieces.back());
        for (std::int64_t i = 0; i < n; ++i)
            top.ptr<double>()[i] = std::max(top.ptr<double>()[i], mine.ptr<double>()[i]);
    }
    for (std::size_t p = 0; p < pieces.size(); ++p) {
        Tensor mine = e.like(sums);
        vocab_sums(e, {top, mine}, pieces[p], {labels.data(), static_cast<std::int64_t>(p) * cut});
        add_to(e, sums, mine);
    }
    Tensor together = w.zeros(DType::f64, {n, V}), loss_of_pieces = e.like(loss);
    for (std::size_t p = 0; p < pieces.size(); ++p) {
        const std::int64_t first = static_cast<std::int64_t>(p) * cut;
        vocab_cross_entropy(e, loss_of_pieces, pieces[p], {top, sums}, {labels.data(), first}, {mask.data(), 0.3});
        put_columns(e, together, first, pieces[p]);
    }
    cross_entropy(e, loss, z, labels.data(), mask.data(), 0.3);
    EXPECT_LT(worst(values(loss_of_pieces), values(loss)), 1e-14);
    EXPECT_LT(worst(values(together), values(z)), 1e-14);
}

TEST(ShardOps, dropout_is_a_function_of_the_place_in_the_sequence) {
    World w;
    const Exec& e = w.ctx.temp;
    constexpr std::int64_t S = 12, B = 2, D = 5;
    const std::vector<std::int64_t> samples = {3, 99};
    Tensor y = w.random(DType::f64, {S * B, D});
    const Dropout whole{0.4, {1, 2, 3}, B, samples.data()};
    const Tensor all = dropout_add(e, {}, y, {}, whole);
    // Rows 4..7 of what holds positions 2..4 and then 8..11: that is, 9, 10 and 11.
    Dropout part = whole;
    part.piece = {.offset = 4, .run = 3, .first = 2, .second = 8};
    const Tensor some = dropout_add(e, {}, y.slice(9 * B, 3 * B), {}, part);
    EXPECT_TRUE(same_bits(some, all.slice(9 * B, 3 * B)));
    part.piece.offset = 1;
    EXPECT_TRUE(same_bits(dropout_add(e, {}, y.slice(3 * B, 2 * B), {}, part), all.slice(3 * B, 2 * B)));
}

TEST(ShardOps, attention_of_some_heads_and_queries) {
    World w;
    const Exec& e = w.ctx.temp;
    constexpr std::int64_t S = 10, B = 2, H = 4, K = 6;
    const std::vector<std::int64_t> samples = {3, 99};
    Tensor q = w.random(DType::f64, {S * B, H * K}), k = w.random(DType::f64, {S * B, H * K}),
           v = w.random(DType::f64, {S * B, H * K});
    AttentionSpec spec{.B = B, .Sq = S, .Sk = S, .H = H, .G = H, .K = K, .scale = 0.4};
    spec.dropout = 0.3, spec.site = {1, 2, 3}, spec.sample = samples.data();
    const AttentionOut all = attention(e, spec, {q, 0}, {k, 0}, {v, 0});
    // Heads 2 and 3, queries 4 to 6, which see the keys up to their own.
    AttentionSpec part = spec;
    part.Sq = 3, part.Sk = 7, part.H = part.G = 2;
    part.whole = {.head = 2, .query = {.first = 4}, .length = S};
    const AttentionOut some = attention(e, part, {q.slice(4 * B, 3 * B), 2 * K}, {k, 2 * K}, {v, 2 * K});
    Tensor wanted = e.tensor(DType::f64, {3 * B, 2 * K});
    copy_columns(e, wanted, all.o.slice(4 * B, 3 * B), 2 * K);
    EXPECT_LT(worst(values(some.o), values(wanted)), 1e-14);
}

}  // namespace
}  // namespace tera::test
