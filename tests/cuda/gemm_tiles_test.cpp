// Needs no GPU: what is reckoned, not run.
#include "ops/gemm_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tera::ops::cuda {
namespace {

std::int64_t place_of(const std::vector<GemmTile>& tiles, int rows, int cols) {
    const auto at =
        std::find_if(tiles.begin(), tiles.end(), [&](const GemmTile& t) { return t.rows == rows && t.cols == cols; });
    return at - tiles.begin();
}

TEST(GemmTiles, EachIsThereOnce) {
    const std::vector<GemmTile> tiles = gemm_tiles_for(1000, 1000, 132);
    std::set<std::uint32_t> ids;
    for (const GemmTile& t : tiles) EXPECT_TRUE(ids.insert(t.id).second) << t.rows << " x " << t.cols;
    EXPECT_GT(tiles.size(), 50u);
}

/// 6 x 256 tiles of 256 x 128 are 11.6 rounds of 132 multiprocessors, so twelve; 6 x 196 of 256 x 168 are 8.9, so nine.
TEST(GemmTiles, ThatFillTheLastRoundComeFirst) {
    const std::vector<GemmTile> tiles = gemm_tiles_for(1536, 32768, 132);
    EXPECT_LT(place_of(tiles, 256, 168), place_of(tiles, 256, 128));
    // One round of all exactly.
    EXPECT_EQ(place_of(gemm_tiles_for(192 * 12, 232 * 11, 132), 192, 232), 0);
}

TEST(GemmTiles, LargeOnesComeFirstWhereRoundsAreMany) {
    const std::vector<GemmTile> tiles = gemm_tiles_for(256 * 1000, 256 * 1000, 132);
    EXPECT_LT(place_of(tiles, 192, 192), place_of(tiles, 128, 192));
    EXPECT_LT(place_of(tiles, 128, 192), place_of(tiles, 128, 128));
}

}  // namespace
}  // namespace tera::ops::cuda
