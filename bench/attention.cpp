// Our attention kernels against cuDNN's, forward and backward, each for some time at once, in turns, so that the clock
// settles as in a training step: causal, in documents of S/4 tokens on average, and with dropout 0.1. Ours are those
// for Hopper's warp groups and those of warps; cuDNN has none whose dropout is a function of the place. TFLOP/s count
// the products of causal attention once (2 forward, 5 backward), whatever the kernels do; of documents those of what
// their tokens see; cuDNN is told of them as sequences of different lengths.
//
//   attention [--seconds T] [--f16] [--deterministic] BATCHxSEQUENCExHEADS/KEY_HEADSxWIDTH ...
#include <cstdio>

#if defined(TERA_WITH_CUDA)
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "core/cuda/check.h"
#include "core/cuda/gpu.h"
#include "core/exec.h"
#include "core/transfer.h"
#include "ops/attention.h"
#include "ops/attention_cudnn.h"
#include "ops/attention_mma.h"
#include "ops/attention_sm90.h"
#include "ops/init.h"

namespace {

using namespace tera;
using namespace tera::ops;
using Clock = std::chrono::steady_clock;

struct Bench {
    Gpu gpu{0};
    ThreadPool pool{1};
    Arena arena{Arena::Kind::real, gpu.memory()};
    Exec exec{Device::cuda, &arena, &pool, &gpu};
    std::uint64_t stream = 0;
    double seconds = 0.3;
    DType dtype = DType::bf16;

