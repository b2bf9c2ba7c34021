// Work that is recorded and played computes what it computes otherwise, from what is in memory when it is played.
#include "core/recorder.h"

#include "cuda/cuda_world.h"
#include "ops/convert.h"

namespace tera::test {
namespace {

using Outcome = Recorder::Outcome;

struct OnGpu {
    Engine engine{Device::cuda};
    ThreadPool pool{1};
    Arena arena{Arena::Kind::real, engine.memory()};
    Exec exec = engine.exec(arena, pool);
};

TEST(CudaRecorder, plays_what_comes_again) {
    NEED_GPU();
    OnGpu gpu;
    const Exec& exec = gpu.exec;
    const Tensor x = exec.tensor(DType::f32, {1000}), sum = exec.tensor(DType::f32, {1000});
    ops::fill_zero(exec, sum);
    Recorder recorder(gpu.engine);
    std::vector<float> host(1000), found(1000), expected(1000);
    std::vector<Outcome> outcomes;
    int calls = 0;
    const auto give = [&] {
        ++calls;
        ops::add_to(exec, sum, x);
        ops::add_to(exec, sum, x);
    };
    for (int round = 0; round < 5; ++round) {
        for (std::size_t i = 0; i < host.size(); ++i) {
            host[i] = static_cast<float>(round * 1000) + static_cast<float>(i);
            expected[i] += 2 * host[i];
        }
        copy_from_host(exec, x, host.data());
        outcomes.push_back(recorder.run({7, 8}, give));
        copy_to_host(exec, found.data(), sum);
        EXPECT_EQ(found, expected) << "round " << round;
    }
    EXPECT_EQ(outcomes, (std::vector<Outcome>{Outcome::given, Outcome::recorded, Outcome::played, Outcome::played,
                                              Outcome::played}));
    EXPECT_EQ(calls, 2);
    const auto other = recorder.run({7, 9}, give);
    EXPECT_EQ(other, Outcome::given) << "under another key it is other work";
}

TEST(CudaRecorder, leaves_what_never_comes_again) {
    NEED_GPU();
    OnGpu gpu;
    const Exec& exec = gpu.exec;
    const Tensor x = exec.tensor(DType::f32, {10});
    Recorder recorder(gpu.engine);
    for (std::uint64_t i = 0; i < 200; ++i)
        EXPECT_EQ(recorder.run({i}, [&] { ops::fill_zero(exec, x); }), Outcome::given);
}

TEST(CudaRecorder, leaves_memory_that_is_nearly_used_up) {
    NEED_GPU();
    OnGpu gpu;
    const Tensor x = gpu.exec.tensor(DType::f32, {10});
    Recorder recorder(gpu.engine, std::size_t{1} << 50);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(recorder.run({1}, [&] { ops::fill_zero(gpu.exec, x); }), Outcome::given);
}

TEST(Recorder, gives_on_the_cpu) {
    const Engine engine;
    Recorder recorder(engine);
    int calls = 0;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(recorder.run({1}, [&] { ++calls; }), Outcome::given);
    EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace tera::test
