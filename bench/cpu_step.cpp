// One training step of GPT-2 124M on the CPU in f32: forward, loss, backward, clipping, AdamW. The same model, the same
// step and the same line of JSON as bench/peers/torch_cpu_step.py; bench/run_cpu_step.sh runs the two side by side.
//
//   cpu_step --batch 4 --sequence 64 --threads 2 --steps 8 [--warmup 2]
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <random>
#include <vector>

#include "core/error.h"
#include "model/decoder.h"
#include "optim/clip.h"
#include "optim/optimizer.h"

namespace {

using namespace tera;

struct Options {
    std::int64_t batch = 4, sequence = 64;
    int threads = ThreadPool::default_size(), warmup = 2, steps = 8;
};

Options parse(int argc, char** argv) {
    Options o;
    for (int i = 1; i < argc; i += 2) {
        char* end = nullptr;
        long value = i + 1 < argc ? std::strtol(argv[i + 1], &end, 10) : 0;
        if (end == nullptr || *end != '\0' || value < (std::strcmp(argv[i], "--warmup") == 0 ? 0 : 1))
            usage_error("cpu_step: ", argv[i], " needs a positive number");
        std::string flag = argv[i];
        if (flag == "--batch")
            o.batch = value;
        else if (flag == "--sequence")
            o.sequence = value;
        else if (flag == "--threads")
            o.threads = static_cast<int>(value);
        else if (flag == "--warmup")
            o.warmup = static_cast<int>(value);
        else if (flag == "--steps")
            o.steps = static_cast<int>(value);
        else
            usage_error("cpu_step: unknown flag ", flag, "; there are --batch --sequence --threads --warmup --steps");
    }
    return o;
}

ModelConfig gpt2_124m() {
    ModelConfig c;
    c.layers = 12;
    c.hidden = 768;
    c.heads = c.kv_heads = 12;
    c.head_dim = 64;
    c.ffn = 3072;
    c.vocab = 50304;
    c.true_vocab = 50257;
    c.max_positions = 1024;
    return c;
}

/// Random tokens in the layout of a micro-batch, [S,B].
class Tokens {
  public:
    Tokens(std::int64_t S, std::int64_t B, std::int64_t vocab)
        : S_(S),
          B_(B),
          draw_(0, static_cast<std::int32_t>(vocab - 1)),
          tokens_(S * B),
          labels_(S * B),
          positions_(S * B),
          mask_(S * B, 1.0f) {
        for (std::int64_t t = 0; t < S * B; ++t) positions_[t] = static_cast<std::int32_t>(t / B);
    }

    MicroBatch next() {
        for (std::int32_t& t : tokens_) t = draw_(engine_);
        for (std::int64_t t = 0; t < S_ * B_; ++t) labels_[t] = t + B_ < S_ * B_ ? tokens_[t + B_] : draw_(engine_);
        MicroBatch batch;
        batch.S = S_;
        batch.B = B_;
        batch.tokens = tokens_.data();
        batch.labels = labels_.data();
        batch.loss_mask = mask_.data();
        batch.positions = positions_.data();
        return batch;
    }

  private:
    std::int64_t S_, B_;
    std::mt19937 engine_{1234};
    std::uniform_int_distribution<std::int32_t> draw_;
    std::vector<std::int32_t> tokens_, labels_, positions_;
    std::vector<float> mask_;
};

void run(const Options& o) {
    ThreadPool pool(o.threads);
    Arena weights, state, keep, temp, redo;
    auto exec = [&](Arena& arena) { return Exec{Device::cpu, &arena, &pool}; };
    Ctx ctx{exec(keep), exec(temp), exec(redo)};

    ModelConfig config = gpt2_124m();
    Decoder model(config, RecomputeConfig{}, 1234);
    std::vector<Param*> params = params_of(model);
    allocate_params(params, weights, DType::f32, DType::f32);
    init_params(params, exec(weights), 1234);
    Optimizer optimizer(make_adam({0.9, 0.95, 1e-8, true}), params, state, exec(state));
    Tokens tokens(o.sequence, o.batch, config.true_vocab);

    std::vector<double> seconds;
    double first_loss = 0, last_loss = 0;
    for (int step = 0; step < o.warmup + o.steps; ++step) {
        MicroBatch batch = tokens.next();
        auto begin = std::chrono::steady_clock::now();
        Decoder::Saved saved;
        LossSum loss = model.forward(ctx, batch, 1.0 / static_cast<double>(o.batch * o.sequence), saved);
        model.backward(ctx, batch, saved);
        optimizer.measure(exec(temp));
        optimizer.step(exec(temp), {.lr = 3e-4, .weight_decay = 0.1, .clip_norm = 1.0});
        optimizer.finish(exec(temp));
        keep.reset();
        temp.reset();
        redo.reset();
        std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
        last_loss = loss.loss / loss.tokens;
        if (step == 0) first_loss = last_loss;
        if (step >= o.warmup) seconds.push_back(elapsed.count());
    }

    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf("{\"program\": \"Teratron\", \"batch\": %lld, \"sequence\": %lld, \"threads\": %d, \"seconds\": [",
                static_cast<long long>(o.batch), static_cast<long long>(o.sequence), o.threads);
    for (std::size_t i = 0; i < seconds.size(); ++i) std::printf("%s%.6f", i ? ", " : "", seconds[i]);
    std::printf("], \"first_loss\": %.6f, \"last_loss\": %.6f, \"peak_rss_bytes\": %lld}\n", first_loss, last_loss,
                static_cast<long long>(usage.ru_maxrss) * 1024);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        run(parse(argc, argv));
    } catch (const UsageError& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 2;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "cpu_step: %s\n", e.what());
        return 1;
    }
    return 0;
}