    Tensor random(Shape shape) {
        Tensor t = exec.tensor(dtype, shape);
        fill_random(exec, t, {.normal = true, .scale = 1, .seed = 1, .stream = ++stream});
        return t;
    }
    template <class T>
    const T* up(const std::vector<T>& values, DType type) {
        Tensor t = exec.tensor(type, {static_cast<std::int64_t>(values.size())});
        TERA_CUDA(cudaMemcpy(t.data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
        return t.ptr<T>();
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
};

struct Shape {
    std::int64_t B, S, H, G, K;
};

struct Kernels {
    const char* name;
    std::function<bool()> forward, backward;
};

/// Documents of S/4 tokens on average, the same as those of bench/peers/torch_attention.py.
struct Documents {
    std::vector<std::int32_t> starts, lengths;  ///< for each row where its document starts; of one sample after another
    double seen = 0;                            ///< keys by all queries
};
Documents documents_of(const Shape& s) {
    Documents d;
    d.starts.resize(static_cast<std::size_t>(s.S * s.B));
    std::uint64_t state = 7;
    const auto length = [&] {
        state = (state * 1103515245 + 12345) % (std::uint64_t{1} << 31);
        return 1 + static_cast<std::int64_t>(state >> 8) % (s.S / 2);
    };
    for (std::int64_t b = 0; b < s.B; ++b)
        for (std::int64_t start = 0; start < s.S;) {
            const std::int64_t n = std::min(length(), s.S - start);
            for (std::int64_t q = start; q < start + n; ++q)
                d.starts[static_cast<std::size_t>(q * s.B + b)] = static_cast<std::int32_t>(start);
            d.lengths.push_back(static_cast<std::int32_t>(n));
            d.seen += static_cast<double>(n * (n + 1)) / 2;
            start += n;
        }
    return d;
}

void print(const char* what, const char* name, double forward, double backward, double pairs_times_width) {
    std::printf("  %-9s %-12s forward %7.3f ms %4.0f TFLOP/s, backward %7.3f ms %4.0f TFLOP/s\n", what, name, forward,
                4 * pairs_times_width / forward * 1e-9, backward, 10 * pairs_times_width / backward * 1e-9);
    std::fflush(stdout);
}

void run(Bench& b, const Shape& s) {
    const Exec& e = b.exec;
    b.arena.reset();
    const std::int64_t width = (s.H + 2 * s.G) * s.K, rows = s.S * s.B;
    const ConstTensor qkv = b.random({rows, width}), d_o = b.random({rows, s.H * s.K});
    const Tensor d_qkv = e.tensor(b.dtype, {rows, width});
    const AttentionOut out{e.tensor(b.dtype, {rows, s.H * s.K}), e.tensor(DType::f32, {s.B, s.H, s.S})};
    const Documents documents = documents_of(s);
    const double seen = static_cast<double>(s.B * s.S) * (s.S + 1) / 2.0;
    std::vector<std::int64_t> samples(static_cast<std::size_t>(s.B));
    std::iota(samples.begin(), samples.end(), 0);
    const AttentionSpec causal{
        .B = s.B, .Sq = s.S, .Sk = s.S, .H = s.H, .G = s.G, .K = s.K, .scale = 1 / std::sqrt(static_cast<double>(s.K))};
    AttentionSpec in_documents = causal, dropped = causal;
    in_documents.doc_start = b.up(documents.starts, DType::i32);
    std::vector<std::int32_t> list;
    in_documents.documents = list_documents(documents.starts.data(), s.S, s.B, list);
    in_documents.documents.rows = b.up(list, DType::i32);
    dropped.dropout = 0.1, dropped.site = {1, 2, 3}, dropped.sample = b.up(samples, DType::i64);
    const HeadRows<ConstTensor> q{qkv, 0}, k{qkv, s.H * s.K}, v{qkv, (s.H + s.G) * s.K};
    const AttentionGrads grads{{d_qkv, 0}, {d_qkv, s.H * s.K}, {d_qkv, (s.H + s.G) * s.K}};
    std::printf("%lldx%lldx%lld/%lldx%lld\n", static_cast<long long>(s.B), static_cast<long long>(s.S),
                static_cast<long long>(s.H), static_cast<long long>(s.G), static_cast<long long>(s.K));
    const auto show = [&](const char* what, const AttentionSpec& spec, double pairs) {
        const std::vector<Kernels> all = {
            {"cuDNN", [&] { return cuda::cudnn_attention(e, spec, out, q, k, v); },
             [&] { return cuda::cudnn_attention_backward(e, spec, grads, d_o, q, k, v, out); }},
            {"warp groups", [&] { return cuda::sm90_attention(e, spec, out, q, k, v); },
             [&] { return cuda::sm90_attention_backward(e, spec, grads, d_o, q, k, v, out); }},
            {"warps", [&] { return cuda::mma_attention(e, spec, out, q, k, v); },
             [&] { return cuda::mma_attention_backward(e, spec, grads, d_o, q, k, v, out); }}};
        for (const Kernels& kernels : all) {
            if (!kernels.forward() || !kernels.backward()) continue;
            const double forward = b.ms([&] { kernels.forward(); }), backward = b.ms([&] { kernels.backward(); });
            print(what, kernels.name, forward, backward, pairs * static_cast<double>(s.H * s.K));
        }
    };
    show("causal", causal, seen);
    show("documents", in_documents, documents.seen);
    show("dropout", dropped, seen);
}

}  // namespace

int main(int count, char** words) try {
    Bench b;
    bool any = false;
    for (int i = 1; i < count; ++i) {
        const std::string word = words[i];
        long long B = 0, S = 0, H = 0, G = 0, K = 0;
        if (word == "--seconds" && i + 1 < count) {
            b.seconds = std::atof(words[++i]);
        } else if (word == "--f16") {
            b.dtype = DType::f16;
        } else if (word == "--deterministic") {
            b.gpu.deterministic = true;
        } else if (std::sscanf(word.c_str(), "%lldx%lldx%lld/%lldx%lld", &B, &S, &H, &G, &K) == 5 && B > 0 && S > 1 &&
                   G > 0 && H % G == 0 && K > 0) {
            run(b, {B, S, H, G, K});
            any = true;
        } else {
            std::fprintf(stderr,
                         "attention: '%s' is no shape; usage: attention [--seconds T] [--f16] [--deterministic] "
                         "8x2048x24/24x96 ...\n",
                         words[i]);
            return 2;
        }
    }
    if (!any) std::fprintf(stderr, "usage: attention [--seconds T] [--f16] [--deterministic] 8x2048x24/24x96 ...\n");
    return any ? 0 : 2;
} catch (const std::exception& e) {
    std::fprintf(stderr, "attention: %s\n", e.what());
    return 2;
}

#else
int main() {
    std::fprintf(stderr, "attention: this build has no CUDA\n");
    return 2;
}
#endif
