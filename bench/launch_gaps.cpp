// What a CUDA graph could save: the time from one kernel to the next where a stream is given them one by one and where
// a graph of the same kernels is launched, for kernels of several lengths. Each reads what the one before it has
// written, as in a step. A graph can take from a training step so many microseconds for each of its kernels, and no
// more.
//
//   launch_gaps [--kernels N]
#include <cstdio>

#if defined(TERA_WITH_CUDA)
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/cuda/check.h"
#include "core/cuda/gpu.h"
#include "core/exec.h"
#include "ops/convert.h"

namespace {

using namespace tera;
using Clock = std::chrono::steady_clock;

struct Kernels {
    const Exec& exec;
    Tensor wide, narrow;
    int count;

    void give() const {
        for (int i = 0; i < count / 2; ++i) ops::convert(exec, wide, narrow), ops::convert(exec, narrow, wide);
    }
};

/// Microseconds for one kernel of the many that `launch` gives, the median of some rounds.
template <class F>
double microseconds(Gpu& gpu, int kernels, const F& launch) {
    std::vector<double> rounds;
    for (int i = 0; i < 7; ++i) {
        gpu.synchronize();
        const auto begin = Clock::now();
        launch();
        gpu.synchronize();
        rounds.push_back(1e6 * std::chrono::duration<double>(Clock::now() - begin).count() / kernels);
    }
    std::nth_element(rounds.begin(), rounds.begin() + 3, rounds.end());
    return rounds[3];
}

void measure(std::int64_t elements, int count) {
    Gpu gpu{0};
    ThreadPool pool{1};
    Arena arena{Arena::Kind::real, gpu.memory()};
    const Exec exec{Device::cuda, &arena, &pool, &gpu};
    const Kernels kernels{exec, exec.tensor(DType::f32, {elements}), exec.tensor(DType::bf16, {elements}), count};
    ops::fill_zero(exec, kernels.narrow);
    const double in_stream = microseconds(gpu, count, [&] { kernels.give(); });
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    TERA_CUDA(cudaStreamBeginCapture(gpu.stream, cudaStreamCaptureModeThreadLocal));
    kernels.give();
    TERA_CUDA(cudaStreamEndCapture(gpu.stream, &graph));
    TERA_CUDA(cudaGraphInstantiate(&ready, graph, 0));
    TERA_CUDA(cudaGraphLaunch(ready, gpu.stream));  // the first one takes longer
    const double in_graph = microseconds(gpu, count, [&] { TERA_CUDA(cudaGraphLaunch(ready, gpu.stream)); });
    TERA_CUDA(cudaGraphExecDestroy(ready));
    TERA_CUDA(cudaGraphDestroy(graph));
    std::printf("%8.2f MB: a kernel takes %6.2f us in a stream, %6.2f us in a graph of %d: %5.2f us less\n",
                static_cast<double>(elements) * 6e-6, in_stream, in_graph, count, in_stream - in_graph);
}

}  // namespace

int main(int words, char** word) {
    int kernels = 1000;
    if (words == 3 && std::strcmp(word[1], "--kernels") == 0) kernels = std::atoi(word[2]);
    if ((words != 1 && words != 3) || kernels < 2) {
        std::fprintf(stderr, "usage: launch_gaps [--kernels N], N at least 2\n");
        return 2;
    }
    if (gpu_count() == 0) {
        std::fprintf(stderr, "launch_gaps: no GPU in this machine\n");
        return 2;
    }
    for (const std::int64_t elements : {1000, 300'000, 3'000'000, 10'000'000, 30'000'000})
        measure(elements, kernels / 2 * 2);
    return 0;
}

#else
int main() {
    std::fprintf(stderr, "launch_gaps: this build has no CUDA\n");
    return 2;
}
#endif
