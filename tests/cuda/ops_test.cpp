// Every op on the GPU against its CPU twin, per dtype, sizes odd and even, sentinels around what is written.
#include <array>

#include "cuda/cuda_ops.h"
#include "ops/activation.h"
#include "ops/beside.h"
#include "ops/convert.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/init.h"
#include "ops/linear.h"
#include "ops/masked_sum.h"
#include "ops/norm.h"
#include "ops/residual.h"
#include "ops/rope.h"

namespace tera::test {
namespace {

using namespace ops;

class CudaOps : public CudaOpsTest {};
INSTANTIATE_TEST_SUITE_P(Types, CudaOps, all_floats(), name_of_type);

TEST_P(CudaOps, linear) {
    for (auto [T, N, K] : {std::array<std::int64_t, 3>{64, 128, 96},
                           {33, 40, 24},
                           {8, 1000, 136},
                           {10, 37, 19},
                           {65, 129, 257},
                           {1, 7, 3}}) {
        Tensor x = w_.random(GetParam(), {T, K}), w = w_.random(GetParam(), {N, K}), b = w_.random(GetParam(), {N}),
               dy = w_.random(GetParam(), {T, N}), dw = w_.random(acc_dtype(GetParam()), {N, K}),
               db = w_.random(acc_dtype(GetParam()), {N});
        Tensor gx = gpu().up(x), gw = gpu().up(w), gb = gpu().up(b), gdy = gpu().up(dy), gdw = gpu().up(dw),
               gdb = gpu().up(db);
        const Exec &c = w_.ctx.temp, &g = gpu().ctx.temp;
        expect_close("y", linear(g, gx, gw, gb), linear(c, x, w, b));
        expect_close("y without bias", linear(g, gx, gw), linear(c, x, w));
        expect_close("dx", linear_dgrad(g, gdy, gw), linear_dgrad(c, dy, w));
        linear_wgrad(g, gdw, gdy, gx);
        linear_wgrad(c, dw, dy, x);
        expect_close("dw", gdw, dw);
        bias_grad(g, gdb, gdy);
        bias_grad(c, db, dy);
        expect_close("db", gdb, db);
        linear_wgrad(g, gdw, gdy, gx, gdb);
        linear_wgrad(c, dw, dy, x, db);
        expect_close("dw with db", gdw, dw);
        expect_close("db with dw", gdb, db);
        linear_wgrad(g, gdw, gdy, gx, {}, Before::nothing);
        linear_wgrad(c, dw, dy, x, {}, Before::nothing);
        expect_close("dw in place of what was there", gdw, dw);
    }
}

// --main-grads-dtype bf16.
TEST_P(CudaOps, linear_gradients_kept_in_the_type_of_weights) {
    for (auto [T, N, K] : {std::array<std::int64_t, 3>{64, 128, 96}, {33, 40, 24}, {10, 37, 19}}) {
        Tensor x = w_.random(GetParam(), {T, K}), dy = w_.random(GetParam(), {T, N}),
               dw = w_.random(GetParam(), {N, K});
        Tensor gx = gpu().up(x), gdy = gpu().up(dy), gdw = gpu().up(dw);
        for (const Before before : {Before::sum, Before::nothing}) {
            linear_wgrad(gpu().ctx.temp, gdw, gdy, gx, {}, before);
            linear_wgrad(w_.ctx.temp, dw, dy, x, {}, before);
            expect_close("dw", gdw, dw);
        }
    }
}

TEST_P(CudaOps, products_with_more_in_them) {
    std::vector<std::int64_t> samples{3, 1LL << 41};
    auto* gs = gpu().up(samples);
    for (auto [T, N, K] : {std::array<std::int64_t, 3>{64, 128, 96}, {34, 40, 24}, {10, 37, 19}})
        for (bool with_bias : {false, true}) {
            Tensor x = w_.random(GetParam(), {T, K}), w = w_.random(GetParam(), {N, K}), b = w_.random(GetParam(), {N}),
                   stream = w_.random(GetParam(), {T, N});
            Tensor gx = gpu().up(x), gw = gpu().up(w), gb = gpu().up(b), gstream = gpu().up(stream);
            ConstTensor bias, gbias;
            if (with_bias) bias = b, gbias = gb;
            const Exec &c = w_.ctx.temp, &g = gpu().ctx.temp;
            for (double p : {0.0, 0.3})
                expect_close("into the residual stream",
                             linear_residual(g, gx, gw, gbias, {gstream, {p, {5, 6, 7}, 2, gs}}),
                             linear_residual(c, x, w, bias, {stream, {p, {5, 6, 7}, 2, samples.data()}}));
            EXPECT_EQ(gpu().down(gstream), values(stream)) << "the stream itself was written";
            for (auto kind : {ActivationKind::gelu_tanh, ActivationKind::gelu_erf, ActivationKind::swiglu}) {
                if (is_gated(kind) && N % 2) continue;
                Activated on_gpu = linear_activation(g, g, kind, gx, gw, gbias),
                          on_cpu = linear_activation(c, c, kind, x, w, bias);
                expect_close("h", on_gpu.h, on_cpu.h);
                expect_close("a", on_gpu.a, on_cpu.a);
            }
        }
}

TEST_P(CudaOps, a_search_for_the_fastest_product_leaves_no_trace) {
    // Large enough to be searched; the weight gradient is added to, and what is added to must be intact.
    if (GetParam() == DType::f64) GTEST_SKIP() << "slow on the CPU";
    std::int64_t T = 1024, N = 1040, K = 1008;
    Tensor x = w_.random(GetParam(), {T, K}), w = w_.random(GetParam(), {N, K}), dy = w_.random(GetParam(), {T, N}),
           dw = w_.random(DType::f32, {N, K}, 30), stream = w_.random(GetParam(), {T, N}, 30),
           db = w_.random(DType::f32, {N}, 30);
    Tensor gx = gpu().up(x), gw = gpu().up(w), gdy = gpu().up(dy), gdw = gpu().up(dw), gstream = gpu().up(stream),
           gdb = gpu().up(db);
    const Exec &c = w_.ctx.temp, &g = gpu().ctx.temp;
    for (int turn = 0; turn < 2; ++turn) {
        linear_wgrad(g, gdw, gdy, gx, gdb);
        linear_wgrad(c, dw, dy, x, db);
        expect_close("dw", gdw, dw);
        expect_close("db", gdb, db);
        expect_close("dx", linear_dgrad(g, gdy, gw), linear_dgrad(c, dy, w));
        expect_close("stream", linear_residual(g, gx, gw, {}, {gstream}), linear_residual(c, x, w, {}, {stream}));
        Activated up = linear_activation(g, g, ActivationKind::gelu_tanh, gx, gw, {}),
                  expected = linear_activation(c, c, ActivationKind::gelu_tanh, x, w, {});
        expect_close("h", up.h, expected.h);
        expect_close("a", up.a, expected.a);
    }
}

TEST_P(CudaOps, products_beside_what_moves_memory) {
    if (GetParam() == DType::f64) GTEST_SKIP() << "slow on the CPU";
    const std::int64_t T = 4096, N = 2048, K = 256;  // enough for them to run side by side
    gpu().temp.set_fence({});  // looking at fences waits for all streams, and would hide a wait that is missing
    const Exec &c = w_.ctx.temp, &g = gpu().ctx.temp;
    Tensor x = w_.random(GetParam(), {T, K}), dy = w_.random(GetParam(), {T, N}), h = w_.random(GetParam(), {T, 2 * N}),
           dw = w_.random(DType::f32, {N, K}), db = w_.random(DType::f32, {2 * N});
    Tensor gx = gpu().up(x), gdy = gpu().up(dy), gh = gpu().up(h), gdw = gpu().up(dw), gdb = gpu().up(db),
           gda = gpu().ctx.keep.like(gdy);
    for (int turn = 0; turn < 3; ++turn) {
        Tensor da = w_.random(GetParam(), {T, N}), new_da = gpu().up(da), gdh;
        copy(g, gda, new_da);  // what comes before is done when the mover reads it
        product_beside(
            g, [&] { linear_wgrad(g, gdw, gdy, gx); }, 2 * gh.bytes() + gda.bytes(),
            [&] { gdh = activation_backward(g, ActivationKind::swiglu, gda, gh, gdb); });
        bias_grad(g, gdb, gdh);  // and what it wrote is there for what follows
        fill_zero(g, gda);
        linear_wgrad(c, dw, dy, x);
        Tensor dh = activation_backward(c, ActivationKind::swiglu, da, h, db);
        bias_grad(c, db, dh);
        expect_close("dw", gdw, dw);
        expect_close("dh", gdh, dh);
        expect_close("db", gdb, db, 2);
    }
}

TEST_P(CudaOps, column_sums) {
    for (auto [T, N] : {std::array<std::int64_t, 2>{1, 8}, {33, 40}, {5000, 264}, {4133, 37}, {64, 3000}}) {
        Tensor dy = w_.random(GetParam(), {T, N}), db = w_.random(acc_dtype(GetParam()), {N});
        Tensor gdy = gpu().up(dy), gdb = gpu().up(db), again = gpu().up(db);
        bias_grad(gpu().ctx.temp, gdb, gdy);
        bias_grad(gpu().ctx.temp, again, gdy);
        bias_grad(w_.ctx.temp, db, dy);
        expect_close(cat("db ", T, " ", N), gdb, db);
        EXPECT_EQ(gpu().down(gdb), gpu().down(again)) << "not the same bits twice";
    }
}

TEST_P(CudaOps, norms) {
    for (bool rms : {false, true})
        for (auto [rows, n] : {std::array<std::int64_t, 2>{70, 512},
                               {5, 33},
                               {1703, 2304},
                               {3, 9000},
                               {7001, 96},
                               {9, 4096},
                               {5, 8192},
                               {2, 16384},
                               {3, 5003}}) {
            NormSpec spec{.rms = rms, .one_plus = rows == 5, .eps = 1e-5};
            DType acc = acc_dtype(GetParam());
            Tensor x = w_.random(GetParam(), {rows, n}), w = w_.random(GetParam(), {n}), b = w_.random(GetParam(), {n}),
                   dy = w_.random(GetParam(), {rows, n}), dx = w_.random(GetParam(), {rows, n}),
                   dw = w_.random(acc, {n}), db = w_.random(acc, {n}), sum = w_.random(acc, {n});
            Tensor gx = gpu().up(x), gw = gpu().up(w), gb = gpu().up(b), gdy = gpu().up(dy), gdx = gpu().up(dx),
                   gdw = gpu().up(dw), gdb = gpu().up(db), gsum = gpu().up(sum);
            bool with_sum = rows % 2 == 1;
            const Exec &c = w_.ctx.temp, &g = gpu().ctx.temp;
            NormStats cs, gs;
            expect_close("y", norm(g, spec, gx, gw, rms ? ConstTensor{} : ConstTensor(gb), gs),
                         norm(c, spec, x, w, rms ? ConstTensor{} : ConstTensor(b), cs));
            norm_backward(g, spec, {gdx, gdw, rms ? Tensor{} : gdb, with_sum ? gsum : Tensor{}}, gdy, gx, gw, gs);
            norm_backward(c, spec, {dx, dw, rms ? Tensor{} : db, with_sum ? sum : Tensor{}}, dy, x, w, cs);
            expect_close("dx", gdx, dx);
            expect_close("dw", gdw, dw);
            expect_close("db", gdb, db);
            expect_close("sum of dx as it came", gsum, sum);
        }
}

TEST_P(CudaOps, head_norm) {
    for (bool rms : {false, true}) {
        NormSpec spec{.rms = rms, .one_plus = false, .eps = 1e-5};
        HeadCounts counts{4, 2, rms ? 128 : 20};
        std::int64_t K = counts.head_dim, T = 37;
        DType acc = acc_dtype(GetParam());
        Tensor qkv = w_.random(GetParam(), {T, 8 * K}), wq = w_.random(GetParam(), {K}),
               wk = w_.random(GetParam(), {K}), bq = w_.random(GetParam(), {K}), bk = w_.random(GetParam(), {K}),
               d = w_.random(GetParam(), {T, 8 * K});
        HeadNormGrads cg{w_.random(acc, {K}), rms ? Tensor{} : w_.random(acc, {K}), w_.random(acc, {K}),
                         rms ? Tensor{} : w_.random(acc, {K})};
        HeadNormGrads gg{gpu().up(cg.dwq), rms ? Tensor{} : gpu().up(cg.dbq), gpu().up(cg.dwk),
                         rms ? Tensor{} : gpu().up(cg.dbk)};
        HeadNormWeights cw{wq, rms ? ConstTensor{} : ConstTensor(bq), wk, rms ? ConstTensor{} : ConstTensor(bk)};
        Tensor gwq = gpu().up(wq), gwk = gpu().up(wk), gbq = gpu().up(bq), gbk = gpu().up(bk), gqkv = gpu().up(qkv),
               gd = gpu().up(d);
        HeadNormWeights gw{gwq, rms ? ConstTensor{} : ConstTensor(gbq), gwk, rms ? ConstTensor{} : ConstTensor(gbk)};
        NormStats cs, gs;
        expect_close("out", head_norm(gpu().ctx.temp, spec, counts, gqkv, gw, gs),
                     head_norm(w_.ctx.temp, spec, counts, qkv, cw, cs));
        head_norm_backward(gpu().ctx.temp, spec, counts, gg, gd, gqkv, gw, gs);
        head_norm_backward(w_.ctx.temp, spec, counts, cg, d, qkv, cw, cs);
        expect_close("d", gd, d);
        expect_close("dwq", gg.dwq, cg.dwq);
        expect_close("dwk", gg.dwk, cg.dwk);
        if (!rms) expect_close("dbq", gg.dbq, cg.dbq), expect_close("dbk", gg.dbk, cg.dbk);
    }
}

TEST_P(CudaOps, activations) {
    for (auto kind : {ActivationKind::gelu_tanh, ActivationKind::gelu_erf, ActivationKind::squared_relu,
                      ActivationKind::swiglu, ActivationKind::geglu})
        for (auto [rows, n] : {std::array<std::int64_t, 2>{40, 256}, {7, 38}, {300, 1040}, {4133, 24}}) {
            Tensor h = w_.random(GetParam(), {rows, n}, 4), gh = gpu().up(h);
            Tensor a = activation(w_.ctx.temp, kind, h), da = w_.random(GetParam(), a.shape), gda = gpu().up(da);
            expect_close("a", activation(gpu().ctx.temp, kind, gh), a);
            Tensor dh = activation_backward(w_.ctx.temp, kind, da, h);
            expect_close("dh", activation_backward(gpu().ctx.temp, kind, gda, gh), dh);
            Tensor without = gpu().up(da), db = w_.random(acc_dtype(GetParam()), {n}), gdb = gpu().up(db);
            bias_grad(w_.ctx.temp, db, dh);
            expect_close("dh", activation_backward_again(gpu().ctx.temp, kind, gda, gh, gdb), dh);
            expect_close("a again", gda, a);
            expect_close("db", gdb, db, 2);
            expect_close("dh", activation_backward_again(gpu().ctx.temp, kind, without, gh, {}), dh);
            Tensor kept = gpu().up(da), db2 = w_.random(acc_dtype(GetParam()), {n}), gdb2 = gpu().up(db2);
            bias_grad(w_.ctx.temp, db2, dh);
            expect_close("dh", activation_backward(gpu().ctx.temp, kind, kept, gh, gdb2), dh);
            expect_close("da stays", kept, da);
            expect_close("db", gdb2, db2, 2);
        }
}

TEST_P(CudaOps, rope) {
    // Heads of 16 with 6 or 8 pairs turned, and of 64 with all: by elements and by sixteen bytes.
    for (auto [K, half] : {std::array<std::int64_t, 2>{16, 6}, {16, 8}, {64, 32}, {13, 6}})
        for (bool interleaved : {false, true}) {
            DType acc = acc_dtype(GetParam());
            Tensor x = w_.random(GetParam(), {31, 6 * K}), cos = w_.random(acc, {50, half}),
                   sin = w_.random(acc, {50, half});
            Tensor gx = gpu().up(x), gcos = gpu().up(cos), gsin = gpu().up(sin);
            auto positions = w_.random_ints(31, 50);
            auto* gp = gpu().up(positions);
            for (bool inverse : {false, true}) {
                rope(w_.ctx.temp, x, {cos, sin, interleaved}, positions.data(), {4, K}, inverse);
                rope(gpu().ctx.temp, gx, {gcos, gsin, interleaved}, gp, {4, K}, inverse);
                expect_close(cat("x ", K, " ", half), gx, x, 2);
            }
        }
}

TEST_P(CudaOps, dropout_add) {
    std::vector<std::int64_t> samples{3, 1LL << 41};
    auto* gs = gpu().up(samples);
    for (auto [rows, n] : {std::array<std::int64_t, 2>{24, 512}, {10, 37}})
        for (double p : {0.0, 0.3}) {
            Tensor x = w_.random(GetParam(), {rows, n}), y = w_.random(GetParam(), {rows, n}),
                   b = w_.random(GetParam(), {n});
            Tensor gx = gpu().up(x), gy = gpu().up(y), gb = gpu().up(b);
            Dropout drop{p, {5, 6, 7}, 2, samples.data()}, gdrop{p, {5, 6, 7}, 2, gs};
            expect_close("out", dropout_add(gpu().ctx.temp, gx, gy, gb, gdrop),
                         dropout_add(w_.ctx.temp, x, y, b, drop));
            if (p > 0)
                expect_close("dy", dropout_backward(gpu().ctx.temp, gx, gdrop), dropout_backward(w_.ctx.temp, x, drop));
        }
}

TEST_P(CudaOps, embedding) {
    for (std::int64_t D : {64, 37, 1024}) {
        Tensor word = w_.random(GetParam(), {50, D}), position = w_.random(GetParam(), {30, D}),
               dx = w_.random(GetParam(), {2100, D}), table = w_.random(acc_dtype(GetParam()), {50, D});
        Tensor gword = gpu().up(word), gposition = gpu().up(position), gdx = gpu().up(dx), gtable = gpu().up(table);
        auto tokens = w_.random_ints(2100, 50), positions = w_.random_ints(2100, 30);
        auto *gt = gpu().up(tokens), *gp = gpu().up(positions);
        expect_close("x", embedding(gpu().ctx.temp, gword, gposition, gt, gp, 2100),
                     embedding(w_.ctx.temp, word, position, tokens.data(), positions.data(), 2100));
        embedding_backward(gpu().ctx.temp, gtable, gdx, gt);
        embedding_backward(w_.ctx.temp, table, dx, tokens.data());
        expect_close("table", gtable, table);
    }
}

TEST_P(CudaOps, embedding_gradients_of_tokens_met_often_and_rarely) {
    // Runs of equal tokens inside a chunk, over several chunks, to the very end; one, two and three digits to sort by.
    for (std::int64_t V : {1, 3, 300, 70000})
        for (std::int64_t T : {1, 64, 65, 5000}) {
            std::int64_t D = V == 300 ? 33 : 16;
            auto tokens = w_.random_ints(T, static_cast<std::int32_t>(V));
            for (std::size_t t = 0; t < tokens.size(); t += 3) tokens[t] = static_cast<std::int32_t>(V - 1);
            auto* gt = gpu().up(tokens);
            Tensor dx = w_.random(GetParam(), {T, D}), gdx = gpu().up(dx);
            Tensor table = w_.random(acc_dtype(GetParam()), {V, D}), gtable = gpu().up(table), again = gpu().up(table);
            embedding_backward(gpu().ctx.temp, gtable, gdx, gt);
            embedding_backward(gpu().ctx.temp, again, gdx, gt);
            embedding_backward(w_.ctx.temp, table, dx, tokens.data());
            expect_close(cat("table ", V, " ", T), gtable, table);
            EXPECT_EQ(gpu().down(gtable), gpu().down(again)) << "not the same bits twice";
        }
}

TEST_P(CudaOps, cross_entropy) {
    DType acc = acc_dtype(GetParam());
    // Kept whole, two rows at a time or one, or in part; more rows than multiprocessors; whole packs or not.
    for (auto [rows, V] : {std::array<std::int64_t, 2>{600, 1000},
                           {600, 333},
                           {140, 30000},
                           {300, 50304},
                           {140, 60000},
                           {140, 70000},
                           {140, 120001},
                           {140, 131072},
                           {140, 151936},
                           {140, 200000}}) {
        // In double: sums over so many in float are off by more than is asked for here.
        Tensor z = w_.random(GetParam(), {rows, V}, 6), loss = w_.zeros(DType::f64, {rows}),
               wide = w_.zeros(DType::f64, {rows, V});
        Tensor gz = gpu().up(z), gloss = gpu().up(w_.zeros(acc, {rows}));
        convert(w_.ctx.temp, wide, z);
        auto labels = w_.random_ints(rows, static_cast<std::int32_t>(V));
        std::vector<float> mask(static_cast<std::size_t>(rows), 1);
        mask[1] = 0;
        mask[2] = 0.5;
        auto* gl = gpu().up(labels);
        auto* gm = gpu().up(mask);
        cross_entropy(w_.ctx.temp, loss, wide, labels.data(), mask.data(), 3);
        cross_entropy(gpu().ctx.temp, gloss, gz, gl, gm, 3);
        EXPECT_LT(worst(gpu().down(gloss), values(loss)), acc == DType::f64 ? 1e-12 : 1e-5);
        // The gradient of the label is by far the largest, so each element is held against its own size.
        const std::vector<double> found = gpu().down(gz), right = values(wide);
        const double least = GetParam() == DType::f16 ? 6e-8 : 1e-30;  // below it f16 has no more numbers
        std::size_t off = 0;
        for (std::size_t i = 0; i < right.size(); ++i)
            off += std::abs(found[i] - right[i]) > cuda_bound(GetParam()) * std::abs(right[i]) + least;
        EXPECT_EQ(off, 0u) << rows << " rows of " << V;
        Tensor sums = w_.zeros(DType::f64, {2}), gsums = gpu().up(sums);
        for (int twice = 0; twice < 2; ++twice) {
            add_masked_sum(w_.ctx.temp, sums, loss, mask.data());
            add_masked_sum(gpu().ctx.temp, gsums, gloss, gm);
        }
        std::vector<double> a = values(sums), b = gpu().down(gsums);
        EXPECT_NEAR(a[0], b[0], (acc == DType::f64 ? 1e-12 : 1e-5) * a[0]);
        EXPECT_EQ(a[1], b[1]);
        EXPECT_EQ(a[1], 2 * static_cast<double>(rows) - 3);
        cross_entropy(gpu().ctx.temp, gloss, gpu().up(z), gl, nullptr, 0);
        EXPECT_LT(worst(gpu().down(gloss), values(loss)), acc == DType::f64 ? 1e-12 : 1e-5) << "without gradient";
    }
}

TEST_P(CudaOps, initial_values_are_the_same_bits) {
    Tensor a = w_.zeros(GetParam(), {100003}), g = gpu().up(a);
    for (bool normal : {true, false}) {
        fill_random(w_.ctx.temp, a, {normal, 0.02, 1234, 99});
        fill_random(gpu().ctx.temp, g, {normal, 0.02, 1234, 99});
        EXPECT_EQ(gpu().down(g), values(a));
    }
    fill_constant(gpu().ctx.temp, g, 0.5);
    EXPECT_EQ(gpu().down(g), std::vector<double>(100003, 0.5));
}

}  // namespace
}  // namespace tera::test
