// Attention on the GPU against its CPU twin, whichever kernels do it: those that are chosen, and each kind of our own.
// Rows of heads are held one by one: where a query sees many keys what comes out is small, and beside a largest value
// it would show nothing.
#include "ops/attention.h"

#include <cmath>
#include <functional>

#include "cuda/cuda_ops.h"
#include "ops/attention_cudnn.h"
#include "ops/attention_mma.h"
#include "ops/attention_sm90.h"
#include "ops/convert.h"

namespace tera::test {
namespace {

using namespace ops;

struct Case {
    std::int64_t B, Sq, Sk, H, G, K;
    bool causal = true, documents = false;
    double dropout = 0;
    std::int64_t stretch = 1;  ///< of documents

    std::string name() const {
        return cat("S ", B, " x ", Sq, "/", Sk, " heads ", H, "/", G, " K ", K, causal ? " causal" : "",
                   documents ? " documents" : "", dropout > 0 ? " dropout" : "");
    }
    AttentionSpec spec() const {
        AttentionSpec s{
            .B = B, .Sq = Sq, .Sk = Sk, .H = H, .G = G, .K = K, .scale = 1 / std::sqrt(static_cast<double>(K))};
        s.causal = causal, s.dropout = dropout, s.site = {1, 2, 1};
        return s;
    }
    /// For each query the first key of its document; some are shorter than a tile, and one than a row of sixteen.
    std::vector<std::int32_t> starts() const {
        std::vector<std::int32_t> result(static_cast<std::size_t>(Sq * B));
        for (std::int64_t b = 0; b < B; ++b) {
            const std::int64_t lengths[] = {20 + b, 1, 64 * stretch, 130 * stretch, 7 * stretch, 31 * stretch};
            std::int64_t start = 0, which = 0;
            for (std::int64_t key = 0; key < Sk; ++key) {
                if (key == start + lengths[which]) start = key, which = (which + 1) % 6;
                if (const std::int64_t q = key - (Sk - Sq); q >= 0)
                    result[static_cast<std::size_t>(q * B + b)] = static_cast<std::int32_t>(start);
            }
        }
        return result;
    }
};

using Head = HeadRows<ConstTensor>;
struct Kernels {
    std::function<bool(const Exec&, const AttentionSpec&, AttentionOut&, Head, Head, Head)> forward;
    std::function<bool(const Exec&, const AttentionSpec&, const AttentionGrads&, ConstTensor, Head, Head, Head,
                       const AttentionOut&)>
        backward;
};
const Kernels chosen{[](const Exec& e, const AttentionSpec& s, AttentionOut& out, Head q, Head k, Head v) {
                         out = attention(e, s, q, k, v);
                         return true;
                     },
                     [](const Exec& e, const AttentionSpec& s, const AttentionGrads& grads, ConstTensor d_o, Head q,
                        Head k, Head v, const AttentionOut& out) {
                         attention_backward(e, s, grads, d_o, q, k, v, out);
                         return true;
                     }};
const Kernels library{cuda::cudnn_attention, cuda::cudnn_attention_backward};
const Kernels warp_groups{cuda::sm90_attention, cuda::sm90_attention_backward};
const Kernels warps{cuda::mma_attention, cuda::mma_attention_backward};

class CudaAttention : public CudaOpsTest {
  protected:
    bool in_sixteen_bits() const { return size_of(GetParam()) == 2; }

