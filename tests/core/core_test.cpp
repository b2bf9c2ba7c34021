#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>

#include "core/arena.h"
#include "core/exec.h"
#include "core/rng.h"

namespace tera {
namespace {

TEST(Philox, known_answers) {  // from the authors' own test vectors for philox4x32 with ten rounds
    auto check = [](std::array<std::uint32_t, 2> key, U32x4 counter, std::array<std::uint32_t, 4> expected) {
        U32x4 r = philox(key[0], key[1], counter);
        for (int i = 0; i < 4; ++i) EXPECT_EQ(r.v[i], expected[static_cast<std::size_t>(i)]);
    };
    check({0, 0}, {{0, 0, 0, 0}}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    check({0xffffffff, 0xffffffff}, {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
          {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    check({0xa4093822, 0x299f31d0}, {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
          {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST(Normals, match_the_library_functions) {
    for (std::uint32_t i = 0; i < 200000; ++i) {
        U32x4 r = weight_words(1, 2, i);
        F32x4 n = normals(r);
        // The uniforms as floats: what is rounded there is part of the definition.
        double u = fmaf(static_cast<float>(r.v[0]), 0x1p-32f, 0x1p-33f);
        double v = 2 * M_PI * static_cast<double>(static_cast<float>(r.v[1]) * 0x1p-32f);
        ASSERT_NEAR(n.v[0], std::sqrt(-2 * std::log(u)) * std::cos(v), 4e-6) << i;
        ASSERT_NEAR(n.v[1], std::sqrt(-2 * std::log(u)) * std::sin(v), 4e-6) << i;
    }
    for (std::uint32_t edge : {0u, 1u, 0x3fffffffu, 0x80000000u, 0xffffffffu}) {
        F32x4 n = normals({{edge, edge, 0, 0xffffffffu}});
        for (float x : n.v) EXPECT_TRUE(std::isfinite(x)) << edge;
    }
}

TEST(ThreadPool, every_task_runs_once) {
    ThreadPool pool(4);
    for (int round = 0; round < 2000; ++round) {
        std::vector<int> hits(static_cast<std::size_t>(round % 37));
        pool.run(static_cast<std::int64_t>(hits.size()), [&](std::int64_t i) { ++hits[static_cast<std::size_t>(i)]; });
        for (int h : hits) ASSERT_EQ(h, 1);
    }
}

TEST(ThreadPool, nested_runs_work_and_exceptions_come_back) {
    ThreadPool pool(3);
    std::atomic<int> count = 0;
    pool.run(5, [&](std::int64_t) { pool.run(7, [&](std::int64_t) { ++count; }); });
    EXPECT_EQ(count, 35);
    for (int round = 0; round < 50; ++round)
        EXPECT_THROW(pool.run(20,
                              [&](std::int64_t i) {
                                  if (i == 13) throw Error("thirteen");
                              }),
                     Error);
    count = 0;
    pool.run(10, [&](std::int64_t) { ++count; });
    EXPECT_EQ(count, 10);
}

TEST(ParallelFor, the_cut_does_not_depend_on_the_threads) {
    Arena arena;
    auto pieces = [&](int threads) {
        ThreadPool pool(threads);
        Exec exec{Device::cpu, &arena, &pool};
        std::vector<std::int64_t> ends(100);
        parallel_for(exec, 100, 7, [&](std::int64_t b, std::int64_t e) {
            for (std::int64_t i = b; i < e; ++i) ends[static_cast<std::size_t>(i)] = e;
        });
        return ends;
    };
    EXPECT_EQ(pieces(1), pieces(4));
}

TEST(Arena, gives_disjoint_aligned_memory_and_takes_it_back) {
    Arena arena;
    std::vector<Tensor> tensors;
    for (int i = 1; i < 40; ++i) {
        Tensor t = arena.tensor(DType::u8, {i * 100000});
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t.data) % Arena::alignment, 0u);
        std::memset(t.data, i, t.bytes());
        tensors.push_back(t);
    }
    for (int i = 1; i < 40; ++i) {
        const Tensor& t = tensors[static_cast<std::size_t>(i - 1)];
        EXPECT_EQ(static_cast<int>(t.data[0]), i);
        EXPECT_EQ(static_cast<int>(t.data[t.bytes() - 1]), i);
    }
    std::size_t peak = arena.peak();
    arena.reset();
    EXPECT_EQ(arena.used(), 0u);
    std::byte* first = arena.tensor(DType::f32, {10}).data;
    {
        ArenaScope scope(arena);
        EXPECT_GT(arena.tensor(DType::f32, {1000}).data, first);  // one block after the reset
    }
    std::byte* next = arena.tensor(DType::f32, {10}).data;
    EXPECT_EQ(arena.tensor(DType::f32, {10}).data - next, next - first);
    EXPECT_EQ(arena.peak(), peak);
}

TEST(Arena, a_counting_arena_measures_without_memory) {
    Arena counting(Arena::Kind::counting), real;
    for (Arena* a : {&counting, &real}) {
        a->tensor(DType::f32, {1000});
        ArenaScope scope(*a);
        a->tensor(DType::bf16, {123456});
    }
    EXPECT_EQ(counting.peak(), real.peak());
    EXPECT_EQ(counting.held(), 0u);
    // What is there is told from what is absent, though it is nowhere.
    Tensor a = counting.tensor(DType::f32, {5}), b = counting.tensor(DType::f32, {5});
    EXPECT_TRUE(a);
    EXPECT_NE(a.data, b.data);
}

TEST(Arena, nothing_can_be_asked_for_first) {
    Arena arena;
    EXPECT_NE(arena.allocate(0), nullptr);
    EXPECT_EQ(arena.tensor(DType::f32, {0}).numel(), 0);
    EXPECT_EQ(Arena::block_bytes(0), 0u);
    EXPECT_EQ(arena.held(), Arena::block_bytes(1));
}

TEST(Arena, fences_show_who_writes_over_an_end) {
    int seen = 0;
    Arena::Fence fence;
    fence.bytes = 16;
    fence.put = [](std::byte* at, std::size_t bytes) { std::memset(at, 0x5a, bytes); };
    fence.check = [&](const std::byte* at, std::size_t bytes) {
        seen += static_cast<int>(std::count_if(at, at + bytes, [](std::byte b) { return b != std::byte{0x5a}; }));
    };
    Arena arena;
    arena.set_fence(fence);
    std::byte* first = arena.allocate(100);
    {
        const ArenaScope scope(arena);
        std::memset(arena.allocate(3), 0, 3);
        std::byte* over = arena.allocate(64);
        std::memset(over, 0, 64 + 2);
        EXPECT_EQ(seen, 0);
    }
    EXPECT_EQ(seen, 2) << "at the end of the scope";
    first[100] = {};
    arena.check_fences();
    EXPECT_EQ(seen, 3);
    arena.reset();
    EXPECT_EQ(seen, 4);
    arena.reset();
    EXPECT_EQ(seen, 4) << "looked at once more after it was given back";
}

TEST(Arena, reserving_is_one_block_for_all) {
    Arena arena;
    arena.reserve(std::size_t{5} << 20);
    const std::size_t held = arena.held();
    EXPECT_GE(held, std::size_t{5} << 20);
    for (int i = 0; i < 5; ++i) arena.tensor(DType::u8, {900000});
    EXPECT_EQ(arena.held(), held);
    EXPECT_THROW(arena.reserve(1), Error);
}

TEST(UsageError, is_one_line_whatever_it_quotes) {
    EXPECT_STREQ(UsageError("flag 'a\nb\x1b[31m' in F\xc3\xbcr").what(), "flag 'a\\nb\\x1b[31m' in F\xc3\xbcr");
}

TEST(Tensor, slices_and_refuses) {
    std::vector<float> memory(12);
    std::iota(memory.begin(), memory.end(), 0.0f);
    Tensor t = tensor_over(memory.data(), {4, 3});
    EXPECT_EQ(t.slice(1, 2).ptr<float>()[0], 3);
    EXPECT_THROW(t.slice(3, 2), Error);
    EXPECT_THROW(t.ptr<double>(), Error);
    EXPECT_THROW(t.reshape({5}), Error);
    try {
        t.reshape({5});
    } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("[4,3]"), std::string::npos) << e.what();
    }
}

}  // namespace
}  // namespace tera
