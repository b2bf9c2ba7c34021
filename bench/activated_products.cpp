// The products around an MLP's activation with the activation in them, against the library's products (with GELU in
// them forward, as the library has it) and the activation's own kernel, each for a second at a time, in turns, so that
// the clock settles as in a training step; with --seconds 0 their results are compared instead.
//
//   activated_products [--seconds S] [swiglu | gelu] ROWS HIDDEN FFN [[swiglu | gelu] ROWS HIDDEN FFN ...]
#include <cstdio>

#ifdef TERA_SM90
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "core/cuda/check.h"
#include "core/cuda/gpu.h"
#include "core/exec.h"
#include "core/transfer.h"
#include "ops/activated_product.h"
#include "ops/activation.h"
#include "ops/activation_backends.h"
#include "ops/init.h"
#include "ops/linear.h"
#include "ops/linear_backends.h"

namespace {

using namespace tera;
using Clock = std::chrono::steady_clock;

struct Bench {
    Gpu gpu{0};
    ThreadPool pool{1};
    Arena arena{Arena::Kind::real, gpu.memory()};
    Exec exec{Device::cuda, &arena, &pool, &gpu};
    std::uint64_t stream = 0;
    double seconds = 1;

    Tensor random(Shape shape, double scale) {
        Tensor t = exec.tensor(DType::bf16, shape);
        ops::fill_random(exec, t, {.normal = true, .scale = scale, .seed = 1, .stream = ++stream});
        return t;
    }
    double ms(const std::function<void()>& call) {
        call();
        gpu.synchronize();
        const auto begin = Clock::now();
        const auto since = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
        int calls = 0;
        while (since() < seconds) {
            for (int i = 0; i < 8; ++i) call();
            gpu.synchronize();
            calls += 8;
        }
        return 1e3 * since() / calls;
    }
    std::vector<float> down(const Tensor& t) {
        std::vector<std::uint16_t> bits(static_cast<std::size_t>(t.numel()));
        copy_to_host(exec, reinterpret_cast<std::byte*>(bits.data()), t);
        gpu.synchronize();
        std::vector<float> out(bits.size());
        for (std::size_t i = 0; i < bits.size(); ++i) {
            const std::uint32_t word = std::uint32_t{bits[i]} << 16;
            std::memcpy(&out[i], &word, 4);
        }
        return out;
    }
    /// Largest difference over the largest value, and how many differ at all.
    void compare(const char* what, const Tensor& a, const Tensor& b) {
        if (seconds > 0) return;
        const std::vector<float> x = down(a), y = down(b);
        double most = 0, largest = 0;
        std::size_t differ = 0, where = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double d = std::fabs(static_cast<double>(x[i]) - y[i]);
            differ += d != 0;
            if (!(d <= most)) most = d, where = i;
            largest = std::max(largest, std::fabs(static_cast<double>(y[i])));
        }
        std::printf(
            "  %-3s differs in %.3f %% of the elements, by at most %.2e of the largest (%.3g); worst at row %zu, "
            "column %zu: %g, %g\n",
            what, 100.0 * static_cast<double>(differ) / static_cast<double>(x.size()), most / largest, largest,
            where / static_cast<std::size_t>(a.cols()), where % static_cast<std::size_t>(a.cols()), x[where], y[where]);
    }
};