    /// Both passes on both; each row of K elements is as near as roundings allow, beside its own size and not less than
    /// the usual one: of a query that sees one key the gradient is what is left of two equal numbers.
    void compare(const Case& c, const Kernels& kernels) {
        SCOPED_TRACE(c.name());
        const std::int64_t width = (c.H + 2 * c.G) * c.K, kv = c.G * c.K;
        const Tensor q = w_.random(GetParam(), {c.Sq * c.B, width}, 3),
                     d_o = w_.random(GetParam(), {c.Sq * c.B, c.H * c.K});
        const Tensor kvs = w_.random(GetParam(), {c.Sk * c.B, 2 * kv});
        const Tensor gq = gpu().up(q), gkv = gpu().up(kvs), gdo = gpu().up(d_o);
        const std::vector<std::int32_t> starts = c.starts();
        const std::vector<std::int64_t> samples{4, 5};
        AttentionSpec spec = c.spec(), gspec = spec;
        spec.sample = samples.data(), gspec.sample = gpu().up(samples);
        if (c.documents) spec.doc_start = starts.data(), see_documents(gspec, starts);
        const Exec &on_cpu = w_.ctx.temp, &on_gpu = gpu().ctx.temp;
        const ConstTensor cq = q, ck = kvs, hq = gq, hk = gkv;
        const AttentionOut out = attention(on_cpu, spec, {cq, 0}, {ck, 0}, {ck, kv});
        AttentionOut gout{gpu().up(w_.zeros(GetParam(), out.o.shape)),
                          gpu().up(w_.zeros(out.lse.dtype, out.lse.shape))};
        ASSERT_TRUE(kernels.forward(on_gpu, gspec, gout, {hq, 0}, {hk, 0}, {hk, kv}));
        expect_rows("o", gout.o, out.o, c.K);
        expect_close("lse", gout.lse, out.lse);
        const Tensor dq = w_.zeros(GetParam(), q.shape), dkv = w_.zeros(GetParam(), kvs.shape);
        const Tensor gdq = gpu().up(dq), gdkv = gpu().up(dkv);
        attention_backward(on_cpu, spec, {{dq, 0}, {dkv, 0}, {dkv, kv}}, d_o, {cq, 0}, {ck, 0}, {ck, kv}, out);
        // Both from the same output: where a query sees little but one key its gradient is the difference of two nearly
        // equal numbers, and would show how two outputs were rounded.
        gout = {gpu().up(out.o), gpu().up(out.lse)};
        ASSERT_TRUE(
            kernels.backward(on_gpu, gspec, {{gdq, 0}, {gdkv, 0}, {gdkv, kv}}, gdo, {hq, 0}, {hk, 0}, {hk, kv}, gout));
        expect_rows("dq", gdq, dq, c.K);
        expect_rows("dk and dv", gdkv, dkv, c.K);
    }

    /// On the GPU; where they are whole sequences as a list too.
    void see_documents(AttentionSpec& spec, const std::vector<std::int32_t>& starts) {
        spec.doc_start = gpu().up(starts);
        if (spec.Sq != spec.Sk) return;
        std::vector<std::int32_t> rows;
        spec.documents = list_documents(starts.data(), spec.Sq, spec.B, rows);
        if (spec.documents.count > 0) spec.documents.rows = gpu().up(rows);
    }

