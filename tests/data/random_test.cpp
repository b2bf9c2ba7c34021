// Known answers from numpy 1.24 and torch (CPU).
#include "data/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/error.h"

namespace tera {
namespace {

std::vector<std::int32_t> shuffled(std::uint32_t seed, int n) {
    std::vector<std::int32_t> x(static_cast<std::size_t>(n));
    std::iota(x.begin(), x.end(), 0);
    NumpyRandom(seed).shuffle(std::span<std::int32_t>(x));
    return x;
}

TEST(NumpyRandom, EngineIsTheStandardOne) {
    Mt19937 ours(2971215073u);
    std::mt19937 standard(2971215073u);
    for (int i = 0; i < 3000; ++i) ASSERT_EQ(ours.next(), standard()) << i;
}

TEST(NumpyRandom, Shuffle) {
    using V = std::vector<std::int32_t>;
    EXPECT_EQ(shuffled(0, 10), (V{2, 8, 4, 9, 1, 6, 7, 3, 0, 5}));
    EXPECT_EQ(shuffled(42, 10), (V{8, 1, 5, 0, 7, 2, 9, 4, 3, 6}));
    EXPECT_EQ(shuffled(1234, 10), (V{7, 2, 9, 1, 0, 8, 4, 5, 6, 3}));
    EXPECT_EQ(shuffled(1, 1), V{0});
    EXPECT_EQ(shuffled(1, 0), V{});
}

TEST(NumpyRandom, ShuffleLeavesTheGeneratorWhereNumpyDoes) {
    NumpyRandom random(1234);
    std::vector<std::int64_t> x(10);
    random.shuffle(std::span<std::int64_t>(x));
    EXPECT_EQ(random.random(), 0.1506369656060953);
}

// The blocked shuffle against the plain one, over several blocks and powers of two.
TEST(NumpyRandom, LongShuffleIsThePlainOne) {
    for (const int n : {255, 256, 257, 258, 1025, 70001}) {
        NumpyRandom random(7);
        std::vector<std::int32_t> expected(static_cast<std::size_t>(n));
        std::iota(expected.begin(), expected.end(), 0);
        for (std::size_t i = expected.size() - 1; i >= 1; --i) std::swap(expected[i], expected[random.interval(i)]);
        ASSERT_EQ(shuffled(7, n), expected) << n;
    }
}

TEST(NumpyRandom, RandomAndRandint) {
    NumpyRandom a(1234);
    EXPECT_EQ(a.random(), 0.1915194503788923);
    EXPECT_EQ(a.random(), 0.6221087710398319);
    NumpyRandom b(1234);
    for (const std::int64_t expected : {27439, 25299, 1318, 23605, 27852}) EXPECT_EQ(b.randint(0, 30522), expected);
    NumpyRandom c(0);
    for (const std::int64_t expected : {5, 0, 3, 3, 7, 9, 3, 5, 2, 4}) EXPECT_EQ(c.randint(0, 10), expected);
}

TEST(NumpyRandom, IntervalOfOneValueDrawsNothing) {
    NumpyRandom random(1234);
    EXPECT_EQ(random.interval(0), 0u);
    EXPECT_EQ(random.random(), 0.1915194503788923);
}

TEST(NumpyRandom, WideInterval) {
    NumpyRandom random(5);  // RandomState(5).randint(0, 2**40, 4)
    for (const std::int64_t expected : {std::int64_t{425438759118}, std::int64_t{1030067709629},
                                        std::int64_t{989404716150}, std::int64_t{622681974857}})
        EXPECT_EQ(random.randint(0, std::int64_t{1} << 40), expected);
}

TEST(NumpyRandom, ChoiceAndGeometric) {
    NumpyRandom a(11);  // RandomState(11).choice(4, p=[.1, .2, .3, .4])
    const std::vector<double> p{0.1, 0.2, 0.3, 0.4};
    for (const std::int64_t expected : {1, 0, 2, 3, 2, 2, 0, 2}) EXPECT_EQ(a.choice(p), expected);
    NumpyRandom b(12);  // RandomState(12).geometric(0.2)
    for (const std::int64_t expected : {1, 7, 2, 4, 1, 12, 11, 1}) EXPECT_EQ(b.geometric(0.2), expected);
    NumpyRandom c(13);  // RandomState(13).geometric(0.5)
    for (const std::int64_t expected : {3, 1, 3, 5, 6, 1, 2, 3}) EXPECT_EQ(c.geometric(0.5), expected);
}

TEST(TorchRandom, Randperm) {
    using V = std::vector<std::int64_t>;
    EXPECT_EQ(TorchRandom(0).randperm(10), (V{4, 1, 7, 5, 3, 9, 0, 8, 6, 2}));
    EXPECT_EQ(TorchRandom(1).randperm(10), (V{5, 6, 1, 2, 0, 8, 9, 3, 7, 4}));
    EXPECT_EQ(TorchRandom(1).randperm(0), V{});
    EXPECT_EQ(TorchRandom(1).randperm(1), V{0});
    // torch.randperm(1000, generator seeded 3)[[0, 1, 2, 500, 998, 999]]
    const V perm = TorchRandom(3).randperm(1000);
    EXPECT_EQ((V{perm[0], perm[1], perm[2], perm[500], perm[998], perm[999]}), (V{986, 114, 871, 742, 17, 341}));
}

TEST(TorchRandom, Uniform) {
    TorchRandom random(2971215073u);  // torch.rand(3, generator)
    for (const float expected : {0.23368388414382935f, 0.4412640333175659f, 0.7411476969718933f})
        EXPECT_EQ(random.uniform(), expected);
}

TEST(Pcg64, Vectors) {
    EXPECT_EQ(Pcg64().random(), 0.6369616873214543);
    Pcg64 random;
    for (const std::int32_t expected : {3484, 2609, 2094, 1105, 1261, 168, 309, 68, 718, 3331})
        EXPECT_EQ(random.integer(1, 4096), expected);
}

TEST(Pcg64, RejectsAsNumpyDoes) {
    Pcg64 random;  // default_rng(0).integers(0, 3 * 2**29, 20, dtype=int32)[-4:]: redraws happen
    std::int32_t last[4] = {};
    for (int i = 0; i < 20; ++i) {
        const std::int32_t value = random.integer(0, 3 << 29);
        if (i >= 16) last[i - 16] = value;
    }
    const std::int32_t expected[4] = {446698684, 1314024124, 1380946247, 892786667};
    for (int i = 0; i < 4; ++i) EXPECT_EQ(last[i], expected[i]);
}

// Beyond 2^32 / 20 elements torch draws 64 bits. (torch.randperm(214748369, generator seeded 3))
TEST(SlowTorchRandom, WideRandperm) {
    const std::vector<std::int64_t> perm = TorchRandom(3).randperm(214748369);
    EXPECT_EQ(perm[0], 50815193);
    EXPECT_EQ(perm[1], 116864026);
    EXPECT_EQ(perm[5], 174023950);
    EXPECT_EQ(perm[214748366], 206218634);
    EXPECT_EQ(perm[214748368], 168732005);
}

}  // namespace
}  // namespace tera
