#include "ops/gemm_tiles.h"

#include <cublasLt.h>

#include <algorithm>

namespace tera::ops::cuda {
namespace {

#define TILE(rows, cols) \
    GemmTile { CUBLASLT_MATMUL_TILE_##rows##x##cols, rows, cols }
// Smaller ones move more for each product; larger ones do not fit into registers.
constexpr GemmTile tiles[] = {
    TILE(128, 128), TILE(128, 136), TILE(128, 144), TILE(128, 152), TILE(128, 160), TILE(128, 168), TILE(128, 176),
    TILE(128, 184), TILE(128, 192), TILE(128, 200), TILE(128, 208), TILE(128, 216), TILE(128, 224), TILE(128, 232),
    TILE(128, 240), TILE(128, 248), TILE(128, 256), TILE(192, 128), TILE(192, 136), TILE(192, 144), TILE(192, 152),
    TILE(192, 160), TILE(192, 168), TILE(192, 176), TILE(192, 184), TILE(192, 192), TILE(192, 200), TILE(192, 208),
    TILE(192, 216), TILE(192, 224), TILE(192, 232), TILE(192, 240), TILE(192, 248), TILE(192, 256), TILE(256, 128),
    TILE(256, 136), TILE(256, 144), TILE(256, 152), TILE(256, 160), TILE(256, 168), TILE(256, 176), TILE(256, 184),
    TILE(256, 192), TILE(136, 128), TILE(144, 128), TILE(152, 128), TILE(160, 128), TILE(168, 128), TILE(176, 128),
    TILE(184, 128), TILE(200, 128), TILE(208, 128), TILE(216, 128), TILE(224, 128), TILE(232, 128), TILE(240, 128),
    TILE(248, 128), TILE(136, 192), TILE(144, 192), TILE(152, 192), TILE(160, 192), TILE(168, 192), TILE(176, 192),
    TILE(184, 192), TILE(200, 192), TILE(208, 192), TILE(216, 192), TILE(224, 192), TILE(136, 256), TILE(144, 256),
    TILE(152, 256), TILE(160, 256), TILE(168, 256), TILE(176, 256),
};
#undef TILE

/// Relative to others for the same output: how long the rounds of all multiprocessors take, where a tile costs its
/// products, and for each row and column what is moved.
double cost(const GemmTile& t, std::int64_t rows, std::int64_t cols, int multiprocessors) {
    constexpr double moving = 64;
    const std::int64_t count = (rows + t.rows - 1) / t.rows * ((cols + t.cols - 1) / t.cols),
                       rounds = (count + multiprocessors - 1) / multiprocessors;
    return static_cast<double>(rounds) * (t.rows * t.cols + moving * (t.rows + t.cols));
}

}  // namespace

std::vector<GemmTile> gemm_tiles_for(std::int64_t rows, std::int64_t cols, int multiprocessors) {
    std::vector<GemmTile> all(std::begin(tiles), std::end(tiles));
    std::stable_sort(all.begin(), all.end(), [&](const GemmTile& a, const GemmTile& b) {
        return cost(a, rows, cols, multiprocessors) < cost(b, rows, cols, multiprocessors);
    });
    return all;
}

}  // namespace tera::ops::cuda
