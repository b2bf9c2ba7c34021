// Ranks in a ring attend as one rank with all keys does.
#include "nn/ring_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "comm/thread_comm.h"
#include "ops/convert.h"
#include "support/world.h"

namespace tera::test {
namespace {

struct Case {
    int ranks;
    bool documents;
    double dropout;
    DType dtype;
    double bound;  ///< relative to the largest of the tensor
};
void PrintTo(const Case& c, std::ostream* out) {
    *out << c.ranks << " ranks " << name_of(c.dtype) << (c.documents ? " documents" : "") << " dropout " << c.dropout;
}

/// One rank with everything: in f64, of the same values.
struct Whole {
    static constexpr std::int64_t B = 2, H = 4, G = 2, K = 6, width = (H + 2 * G) * K;
    std::int64_t S;
    World w;
    Tensor qkv, d_o, dqkv;
    std::vector<std::int32_t> starts;
    std::vector<std::int64_t> samples{5, 1LL << 40};
    ops::AttentionOut out;
    ops::AttentionSpec spec;

    explicit Whole(const Case& c) : S(8 * c.ranks) {
        qkv = rounded(c.dtype, {S * B, width});
        d_o = rounded(c.dtype, {S * B, H * K});
        for (std::int64_t t = 0; t < S * B; ++t) {  // documents end at all kinds of places, also within a chunk
            const std::int64_t s = t / B, length = 7 + 6 * (t % B);
            starts.push_back(static_cast<std::int32_t>(s / length * length));
        }
        spec = {.B = B, .Sq = S, .Sk = S, .H = H, .G = G, .K = K, .scale = 0.4};
        if (c.documents) spec.doc_start = starts.data();
        spec.dropout = c.dropout, spec.site = {1, 2, 3}, spec.sample = samples.data();
        spec.whole = {.head = 4, .length = S};
        const Exec& e = w.ctx.temp;
        const ConstTensor in = qkv;
        out = ops::attention(e, spec, {in, 0}, {in, H * K}, {in, (H + G) * K});
        dqkv = w.zeros(DType::f64, qkv.shape);
        ops::attention_backward(e, spec, {{dqkv, 0}, {dqkv, H * K}, {dqkv, (H + G) * K}}, d_o, {in, 0}, {in, H * K},
                                {in, (H + G) * K}, out);
    }
    Tensor rounded(DType dtype, Shape shape) {
        Tensor wide = w.zeros(DType::f64, shape);
        ops::convert(w.ctx.temp, wide, w.random(dtype, shape));
        return wide;
    }
};

/// The rows of a rank's two chunks.
Tensor rows_of(const Exec& e, ConstTensor whole, const ops::SequencePiece& piece, DType dtype) {
    constexpr std::int64_t B = Whole::B;
    const std::int64_t chunk = piece.run * B;
    Tensor rows = e.tensor(dtype, {2 * chunk, whole.cols()});
    ops::convert(e, rows.slice(0, chunk), whole.slice(piece.first * B, chunk));
    ops::convert(e, rows.slice(chunk, chunk), whole.slice(piece.second * B, chunk));
    return rows;
}

class RingAttentionOf : public testing::TestWithParam<Case> {};

TEST_P(RingAttentionOf, ranks_is_that_of_one) {
    const Case& c = GetParam();
    const Whole whole(c);
    std::mutex mutex;
    run_on_threads(c.ranks, [&](Comm& comm) {
        World w(1);
        const Exec& e = w.ctx.temp;
        const CpRegion cp(comm, CpComm::ring, Engine());
        const std::int64_t S = whole.S / c.ranks;
        ops::AttentionSpec own = whole.spec;
        own.Sq = own.Sk = S;
        const ops::SequencePiece piece = own.whole.query = own.whole.key = zigzag_piece(S, comm.rank(), c.ranks);
        std::vector<std::int32_t> starts;
        for (std::int64_t t = 0; t < S * Whole::B; ++t)
            starts.push_back(whole.starts[static_cast<std::size_t>(piece.at(t / Whole::B) * Whole::B + t % Whole::B)]);
        if (c.documents) own.doc_start = starts.data();
        const Tensor qkv = rows_of(e, whole.qkv, piece, c.dtype), d_o = rows_of(e, whole.d_o, piece, c.dtype);
        const RingAttention ring(cp, own);
        const ops::AttentionOut out = ring.forward(e, w.ctx.keep, qkv);
        Tensor dqkv = e.like(qkv);
        const std::size_t used = w.temp_arena.used();
        ring.backward(e, dqkv, d_o, qkv, out);
        EXPECT_EQ(w.temp_arena.used(), used);
        const std::lock_guard lock(mutex);
        EXPECT_LT(worst(values(out.o), values(rows_of(e, whole.out.o, piece, DType::f64))), c.bound);
        EXPECT_LT(worst(values(dqkv), values(rows_of(e, whole.dqkv, piece, DType::f64))), c.bound);
    });
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, RingAttentionOf,
    testing::Values(Case{2, false, 0, DType::f64, 1e-13}, Case{3, false, 0.3, DType::f64, 1e-13},
                    Case{4, true, 0, DType::f64, 1e-13}, Case{4, true, 0.3, DType::f64, 1e-13},
                    Case{5, true, 0.3, DType::f32, 2e-6},
                    // One rounding of each turn's part, and one of their sum: the number of turns does not add up.
                    Case{2, false, 0, DType::bf16, 0x1p-7}, Case{8, true, 0, DType::bf16, 0x1p-7}));

TEST(RingAttentionMemory, is_of_two_blocks_however_many_ranks) {
    const auto peak = [](int ranks) {
        Arena keep(Arena::Kind::counting), temp(Arena::Kind::counting);
        ThreadPool pool(1);
        const Exec k{Device::cpu, &keep, &pool}, e{Device::cpu, &temp, &pool};
        const std::unique_ptr<Comm> comm = make_paper_comm(1, ranks);
        const CpRegion cp(*comm, CpComm::ring, Engine());
        const RingAttention ring(cp, {.B = 2, .Sq = 64, .Sk = 64, .H = 4, .G = 2, .K = 8, .scale = 1});
        const ConstTensor qkv = k.tensor(DType::bf16, {128, 64});
        const ops::AttentionOut out = ring.forward(e, k, qkv);
        const std::size_t forward = temp.peak();
        ring.backward(e, k.like(qkv), out.o, qkv, out);
        // Forward: the block here and that on its way. Backward: again, and in f32 two of gradients.
        const double block = 128 * 32 * 2;
        EXPECT_EQ(comm->traffic().calls, 3 * ranks - 2);
        EXPECT_EQ(comm->traffic().bytes, (ranks - 1) * block + (ranks - 1) * block + ranks * 2 * block);
        return std::pair(forward, temp.peak());
    };
    EXPECT_EQ(peak(2), peak(8));
}

}  // namespace
}  // namespace tera::test
