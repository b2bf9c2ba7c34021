// Main weights in halves, as checkpoints see them: put together and taken apart in several pieces, by several threads.
#include "train/host_rows.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/rng.h"

namespace tera {
namespace {

TEST(HostRows, HalvesOfLargeTensorsComeBackWhateverTheThreads) {
    constexpr std::int64_t n = (1 << 19) + 37;  // three pieces, the last a short one
    Arena arena;
    ThreadPool pool(3);
    std::vector<float> numbers(n);
    for (std::int64_t i = 0; i < n; ++i)
        numbers[static_cast<std::size_t>(i)] = normals(weight_words(3, 5, static_cast<std::uint64_t>(i))).v[0];
    for (ThreadPool* const threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
        const Exec exec{Device::cpu, &arena, threads};
        const SplitTensor main(arena.zeros(DType::bf16, {n}), arena.zeros(DType::u16, {n}));
        for (std::int64_t i = 0; i < n; ++i)
            main.tensor.ptr<bf16_t>()[i].bits = split(numbers[static_cast<std::size_t>(i)]).value;
        const HostBuffer buffer(exec, main);
        std::copy(numbers.begin(), numbers.end(), buffer.tensor().ptr<float>());
        buffer.store();
        const HostView view(exec, main);
        ASSERT_EQ(view.tensor().dtype, DType::f32);
        ASSERT_EQ(std::vector<float>(view.tensor().ptr<float>(), view.tensor().ptr<float>() + n), numbers);
    }
}

}  // namespace
}  // namespace tera
