// Operands are random: on zeros a GPU draws less power, clocks higher and shows a speed that no training step can have.
#include "train/bench_ceilings.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "core/error.h"
#include "ops/convert.h"
#include "ops/init.h"
#include "ops/linear.h"
#include "train/timers.h"

namespace tera {
namespace {

/// Seconds of one call, from batches of calls that together take a few hundredths of a second; the fastest batch.
double seconds_of(const Engine& engine, const std::function<void()>& call) {
    const auto timed = [&](int calls) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < calls; ++i) call();
        engine.synchronize();
        return seconds_since(start) / calls;
    };
    timed(1);  // the first call chooses an algorithm
    const int calls = static_cast<int>(std::clamp(0.02 / std::max(timed(1), 1e-7), 1.0, 200.0));
    return std::min({timed(calls), timed(calls), timed(calls)});
}

double tflops(double rows, double out, double in, double seconds) { return 2 * rows * out * in / seconds * 1e-12; }

class Bench {
  public:
    explicit Bench(Workspace& workspace) : workspace_(workspace), exec_(workspace.ctx().keep) {}

    Tensor random(DType dtype, Shape shape) {
        Tensor t = exec_.tensor(dtype, shape);
        ops::fill_random(exec_, t, {.normal = true, .scale = 1, .seed = 1, .stream = ++stream_});
        return t;
    }

    /// Runs `measure` if its operands fit beside everything else.
    void if_it_fits(const std::function<void()>& measure) {
        workspace_.reset();
        try {
            measure();
        } catch (const Error&) {
        }
        workspace_.reset();
    }

    double square(std::int64_t n, DType dtype) {
        double rate = 0;
        if_it_fits([&] {
            const Tensor x = random(dtype, {n, n}), w = random(dtype, {n, n}), y = exec_.tensor(dtype, {n, n});
            const auto side = static_cast<double>(n);
            rate = tflops(side, side, side, seconds([&] { ops::linear_into(exec_, y, x, w); }));
        });
        return rate;
    }

    GemmRates gemm(const char* name, const Param& weight, std::int64_t rows) {
        GemmRates r{name, rows, weight.value.shape[0], weight.value.shape[1]};
        if_it_fits([&] {
            const DType dtype = weight.value.dtype;
            const Tensor x = random(dtype, {rows, r.in}), y = random(dtype, {rows, r.out});
            const auto rate = [&](const std::function<void()>& call) {
                return tflops(static_cast<double>(rows), static_cast<double>(r.out), static_cast<double>(r.in),
                              seconds(call));
            };
            r.wgrad = rate([&] { ops::linear_wgrad(exec_, weight.grad, y, x); });
            r.dgrad = rate([&] { ops::linear_dgrad_into(exec_, x, y, weight.value); });
            r.forward = rate([&] { ops::linear_into(exec_, y, x, weight.value); });
        });
        return r;
    }

    double copy(std::int64_t bytes) {
        double rate = 0;
        if_it_fits([&] {
            const Tensor from = random(DType::f32, {bytes / 4}), to = exec_.tensor(DType::f32, {bytes / 4});
            rate = 2 * static_cast<double>(bytes) / seconds([&] { ops::copy(exec_, to, from); });
        });
        return rate;
    }

  private:
    double seconds(const std::function<void()>& call) { return seconds_of(workspace_.engine(), call); }

    Workspace& workspace_;
    Exec exec_;
    std::uint64_t stream_ = 0;
};

const Param* find(const std::vector<Param*>& params, const std::string& name) {
    const auto at = std::find_if(params.begin(), params.end(), [&](const Param* p) { return p->name == name; });
    return at == params.end() ? nullptr : *at;
}

}  // namespace

Ceilings measure_ceilings(Workspace& workspace, const std::vector<Param*>& params, std::int64_t tokens) {
    const bool gpu = workspace.engine().device() != Device::cpu;
    Bench bench(workspace);
    Ceilings c;
    const DType dtype = gpu ? DType::bf16 : DType::f32;
    c.square = gpu ? 8192 : 1024;
    c.square_dtype = name_of(dtype);
    c.square_tflops = bench.square(c.square, dtype);
    for (const auto& [name, parameter] : {std::pair{"qkv", "layers.0.attention.qkv.weight"},
                                          {"proj", "layers.0.attention.proj.weight"},
                                          {"fc1", "layers.0.mlp.up.weight"},
                                          {"fc2", "layers.0.mlp.down.weight"}}) {
        if (const Param* p = find(params, parameter)) c.gemms.push_back(bench.gemm(name, *p, tokens));
    }
    const Param* head = find(params, "lm_head.weight");
    if (head == nullptr) head = find(params, "embedding.word.weight");
    TERA_CHECK(head != nullptr, "a model without word embedding");
    // About as many rows as the head handles at a time (nn/lm_head.h).
    const std::int64_t most = std::max<std::int64_t>(128, (std::int64_t{1} << 29) / head->value.rows() / 128 * 128);
    c.gemms.push_back(bench.gemm("lm head", *head, std::min(tokens, most)));
    c.copy_bytes = std::int64_t{1} << (gpu ? 30 : 26);
    c.copy_bytes_per_second = bench.copy(c.copy_bytes);
    return c;
}

}  // namespace tera
