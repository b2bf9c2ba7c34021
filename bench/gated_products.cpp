// The products around SwiGLU with the activation in them, against the library's products and the activation's own
// kernel, each for a second at a time, in turns, so that the clock settles as in a training step; with --seconds 0
// their results are compared instead.
//
//   gated_products [--seconds S] ROWS HIDDEN FFN [ROWS HIDDEN FFN ...]
#include <cstdio>

#ifdef TERA_SM90
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "core/cuda/check.h"
#include "core/cuda/gpu.h"
#include "core/exec.h"
#include "core/transfer.h"
#include "ops/activation.h"
#include "ops/activation_backends.h"
#include "ops/gated_product.h"
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

void run(Bench& b, std::int64_t T, std::int64_t D, std::int64_t F) {
    const Exec& e = b.exec;
    const auto kind = ops::ActivationKind::swiglu;
    b.arena.reset();
    const Tensor x = b.random({T, D}, 1), up = b.random({2 * F, D}, 0.02), down = b.random({D, F}, 0.02),
                 dy = b.random({T, D}, 1e-3);
    const Tensor h = e.tensor(DType::bf16, {T, 2 * F}), a = e.tensor(DType::bf16, {T, F}), h2 = e.like(h),
                 a2 = e.like(a);
    const Tensor da = e.like(a), dh = e.like(h), dh2 = e.like(h);
    const auto flops = 2.0 * static_cast<double>(T) * static_cast<double>(D) * static_cast<double>(F);
    std::printf("%lld x %lld x %lld\n", static_cast<long long>(T), static_cast<long long>(D),
                static_cast<long long>(F));
    const auto forward = [&] {
        ops::cuda::linear(e, h, x, up, {});
        ops::cuda::activation(e, kind, a, h);
    };
    const auto forward_fused = [&] { ops::cuda::gated_product(e, a2, h2, x, up); };
    const auto backward = [&] {
        ops::cuda::linear_dgrad(e, da, dy, down);
        ops::cuda::activation_backward(e, kind, {dh, {}, {}}, da, h);
    };
    const auto backward_fused = [&] { ops::cuda::gated_product_backward(e, dh2, {}, dy, down, h); };
    const auto backward_fused_again = [&] { ops::cuda::gated_product_backward(e, dh2, a2, dy, down, h); };
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
        const double product = b.ms([&] { ops::cuda::linear(e, h, x, up, {}); });
        const double dgrad = b.ms([&] { ops::cuda::linear_dgrad(e, da, dy, down); });
        std::printf("  forward %.3f ms in two (product alone %.3f: %.0f TFLOP/s), %.3f in one: %.0f TFLOP/s, %.3f x\n",
                    f0, product, 2 * flops / product * 1e-9, f1, 2 * flops / f1 * 1e-9, f0 / f1);
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
    for (; i + 2 < count; i += 3) run(bench, std::atoll(words[i]), std::atoll(words[i + 1]), std::atoll(words[i + 2]));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "gated_products: %s\n", e.what());
    return 2;
}
#else
int main() {
    std::puts("built without kernels for Hopper");
    return 0;
}
#endif