void run(Bench& b, ops::ActivationKind kind, std::int64_t T, std::int64_t D, std::int64_t F) {
    const Exec& e = b.exec;
    const bool gated = ops::is_gated(kind);
    b.arena.reset();
    const std::int64_t wide = gated ? 2 * F : F;
    const Tensor x = b.random({T, D}, 1), up = b.random({wide, D}, 0.02), down = b.random({D, F}, 0.02),
                 dy = b.random({T, D}, 1e-3), bias = gated ? Tensor{} : b.random({wide}, 0.02);
    const Tensor h = e.tensor(DType::bf16, {T, wide}), a = e.tensor(DType::bf16, {T, F}), h2 = e.like(h),
                 a2 = e.like(a);
    const Tensor da = e.like(a), dh = e.like(h), dh2 = e.like(h), db = gated ? Tensor{} : e.tensor(DType::f32, {wide});
    const auto flops = 2.0 * static_cast<double>(T) * static_cast<double>(D) * static_cast<double>(F);
    const auto forward_flops = gated ? 2 * flops : flops;
    std::printf("%s %lld x %lld x %lld\n", gated ? "swiglu" : "gelu", static_cast<long long>(T),
                static_cast<long long>(D), static_cast<long long>(F));
    const auto forward = [&] { ops::cuda::linear_activation(e, kind, a, h, x, up, bias); };
    const auto forward_fused = [&] {
        if (gated)
            ops::cuda::gated_product(e, a2, h2, x, up);
        else
            ops::cuda::plain_product(e, kind, a2, h2, x, up, bias);
    };
    const auto backward = [&] {
        ops::cuda::linear_dgrad(e, da, dy, down);
        ops::cuda::activation_backward(e, kind, {dh, {}, db}, da, h);
    };
    const auto backward_to = [&](const ops::cuda::ActivatedGrads& to) {
        if (gated)
            ops::cuda::gated_product_backward(e, to, dy, down, h);
        else
            ops::cuda::plain_product_backward(e, kind, to, dy, down, h);
    };
    const auto backward_fused = [&] { backward_to({dh2, {}, db}); };
    const auto backward_fused_again = [&] { backward_to({dh2, a2, db}); };
    forward();
    std::fflush(stdout);
    forward_fused();
    b.gpu.synchronize();
    b.compare("h", h2, h);
    b.compare("a", a2, a);
    ops::cuda::activation(e, kind, a, h2);
    b.compare("a of the same h", a2, a);
    std::fflush(stdout);
    backward();
    backward_fused();
    b.gpu.synchronize();
    b.compare("dh", dh2, dh);
    ops::cuda::activation(e, kind, a, h);
    backward_fused_again();
    b.compare("dh, with a", dh2, dh);
    b.compare("a", a2, a);
    std::fflush(stdout);
    for (int round = 0; round < 2 && b.seconds > 0; ++round) {
        const double f0 = b.ms(forward), f1 = b.ms(forward_fused), b0 = b.ms(backward), b1 = b.ms(backward_fused);
        const double again = b.ms(backward_fused_again);
        const double product = b.ms([&] { ops::cuda::linear(e, h, x, up, bias); });
        const double dgrad = b.ms([&] { ops::cuda::linear_dgrad(e, da, dy, down); });
        std::printf("  forward %.3f ms in two (product alone %.3f: %.0f TFLOP/s), %.3f in one: %.0f TFLOP/s, %.3f x\n",
                    f0, product, forward_flops / product * 1e-9, f1, forward_flops / f1 * 1e-9, f0 / f1);
        std::printf(
            "  backward %.3f ms in two (product alone %.3f: %.0f TFLOP/s), %.3f in one: %.0f TFLOP/s, %.3f x; with a "
            "%.3f\n",
            b0, dgrad, flops / dgrad * 1e-9, b1, flops / b1 * 1e-9, b0 / b1, again);
        std::fflush(stdout);
    }
}

}  // namespace

int main(int count, char** words) try {
    Bench bench;
    int i = 1;
    if (count > 2 && std::strcmp(words[1], "--seconds") == 0) bench.seconds = std::atof(words[2]), i = 3;
    auto kind = ops::ActivationKind::swiglu;
    while (i < count) {
        const std::string word = words[i];
        if (word == "swiglu" || word == "gelu") {
            kind = word == "gelu" ? ops::ActivationKind::gelu_tanh : ops::ActivationKind::swiglu;
            ++i;
            continue;
        }
        std::int64_t sizes[3] = {};
        for (std::int64_t& size : sizes)
            if (size = i < count ? std::atoll(words[i++]) : 0; size < 256 || size % 8 != 0)
                throw Error("rows, hidden and ffn sizes come in threes, each 256 or more and a multiple of 8");
        run(bench, kind, sizes[0], sizes[1], sizes[2]);
    }
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "activated_products: %s\n", e.what());
    return 2;
}
#else
int main() {
    std::puts("built without kernels for Hopper");
    return 0;
}
#endif
