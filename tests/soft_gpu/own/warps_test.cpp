// What lanes of a warp tell each other, and ways that part and meet again.
#include <gtest/gtest.h>

#include <random>

#include "soft_gpu/own/instructions.h"

namespace soft_gpu_own {
namespace {

Lanes some_values(std::uint32_t seed, std::uint32_t below = 0) {
    std::mt19937 random(seed);
    Lanes out;
    for (std::uint32_t& x : out)
        x = below ? static_cast<std::uint32_t>(random() % below) : static_cast<std::uint32_t>(random());
    return out;
}

/// The lane that is asked, as the programming guide has it: oneself where there is none.
int asked(Shuffle how, int lane, int by, int width) {
    const int first = lane / width * width, within = lane % width;
    switch (how) {
        case Shuffle::up:
            return within - by < 0 ? lane : lane - by;
        case Shuffle::down:
            return within + by >= width ? lane : lane + by;
        case Shuffle::index:
            return first + by % width;
        default:
            break;
    }
    // Into the own segment, or one before it; not into one behind it.
    const int other = lane ^ by;
    return other / width > lane / width ? lane : other;
}

TEST(Warps, ShufflesOfAllWidths) {
    const Lanes values = some_values(1);
    for (const Shuffle how : {Shuffle::by_xor, Shuffle::up, Shuffle::down, Shuffle::index})
        for (const int width : {1, 2, 4, 8, 16, 32})
            for (int by = 0; by < 32; ++by) {
                const Lanes got = shuffled(how, values, by, width);
                for (int l = 0; l < 32 && !HasFailure(); ++l)
                    EXPECT_EQ(got[static_cast<std::size_t>(l)],
                              values[static_cast<std::size_t>(asked(how, l, by, width))])
                        << "kind " << static_cast<int>(how) << " width " << width << " by " << by << " lane " << l;
            }
}

TEST(Warps, EachLaneAsksAnother) {
    const Lanes values = some_values(2), from = some_values(3, 32), got = gathered(values, from);
    for (std::size_t l = 0; l < 32; ++l) EXPECT_EQ(got[l], values[from[l]]) << l;
}

TEST(Warps, MatchThoseOfTheSameValue) {
    for (const std::uint32_t kinds : {1u, 2u, 5u, 1000u}) {
        const Lanes values = some_values(kinds, kinds), got = matched(values);
        for (std::size_t l = 0; l < 32; ++l) {
            std::uint32_t mask = 0;
            for (std::size_t k = 0; k < 32; ++k) mask |= (values[k] == values[l] ? 1u : 0u) << k;
            EXPECT_EQ(got[l], mask) << l;
        }
    }
}

TEST(Warps, AddToWhatIsThere) {
    Lanes values;
    float sum = 0;
    for (std::uint32_t l = 0; l < 32; ++l) {
        values[l] = l * l % 23;
        if (values[l] % 2 == 0) sum += static_cast<float>(values[l]);
    }
    EXPECT_EQ(added_to_four(values), (std::array<float, 4>{1 + sum, 1 + 2 * sum, 1 + 3 * sum, 1 + 4 * sum}));
}

TEST(Warps, VoteOfAny) {
    Lanes values{};
    EXPECT_EQ(voted_over_100(values), Lanes{});
    for (std::size_t l = 0; l < values.size(); ++l) {
        values.fill(100);
        values[l] = 101;
        Lanes yes;
        yes.fill(1);
        EXPECT_EQ(voted_over_100(values), yes) << l;
    }
}

TEST(Warps, LoopsOfAllLengthsMeetAgain) {
    for (const std::uint32_t seed : {4u, 5u, 6u}) {
        const Lanes values = some_values(seed, 1000), got = steps_of_collatz(values);
        for (std::size_t l = 0; l < 32; ++l) {
            std::uint32_t x = values[(l + 1) % 32], steps = 0;
            for (; x > 1; ++steps) x = x % 2 ? 3 * x + 1 : x / 2;
            EXPECT_EQ(got[l], steps) << l;
        }
    }
}

TEST(Warps, ThoseThatAreLeftShuffleInALoop) {
    Lanes trips;
    for (std::size_t l = 0; l < 32; ++l) trips[l] = static_cast<std::uint32_t>(l / 2 * 3);
    const Lanes got = counted_together(trips);
    for (std::size_t l = 0; l < 32; ++l) EXPECT_EQ(got[l], 31 * trips[l]) << l;  // its neighbour has as many
}

TEST(Warps, LocalArraysByIndex) {
    const Lanes values = some_values(8);
    for (const std::uint32_t rotation : {0u, 1u, 17u}) {
        const Lanes got = through_local(values, rotation);
        for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(got[i * 5 % 32], values[i]) << i;
    }
}

TEST(Warps, PointersToAnyMemory) {
    const Lanes values = some_values(9, 100), got = through_pointers(values);
    for (std::size_t l = 0; l < 32; ++l) {
        const std::uint32_t expected = l % 3 == 0   ? values[l]
                                       : l % 3 == 1 ? values[31 - l] + 1000
                                                    : values[l] + 2000 + 2;
        EXPECT_EQ(got[l], expected) << l;
    }
}

TEST(Warps, HearOfAnyFlag) {
    std::vector<int> flags(96, 0);
    EXPECT_EQ(any_of_block(flags), std::vector<int>(96, 0));
    flags[70] = 4;
    EXPECT_EQ(any_of_block(flags), std::vector<int>(96, 1));
}

}  // namespace
}  // namespace soft_gpu_own