    /// Two kinds of kernels on the same rows. Gradients stand beside each other as what they are of does, or apart.
    void compare_on_gpu(const Case& c, const Kernels& reference, const Kernels& other, bool apart = false) {
        SCOPED_TRACE(cat(c.name(), apart ? ", gradients apart" : ""));
        const Exec& e = gpu().ctx.temp;
        const std::int64_t width = (c.H + 2 * c.G) * c.K, rows = c.Sq * c.B;
        const Tensor qkv = gpu().up(w_.random(GetParam(), {rows, width}, 3)),
                     d_o = gpu().up(w_.random(GetParam(), {rows, c.H * c.K}));
        const std::vector<std::int64_t> samples{4, 5};
        AttentionSpec spec = c.spec();
        spec.sample = gpu().up(samples);
        if (c.documents) see_documents(spec, c.starts());
        const auto zeros = [&](DType dtype, Shape shape) { return gpu().up(w_.zeros(dtype, shape)); };
        const ConstTensor in = qkv;
        const Head q{in, 0}, k{in, c.H * c.K}, v{in, (c.H + c.G) * c.K};
        std::vector<std::vector<double>> found;
        AttentionOut given{};  // to both
        for (const Kernels* kernels : {&reference, &other}) {
            AttentionOut out{zeros(GetParam(), {rows, c.H * c.K}), zeros(DType::f32, {c.B, c.H, c.Sq})};
            const std::int64_t of_keys = c.G * c.K;
            std::vector<Tensor> d;
            if (apart)
                for (const std::int64_t columns : {c.H * c.K, of_keys, of_keys})
                    d.push_back(zeros(GetParam(), {rows, columns}));
            else
                d.push_back(zeros(GetParam(), {rows, width}));
            const AttentionGrads grads =
                apart ? AttentionGrads{{d[0], 0}, {d[1], 0}, {d[2], 0}}
                      : AttentionGrads{{d[0], 0}, {d[0], c.H * c.K}, {d[0], c.H * c.K + of_keys}};
            ASSERT_TRUE(kernels->forward(e, spec, out, q, k, v));
            if (found.empty()) given = out;
            ASSERT_TRUE(kernels->backward(e, spec, grads, d_o, q, k, v, given));
            found.push_back(gpu().down(out.o));
            for (const Tensor& t : d) found.push_back(gpu().down(t));
        }
        const std::size_t results = found.size() / 2;
        for (std::size_t i = 0; i < results; ++i)
            expect_rows(cat(i == 0 ? "o" : "gradient ", i).c_str(), found[results + i], found[i], c.K);
    }

    /// All of the others' rows are the same bits, and its own are not.
    void change_one_document(const Case& c) {
        SCOPED_TRACE(c.name());
        const std::int64_t width = (c.H + 2 * c.G) * c.K;
        const std::vector<std::int32_t> starts = c.starts();
        AttentionSpec spec = c.spec();
        see_documents(spec, starts);
        Tensor qkv = w_.random(GetParam(), {c.Sq * c.B, width}, 3),
               d_o = w_.random(GetParam(), {c.Sq * c.B, c.H * c.K});
        const Tensor other_qkv = w_.random(GetParam(), qkv.shape, 3), other_d_o = w_.random(GetParam(), d_o.shape);
        constexpr std::int32_t changed = 21;  // where documents begin in the first sample, among others
        const auto is_changed = [&](std::int64_t row) {
            return row % c.B == 0 && starts[static_cast<std::size_t>(row)] == changed;
        };
        std::vector<std::vector<double>> found;
        for (const bool change : {false, true}) {
            for (std::int64_t row = 0; change && row < c.Sq * c.B; ++row)
                if (is_changed(row)) {
                    ops::copy(w_.ctx.temp, qkv.slice(row, 1), other_qkv.slice(row, 1));
                    ops::copy(w_.ctx.temp, d_o.slice(row, 1), other_d_o.slice(row, 1));
                }
            const ConstTensor in = gpu().up(qkv);
            const Head q{in, 0}, k{in, c.H * c.K}, v{in, (c.H + c.G) * c.K};
            const Tensor d = gpu().up(w_.zeros(GetParam(), qkv.shape));
            const AttentionOut out = attention(gpu().ctx.temp, spec, q, k, v);
            attention_backward(gpu().ctx.temp, spec, {{d, 0}, {d, c.H * c.K}, {d, (c.H + c.G) * c.K}}, gpu().up(d_o), q,
                               k, v, out);
            found.push_back(gpu().down(out.o));
            found.push_back(gpu().down(d));
        }
        for (const std::size_t which : {0u, 1u}) {
            const std::size_t columns = found[which].size() / static_cast<std::size_t>(c.Sq * c.B);
            std::int64_t same = 0, others = 0;
            for (std::int64_t row = 0; row < c.Sq * c.B; ++row) {
                const auto first = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * columns),
                           last = first + static_cast<std::ptrdiff_t>(columns);
                const bool equal = std::equal(found[which].begin() + first, found[which].begin() + last,
                                              found[which + 2].begin() + first);
                EXPECT_TRUE(equal || is_changed(row)) << (which ? "gradients" : "output") << " of row " << row;
                same += equal, others += !is_changed(row);
            }
            EXPECT_LT(others, c.Sq * c.B);
            EXPECT_EQ(same, others) << "what was changed is not seen either";
        }
    }

    void expect_rows(const char* what, ConstTensor on_gpu, ConstTensor on_cpu, std::int64_t K) {
        expect_rows(what, gpu().down(on_gpu), values(on_cpu), K);
    }
    void expect_rows(const char* what, const std::vector<double>& found, const std::vector<double>& expected,
                     std::int64_t K) {
        const auto row_size = [K](const double* x) {
            double sum = 0;
            for (std::int64_t k = 0; k < K; ++k) sum += x[k] * x[k];
            return std::sqrt(sum);
        };
        const std::size_t step = static_cast<std::size_t>(K), rows = expected.size() / step;
        double usual = 0;
        for (const double x : expected) usual += x * x;
        usual = std::sqrt(usual / static_cast<double>(rows));
        double most = 0;
        std::size_t at = 0, bad = 0;
        std::string where;
        for (std::size_t r = 0; r < rows; ++r) {
            std::vector<double> difference(step);
            for (std::size_t k = 0; k < step; ++k) difference[k] = found[r * step + k] - expected[r * step + k];
            const double error = row_size(difference.data()) / std::max(row_size(&expected[r * step]), usual);
            if (!(error <= most)) most = error, at = r;
            if (!(error < cuda_bound(GetParam())) && ++bad <= 5) where += cat(" ", r);
        }
        EXPECT_LT(most, cuda_bound(GetParam()))
            << what << ", row " << at << " of " << rows << "; " << bad << " such rows:" << where;
    }
};
INSTANTIATE_TEST_SUITE_P(Types, CudaAttention, all_floats(), name_of_type);

const std::vector<Case> heads_of_many_kinds = {{2, 128, 128, 4, 2, 64},
                                               {1, 100, 100, 3, 3, 128},
                                               {2, 96, 96, 4, 4, 96, false},
                                               {2, 64, 64, 4, 2, 64, true, true},
                                               {2, 33, 33, 2, 1, 8},
                                               {2, 40, 40, 2, 2, 24, true, false, 0.3},
                                               {1, 5, 37, 2, 2, 64},
                                               {2, 64, 32, 4, 2, 64, false},
                                               {2, 32, 64, 4, 2, 64, false},
                                               // Several tiles of our own kernels, with what cuDNN's cannot do.
                                               {2, 200, 200, 4, 2, 64, true, true, 0.1},
                                               {1, 150, 150, 4, 1, 128, true, true, 0.2},
                                               {2, 131, 131, 3, 3, 96, false, false, 0.1},
                                               {1, 70, 150, 2, 2, 40, true, true, 0.5},
                                               {1, 129, 66, 2, 1, 128, false, false, 0.1},
                                               {1, 65, 65, 2, 2, 64, false, true, 0.3},
                                               {2, 77, 77, 6, 2, 96, true, true, 0.2},
                                               // Wide heads, in smaller tiles.
                                               {1, 75, 75, 4, 2, 160, true, true, 0.1},
                                               {2, 67, 67, 2, 2, 136, false, true},
                                               {1, 131, 131, 3, 1, 192, true, false, 0.2},
                                               {2, 70, 99, 2, 2, 192, true, true},
                                               {2, 97, 97, 4, 1, 256, true, true, 0.1},
                                               {1, 129, 65, 2, 2, 256, false, false, 0.3},
                                               {1, 40, 130, 2, 1, 248, true, false, 0.1},
                                               // Wide heads as cuDNN takes them.
                                               {2, 128, 128, 4, 2, 160},
                                               {1, 100, 100, 2, 2, 192},
                                               {2, 130, 130, 2, 1, 256},
                                               {1, 96, 96, 2, 2, 256, false},
                                               {1, 64, 64, 2, 1, 192, false}};

/// More than a ring of tiles holds, more documents than one, groups of a block that see nothing of a tile, heads that
/// share keys; in sizes that are no multiples of anything.
const std::vector<Case> of_several_tiles = {
    {2, 421, 421, 3, 1, 64, true, true, 0.1},  {1, 421, 421, 3, 3, 64, true, false},
    {1, 317, 505, 2, 1, 64, true, true},       {1, 333, 470, 2, 2, 64, false, false, 0.2},
    {2, 310, 310, 2, 1, 96, true, true, 0.1},  {1, 451, 451, 2, 2, 96, true, false, 0.2},
    {1, 203, 402, 4, 2, 96, true, true},       {1, 402, 203, 2, 1, 96, false, false},
    {2, 299, 299, 2, 1, 128, true, true, 0.1}, {1, 450, 450, 2, 2, 128, true, false},
    {1, 211, 380, 4, 2, 128, true, true, 0.1}, {1, 333, 190, 2, 1, 128, false, false, 0.2}};

TEST_P(CudaAttention, attention_as_chosen) {
    for (const Case& c : heads_of_many_kinds) compare(c, chosen);
}

/// On few multiprocessors each has several items, one after another. Gradients are of one kernel or of two.
TEST_P(CudaAttention, attention_of_warp_groups) {
    if (!in_sixteen_bits() || !gpu().gpu.hopper) GTEST_SKIP() << "these are for 16 bits on a Hopper GPU";
    for (const bool same_bits : {false, true}) {
        SCOPED_TRACE(same_bits ? "two kernels" : "one kernel");
        gpu().gpu.deterministic = same_bits;
        for (const int multiprocessors : {0, 3}) {
            gpu().gpu.product_multiprocessors = multiprocessors;
            for (const Case& c : of_several_tiles) compare(c, warp_groups);
        }
        gpu().gpu.product_multiprocessors = 0;
        for (const Case& c : heads_of_many_kinds)
            if (c.K == 64 || c.K == 96 || c.K == 128) compare(c, warp_groups);
    }
    gpu().gpu.deterministic = false;
}

/// As on GPUs that are not Hopper's.
TEST_P(CudaAttention, attention_of_warps) {
    if (!in_sixteen_bits()) GTEST_SKIP() << "these are for 16 bits";
    for (const Case& c : heads_of_many_kinds) compare(c, warps);
    for (const Case& c : of_several_tiles) compare(c, warps);
}

/// Every multiprocessor has many items, one after another, and groups of a block are at different places: what one of
/// them takes too early shows here, and not in a few tiles. Beside the kernels of warps, which share nothing with
/// these.
TEST_P(CudaAttention, warp_groups_with_many_items) {
    if (!in_sixteen_bits() || !gpu().gpu.hopper) GTEST_SKIP() << "these are for 16 bits on a Hopper GPU";
    if (soft_gpu_forget_written) GTEST_SKIP() << "too much for a GPU in software";
    for (const bool same_bits : {false, true}) {
        gpu().gpu.deterministic = same_bits;
        for (const std::int64_t K : {64, 96, 128})
            for (const bool documents : {false, true})
                for (const double dropout : {0.0, 0.1})
                    compare_on_gpu({2, 2000, 2000, 20, 10, K, true, documents, dropout}, warps, warp_groups);
    }
    gpu().gpu.deterministic = false;
}

/// Many documents, as they are taken in training: by the library, if it is there.
TEST_P(CudaAttention, many_documents_as_chosen) {
    if (!in_sixteen_bits()) GTEST_SKIP() << "these are for 16 bits";
    const bool large = !soft_gpu_forget_written;
    const std::int64_t S = large ? 2000 : 300;
    std::vector<Case> cases;
    for (const std::int64_t K : {64, 96, 128})
        for (const std::int64_t G : {6, 2}) cases.push_back({3, S, S, 6, G, K});
    if (large) cases.push_back({2, 1200, 1200, 4, 1, 72}), cases.push_back({1, 3000, 3000, 2, 2, 120});
    const Kernels& taken = cuda::has_cudnn_attention() && gpu().gpu.hopper ? library : chosen;
    for (Case& c : cases) {
        c.documents = true, c.stretch = large ? 3 : 1;
        std::vector<std::int32_t> rows;
        EXPECT_GT(list_documents(c.starts().data(), c.Sq, c.B, rows).count, 2 * c.B);
        compare_on_gpu(c, warps, taken);
    }
    // What the library cannot: gradients in other places than what they are of, a query that sees what follows, wide
    // heads.
    for (Case c : {Case{2, 300, 300, 4, 4, 64}, Case{2, 300, 300, 4, 2, 128}, Case{2, 512, 512, 4, 4, 128, false},
                   Case{2, 300, 300, 4, 2, 192}}) {
        c.documents = true;
        for (const bool apart : {false, true}) compare_on_gpu(c, warps, chosen, apart);
    }
}

/// What one document holds is nothing to the others, to the bit.
TEST_P(CudaAttention, documents_do_not_see_each_other) {
    for (const std::int64_t G : {4, 2}) change_one_document({2, 200, 200, 4, G, 64, true, true});
}

TEST_P(CudaAttention, heads_that_our_kernels_take) {
    for (std::int64_t K : {8, 64, 96, 100, 128, 136, 160, 192, 256, 264}) {
        const AttentionSpec spec{.B = 1, .Sq = 9, .Sk = 9, .H = 1, .G = 1, .K = K, .scale = 1};
        const ConstTensor qkv = gpu().up(w_.random(GetParam(), {9, K}));
        AttentionOut out{gpu().up(w_.zeros(GetParam(), {9, K})), gpu().up(w_.zeros(acc_dtype(GetParam()), {1, 1, 9}))};
        const auto takes = [&](const Kernels& kernels) {
            return kernels.forward(gpu().ctx.temp, spec, out, {qkv, 0}, {qkv, 0}, {qkv, 0});
        };
        EXPECT_EQ(takes(warps), in_sixteen_bits() && K % 8 == 0 && K <= 256) << K;
        EXPECT_EQ(takes(warp_groups), in_sixteen_bits() && gpu().gpu.hopper && (K == 64 || K == 96 || K == 128)) << K;
    }
}

TEST_P(CudaAttention, heads_that_cudnn_takes) {
    if (!cuda::has_cudnn_attention()) GTEST_SKIP() << "this program was built without cuDNN";
    for (std::int64_t K : {8, 64, 96, 128, 160, 192, 256, 264}) {
        const AttentionSpec spec{.B = 1, .Sq = 128, .Sk = 128, .H = 2, .G = 2, .K = K, .scale = 0.1};
        const Tensor qkv = gpu().up(w_.random(GetParam(), {128, 6 * K})),
                     d = gpu().up(w_.random(GetParam(), qkv.shape)),
                     d_o = gpu().up(w_.random(GetParam(), {128, 2 * K}));
        const ConstTensor in = qkv;
        const AttentionOut out{gpu().up(w_.zeros(GetParam(), {128, 2 * K})),
                               gpu().up(w_.zeros(acc_dtype(GetParam()), {1, 2, 128}))};
        const Exec& exec = gpu().ctx.temp;
        const bool forward = cuda::cudnn_attention(exec, spec, out, {in, 0}, {in, 2 * K}, {in, 4 * K}),
                   backward = cuda::cudnn_attention_backward(exec, spec, {{d, 0}, {d, 2 * K}, {d, 4 * K}}, d_o, {in, 0},
                                                             {in, 2 * K}, {in, 4 * K}, out);
        if (K > 128 && K <= 256 && in_sixteen_bits())  // it depends on the library's version
            std::printf("cuDNN, heads of %d: forward %s, backward %s\n", static_cast<int>(K), forward ? "yes" : "no",
                        backward ? "yes" : "no");
        else
            EXPECT_TRUE(forward == (in_sixteen_bits() && K <= 256) && backward == forward) << K;
    }
}

}  // namespace
}  // namespace tera::test
